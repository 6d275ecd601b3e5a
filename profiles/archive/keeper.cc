#include "profiles/archive/keeper.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "core/descriptor_message.h"
#include "core/log.h"
#include "profiles/archive/ask_keeper.h"
#include "profiles/archive/keeper_socket.h"
#include "profiles/disk/archive_dir.h"
#include "profiles/records/tags.h"
#include "profiles/upkeep/import.h"
#include "profiles/upkeep/repair.h"

namespace sonde {
namespace {

constexpr Nanos kPruneBehind = 100 * kMillisecond;  // behind an ingest
constexpr Nanos kPruneWhenAskedFor = 3600 * kSecond;
constexpr Nanos kPatience = kSecond;          // with one who asks and does not go on
constexpr Nanos kSlice = kSecond / 4;         // of indexing, between answers
constexpr Nanos kBetweenNews = kSecond / 10;  // of how far work is
constexpr size_t kMaxWhy = 4096;
constexpr size_t kWaiting = 64;
constexpr Nanos kSayAgain = 10 * kSecond;  // to a client that waits

// The content of an "ok" line.
struct Done {
  uint64_t count = 0;
  std::string more;
};

bool IsReadable(int fd) {
  pollfd ready{fd, POLLIN, 0};
  return ::poll(&ready, 1, 0) > 0;
}

std::string WordOf(std::string_view question) {
  const std::string_view word = question.substr(0, question.find(' '));
  return std::string(keeper::IsWord(word) ? word : "another");
}

void Signal(int event) {
  const uint64_t one = 1;
  static_cast<void>(::write(event, &one, sizeof(one)));
}

void Clear(int event) {
  uint64_t count = 0;
  static_cast<void>(::read(event, &count, sizeof(count)));
}

void SendEnd(int peer, const Result<Done>& done) {
  const std::string answer =
      done.ok() ? "ok " + std::to_string(done->count) + (done->more.empty() ? "" : " ") + done->more
                : "error " + std::string(done.status().message().substr(0, kMaxWhy));
  keeper::SendAll(peer, answer + "\n");
}

// The keeper does not wait for a client that does not read.
void TellBehind(int peer, const std::string& work) {
  static_cast<void>(
      SendWithDescriptors(peer, std::string(keeper::kBehind) + work + "\n", {}, Patience::kNone));
}

}  // namespace

struct ArchiveKeeper::Rep {
  Rep(OpenedArchive kept, const Retention& most)
      : archive(std::move(kept.reader)), limits(most), owned_archive(std::move(kept.owner)) {}

  struct Question {
    UniqueFd peer;
    std::string text;
    std::vector<UniqueFd> files;
  };

  const std::shared_ptr<const Archive> archive;
  const Retention limits;
  const UniqueFd stop{::eventfd(0, EFD_CLOEXEC)};
  const UniqueFd owned_changed{::eventfd(0, EFD_CLOEXEC)};
  const UniqueFd asked{::eventfd(0, EFD_CLOEXEC)};
  std::atomic<bool> owned = false;              // as it was between two works
  UniqueFd listener;                            // the door's, once the door runs
  mutable std::mutex mutex;                     // guards the three members below
  std::unique_ptr<OwnedArchive> owned_archive;  // stays, once there is one
  std::deque<Question> waiting;
  std::string doing;  // the first word of the question in work; "": none
  std::thread door;
  std::thread worker;

  // nullptr: another process has had the archive all the time.
  OwnedArchive* Owner() const;
  bool IsOpen() const {
    const OwnedArchive* owner = Owner();
    return owner != nullptr && owner->IsOpen();
  }
  // The owner, taken now if there was none; called by the worker.
  Result<OwnedArchive*> Own();

  void Listen();
  void Admit();
  void Enqueue(Question question);
  void TellWaiting();
  void RunDoor();

  void SetDoing(std::string_view work);
  std::optional<Question> Next();
  bool Stopped() const {
    pollfd told{stop.get(), POLLIN, 0};
    return ::poll(&told, 1, 0) > 0;
  }
  void Work();
  void RunWorker();

  void Answer(const Question& question, const std::function<void()>& on_end);
  Result<Done> Do(std::string_view question, int file, const ArchiveProgress& progress);
  Result<uint64_t> Ingest();
  static Result<Done> Tag(OwnedArchive& owner, std::string_view question);
  static Result<Done> Prune(OwnedArchive& owner, std::string_view question,
                            const ArchiveProgress& progress);
};

OwnedArchive* ArchiveKeeper::Rep::Owner() const {
  const std::lock_guard lock(mutex);
  return owned_archive.get();
}

Result<OwnedArchive*> ArchiveKeeper::Rep::Own() {
  if (OwnedArchive* owner = Owner()) return owner;
  auto owner = OwnedArchive::Take(*archive, 0);
  if (!owner.ok()) return owner.status();
  const std::lock_guard lock(mutex);
  owned_archive = *std::move(owner);
  return owned_archive.get();
}

// Only with the archive's lock, so that no other keeper listens there.
void ArchiveKeeper::Rep::Listen() {
  if (!owned) listener.Reset();
  if (listener || !owned) return;
  UniqueFd directory;
  const auto address = keeper::AddressOf(archive->root(), directory);
  if (!address.ok()) return log::Warning("{}", address.status().message());
  ::unlink(address->sun_path);
  UniqueFd socket = keeper::MakeSocket();
  const auto* where = reinterpret_cast<const sockaddr*>(&*address);
  // Linux makes the socket's file with this mode; the umask is that of all threads.
  ::fchmod(socket.get(), 0600);
  const bool bound = ::bind(socket.get(), where, sizeof(*address)) == 0;
  // On a file system without sockets commands can still read.
  if (!bound || ::listen(socket.get(), static_cast<int>(kWaiting)) != 0) {
    return log::Info("{}", SystemError("listen in " + archive->root()).message());
  }
  listener = std::move(socket);
}

Result<uint64_t> ArchiveKeeper::Rep::Ingest() {
  const auto own = Own();
  if (!own.ok()) return own.status();
  OwnedArchive& owner = **own;
  const auto hear = [](const Status& status) {
    if (!status.ok()) log::Info("{}", status.message());
    return status.ok();
  };
  auto taken = owner.IngestWaiting();
  if (!limits.any() || taken.status().code() == Code::kBusy) return taken;
  // Otherwise no ingest could make the room that the next one needs. Makes it for one step a time.
  while (WantsRoom(taken.status()) && !Stopped()) {
    const auto made = owner.MakeRoom(limits);
    if (!hear(made.status()) || !*made) break;
    taken = owner.IngestWaiting();
  }
  // Some of several steps may have been ingested, though one could not be.
  if (owner.ClosedByFailure() || (taken.ok() && *taken == 0)) return taken;
  if (hear(owner.Prune(limits, Clock::System().Now(), kPruneBehind).status())) {
    hear(owner.KeepRoom());
  }
  return taken;
}

Result<Done> ArchiveKeeper::Rep::Tag(OwnedArchive& owner, std::string_view question) {
  const size_t tab = question.find('\t');
  const auto change = tab == std::string_view::npos
                          ? Status(Code::kCorrupt, "expected a key and tags")
                          : TagChangeFromText(question.substr(tab + 1));
  if (!change.ok()) return change.status();
  const auto tags = owner.Tag(std::string(question.substr(0, tab)), *change);
  if (!tags.ok()) return tags.status();
  return Done{tags->size(), ""};
}

Result<Done> ArchiveKeeper::Rep::Prune(OwnedArchive& owner, std::string_view question,
                                       const ArchiveProgress& progress) {
  const auto most = RetentionFromText(question);
  if (!most.ok()) return most.status();
  // The indexes tell numbers and sizes.
  for (bool indexed = false; !indexed;) {
    const auto complete = owner.BuildIndexes(kSlice);
    if (!complete.ok()) return complete.status();
    indexed = *complete;
    if (!indexed && !progress(0, 0)) return StoppedWork();
  }
  const auto report = owner.Prune(*most, Clock::System().Now(), kPruneWhenAskedFor, progress);
  if (!report.ok()) return report.status();
  return Done{report->profiles, PruneToJson(*report, false)};
}

Result<Done> ArchiveKeeper::Rep::Do(std::string_view question, int file,
                                    const ArchiveProgress& progress) {
  const auto behind = [&](std::string_view word) { return question.substr(word.size()); };
  if (question == keeper::kIngest) {
    const auto taken = Ingest();
    return taken.ok() ? Result<Done>(Done{*taken, ""}) : taken.status();
  }
  // Without an owner none of the work below can be done.
  OwnedArchive* const owner = Owner();
  if (owner == nullptr) return WhyNotOwned(*archive);
  if (question.starts_with(keeper::kTag)) return Tag(*owner, behind(keeper::kTag));
  if (question.starts_with(keeper::kPrune)) return Prune(*owner, behind(keeper::kPrune), progress);
  if (question == keeper::kCompact) {
    const Status done = owner->Compact(progress);
    return done.ok() ? Result<Done>(Done()) : done;
  }
  if (question == keeper::kRepair) {
    const auto report = owner->Repair(progress);
    if (!report.ok()) return report.status();
    return Done{report->profiles, RepairToJson(*report)};
  }
  if (question.starts_with(keeper::kImport) && file >= 0) {
    const auto imported = owner->Import(file, std::string(behind(keeper::kImport)), progress);
    if (!imported.ok()) return imported.status();
    return Done{imported->blocks, ImportedToText(*imported)};
  }
  return Status(Code::kUnsupported, "a server of this version does not know the question");
}

void ArchiveKeeper::Rep::Answer(const Question& question, const std::function<void()>& on_end) {
  const int peer = question.peer.get();
  // A client that has gone is told no more, and does not stop the work.
  bool gone = false;
  Nanos next = Clock::System().Monotonic() + kBetweenNews;
  const int file = question.files.empty() ? -1 : question.files.front().get();
  const auto done = Do(question.text, file, [&](uint64_t at, uint64_t total) {
    const Nanos now = Clock::System().Monotonic();
    if (now < next) return true;
    next = now + kBetweenNews;
    const std::string news = "at " + std::to_string(at) + " " + std::to_string(total) + "\n";
    gone = gone || !keeper::SendAll(peer, news);
    return !IsReadable(stop.get());
  });
  on_end();
  if (!gone) SendEnd(peer, done);
}

// Short work is answered at once, the worker does the rest.
void ArchiveKeeper::Rep::Admit() {
  Question question;
  question.peer.Reset(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
  const int peer = question.peer.get();
  if (peer < 0 || !keeper::IsOurs(peer)) return;
  keeper::SetPatience(peer, kPatience);
  keeper::LineReader lines(peer, 1);
  question.text = lines.Next(keeper::kMaxQuestion);
  if (!question.text.ends_with('\n')) return;
  question.text.pop_back();
  question.files = lines.TakeFiles();
  if (!question.text.starts_with(keeper::kTag)) return Enqueue(std::move(question));
  Answer(question, [] {});
  // The worker looks after an archive that a failure has closed.
  if (owned != IsOpen()) Signal(asked.get());
}

void ArchiveKeeper::Rep::Enqueue(Question question) {
  const std::lock_guard lock(mutex);
  if (waiting.size() >= kWaiting) {
    return SendEnd(question.peer.get(),
                   Status(Code::kLimit,
                          "too many wait for the server that has the archive open; "
                          "try again later"));
  }
  if (!doing.empty()) TellBehind(question.peer.get(), doing);
  waiting.push_back(std::move(question));
  Signal(asked.get());
}

void ArchiveKeeper::Rep::TellWaiting() {
  const std::lock_guard lock(mutex);
  if (doing.empty()) return;
  for (const Question& question : waiting) TellBehind(question.peer.get(), doing);
}

void ArchiveKeeper::Rep::RunDoor() {
  while (true) {
    Listen();
    pollfd ready[3] = {
        {stop.get(), POLLIN, 0}, {owned_changed.get(), POLLIN, 0}, {listener.get(), POLLIN, 0}};
    const int count = ::poll(ready, 3, static_cast<int>(kSayAgain / kMillisecond));
    if (ready[0].revents != 0) return;
    if (ready[1].revents != 0) Clear(owned_changed.get());
    if (ready[2].revents != 0) Admit();
    if (count == 0) TellWaiting();
  }
}

void ArchiveKeeper::Rep::SetDoing(std::string_view work) {
  const std::lock_guard lock(mutex);
  doing = work;
}

std::optional<ArchiveKeeper::Rep::Question> ArchiveKeeper::Rep::Next() {
  const std::lock_guard lock(mutex);
  doing.clear();
  if (waiting.empty()) return {};
  Question question = std::move(waiting.front());
  waiting.pop_front();
  doing = WordOf(question.text);
  for (const Question& behind : waiting) TellBehind(behind.peer.get(), doing);
  return question;
}

void ArchiveKeeper::Rep::Work() {
  while (const auto question = Next()) {
    // Called before the client hears of the end, and asks again.
    Answer(*question, [&] { SetDoing(""); });
    if (IsReadable(stop.get())) return;
  }
}

void ArchiveKeeper::Rep::RunWorker() {
  bool indexed = false;
  Nanos retry = kRetry;
  while (true) {
    if (owned != IsOpen()) {
      owned = !owned;
      Signal(owned_changed.get());
    }
    OwnedArchive* const owner = Owner();
    const bool indexing = !indexed && owned;
    if (indexing) {
      const auto complete = owner->BuildIndexes(kSlice);
      if (!complete.ok()) log::Warning("{}", complete.status().message());
      // After a failure it is tried again only if that has closed the archive.
      indexed = complete.ok() ? *complete : !owner->ClosedByFailure();
    }
    pollfd ready[2] = {{stop.get(), POLLIN, 0}, {asked.get(), POLLIN, 0}};
    const bool closed = owner != nullptr && owner->ClosedByFailure();
    const Nanos pause = closed ? retry : kBetween;
    retry = closed ? std::min(2 * retry, kBetween) : kRetry;
    const int count = ::poll(ready, 2, indexing ? 0 : static_cast<int>(pause / kMillisecond));
    if (ready[0].revents != 0) return;
    if (ready[1].revents != 0) {
      Clear(asked.get());
      Work();
    } else if (count == 0 && !indexing) {
      SetDoing("ingest");
      const auto taken = Ingest();
      SetDoing("");
      if (!taken.ok()) log::Info("{}", taken.status().message());
    }
  }
}

ArchiveKeeper::ArchiveKeeper(OpenedArchive archive, const Retention& limits)
    : rep_(std::make_unique<Rep>(std::move(archive), limits)) {
  rep_->owned = rep_->IsOpen();
  rep_->Listen();
  rep_->door = std::thread([rep = rep_.get()] { rep->RunDoor(); });
  rep_->worker = std::thread([rep = rep_.get()] { rep->RunWorker(); });
}

ArchiveKeeper::~ArchiveKeeper() {
  Signal(rep_->stop.get());
  rep_->door.join();
  // Clients that come from now on find no keeper.
  if (rep_->listener) {
    ::unlink((rep_->archive->root() + "/" + std::string(keeper::kSocketName)).c_str());
  }
  rep_->worker.join();
  for (const Rep::Question& question : rep_->waiting) {
    SendEnd(question.peer.get(), StoppedWork());
  }
}

Result<UserTags> ArchiveKeeper::Tag(const std::string& key, const TagChange& change) {
  return TagWhereItIsOpen(*rep_->archive, rep_->Owner(), key, change);
}

}  // namespace sonde
