#include "profiles/archive_keeper.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <thread>
#include <utility>

#include "core/log.h"
#include "profiles/archive_repair.h"
#include "profiles/keeper_socket.h"
#include "profiles/profile_import.h"
#include "profiles/tags.h"

namespace sonde {
namespace {

constexpr Nanos kPruneBehind = 100 * kMillisecond;  // behind an ingest
constexpr Nanos kPruneFor = 3600 * kSecond;         // when asked
constexpr Nanos kPatience = kSecond;                // with one who asks and does not go on
constexpr Nanos kSlice = kSecond / 4;               // of indexing, between answers
constexpr Nanos kBetweenNews = kSecond / 10;        // of how far work is
constexpr size_t kMaxWhy = 4096;
constexpr int kWaiting = 64;

// What an "ok" says.
struct Done {
  uint64_t count = 0;
  std::string more;
};

bool IsReadable(int fd) {
  pollfd ready{fd, POLLIN, 0};
  return ::poll(&ready, 1, 0) > 0;
}

}  // namespace

struct ArchiveKeeper::Rep {
  Rep(Archive& kept, std::string path, const Retention& most)
      : archive(kept), root(std::move(path)), limits(most) {}

  Archive& archive;
  const std::string root;
  const Retention limits;
  const UniqueFd stop{::eventfd(0, EFD_CLOEXEC)};
  UniqueFd listener;
  std::thread thread;

  void Work();
  void Listen();
  void Answer() const;
  Result<Done> Do(std::string_view question, int file, const ArchiveProgress& progress) const;
  Result<uint64_t> Ingest() const;
  Result<Done> Tag(std::string_view question) const;
  Result<Done> Prune(std::string_view question, const ArchiveProgress& progress) const;
};

// Only with the archive's lock, so that nobody else listens there.
void ArchiveKeeper::Rep::Listen() {
  if (!archive.owned()) listener = UniqueFd();
  if (listener.get() >= 0 || !archive.owned()) return;
  UniqueFd directory;
  const auto address = keeper::AddressOf(root, directory);
  if (!address.ok()) return log::Warning("{}", address.status().message());
  ::unlink(address->sun_path);
  UniqueFd socket = keeper::MakeSocket();
  const auto* where = reinterpret_cast<const sockaddr*>(&*address);
  // Linux makes the socket's file with this mode; the umask is that of all threads.
  ::fchmod(socket.get(), 0600);
  const bool bound = ::bind(socket.get(), where, sizeof(*address)) == 0;
  // On a file system without sockets commands read all the same.
  if (!bound || ::listen(socket.get(), kWaiting) != 0) {
    return log::Info("{}", SystemError("listen in " + root).message());
  }
  listener = std::move(socket);
}

Result<uint64_t> ArchiveKeeper::Rep::Ingest() const {
  const auto taken = archive.IngestWaiting();
  if (taken.ok() && *taken > 0 && limits.any()) {
    const auto pruned = archive.Prune(limits, Clock::System().Now(), kPruneBehind);
    if (!pruned.ok()) log::Info("{}", pruned.status().message());
  }
  return taken;
}

Result<Done> ArchiveKeeper::Rep::Tag(std::string_view question) const {
  const size_t tab = question.find('\t');
  const auto change = tab == std::string_view::npos
                          ? Status(Code::kCorrupt, "expected a key and tags")
                          : TagChangeFromText(question.substr(tab + 1));
  if (!change.ok()) return change.status();
  const auto tags = archive.Tag(std::string(question.substr(0, tab)), *change);
  if (!tags.ok()) return tags.status();
  return Done{tags->size(), ""};
}

Result<Done> ArchiveKeeper::Rep::Prune(std::string_view question,
                                       const ArchiveProgress& progress) const {
  const auto most = RetentionFromText(question);
  if (!most.ok()) return most.status();
  // Numbers and sizes are known from the indexes.
  for (bool indexed = false; !indexed;) {
    const auto complete = archive.BuildIndexes(kSlice);
    if (!complete.ok()) return complete.status();
    indexed = *complete;
    if (!indexed && !progress(0, 0)) return StoppedWork();
  }
  const auto report =
      archive.Prune(*most, Clock::System().Now(), kPruneFor, /*dry_run=*/false, progress);
  if (!report.ok()) return report.status();
  return Done{report->profiles, PruneToJson(*report, false)};
}

Result<Done> ArchiveKeeper::Rep::Do(std::string_view question, int file,
                                    const ArchiveProgress& progress) const {
  const auto behind = [&](std::string_view word) { return question.substr(word.size()); };
  if (question == keeper::kIngest) {
    const auto taken = Ingest();
    return taken.ok() ? Result<Done>(Done{*taken, ""}) : taken.status();
  }
  if (question.starts_with(keeper::kTag)) return Tag(behind(keeper::kTag));
  if (question.starts_with(keeper::kPrune)) return Prune(behind(keeper::kPrune), progress);
  if (question == keeper::kCompact) {
    const Status done = archive.Compact(progress);
    return done.ok() ? Result<Done>(Done()) : done;
  }
  if (question == keeper::kRepair) {
    const auto report = archive.Repair(progress);
    if (!report.ok()) return report.status();
    return Done{report->profiles, RepairToJson(*report)};
  }
  if (question.starts_with(keeper::kImport) && file >= 0) {
    const auto imported = archive.Import(file, std::string(behind(keeper::kImport)), progress);
    if (!imported.ok()) return imported.status();
    return Done{imported->blocks, ImportedToText(*imported)};
  }
  return Status(Code::kUnsupported, "a server of this version does not know the question");
}

void ArchiveKeeper::Rep::Answer() const {
  const UniqueFd peer(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
  if (peer.get() < 0 || !keeper::IsOurs(peer.get())) return;
  keeper::SetPatience(peer.get(), kPatience);
  keeper::LineReader lines(peer.get(), 1);
  std::string question = lines.Next(keeper::kMaxQuestion);
  if (!question.ends_with('\n')) return;
  question.pop_back();
  // Who has gone is not told more, and does not stop the work either.
  bool gone = false;
  Nanos next = Clock::System().Monotonic() + kBetweenNews;
  const std::vector<UniqueFd> files = lines.TakeFiles();
  const int file = files.empty() ? -1 : files.front().get();
  const auto done = Do(question, file, [&](uint64_t at, uint64_t total) {
    const Nanos now = Clock::System().Monotonic();
    if (now < next) return true;
    next = now + kBetweenNews;
    const std::string news = "at " + std::to_string(at) + " " + std::to_string(total) + "\n";
    gone = gone || !keeper::SendAll(peer.get(), news);
    return !IsReadable(stop.get());
  });
  if (gone) return;
  const std::string answer =
      done.ok() ? "ok " + std::to_string(done->count) + (done->more.empty() ? "" : " ") + done->more
                : "error " + std::string(done.status().message().substr(0, kMaxWhy));
  keeper::SendAll(peer.get(), answer + "\n");
}

void ArchiveKeeper::Rep::Work() {
  bool indexed = false;
  while (true) {
    Listen();
    const bool indexing = !indexed && archive.owned();
    if (indexing) {
      const auto complete = archive.BuildIndexes(kSlice);
      if (!complete.ok()) log::Warning("{}", complete.status().message());
      indexed = !complete.ok() || *complete;
    }
    pollfd ready[2] = {{stop.get(), POLLIN, 0}, {listener.get(), POLLIN, 0}};
    const int count = ::poll(ready, 2, indexing ? 0 : static_cast<int>(kBetween / kMillisecond));
    if (ready[0].revents != 0) return;
    if (count > 0 && ready[1].revents != 0) {
      Answer();
    } else if (count == 0 && !indexing) {
      const auto taken = Ingest();
      if (!taken.ok()) log::Info("{}", taken.status().message());
    }
  }
}

ArchiveKeeper::ArchiveKeeper(Archive& archive, std::string root, const Retention& limits)
    : rep_(std::make_unique<Rep>(archive, std::move(root), limits)) {
  rep_->Listen();
  rep_->thread = std::thread([rep = rep_.get()] { rep->Work(); });
}

ArchiveKeeper::~ArchiveKeeper() {
  const uint64_t one = 1;
  static_cast<void>(::write(rep_->stop.get(), &one, sizeof(one)));
  rep_->thread.join();
  if (rep_->listener.get() < 0) return;
  ::unlink((rep_->root + "/" + std::string(keeper::kSocketName)).c_str());
}

}  // namespace sonde
