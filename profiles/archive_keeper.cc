#include "profiles/archive_keeper.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <charconv>
#include <thread>
#include <utility>

#include "core/log.h"
#include "profiles/tags.h"

namespace sonde {
namespace {

constexpr std::string_view kSocketName = "db.sock";
constexpr std::string_view kIngest = "ingest";
constexpr std::string_view kPrune = "prune";
constexpr std::string_view kTag = "tag ";
constexpr size_t kMaxQuestion = 32768;
constexpr Nanos kPruneBehind = 100 * kMillisecond;  // behind an ingest
constexpr Nanos kPatience = kSecond;                // with one who asks and does not go on
constexpr Nanos kSlice = kSecond / 4;               // of indexing, between answers
constexpr size_t kMaxAnswer = 512;
constexpr int kWaiting = 64;

class Descriptor {
 public:
  explicit Descriptor(int fd = -1) : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  int get() const { return fd_; }

 private:
  int fd_;
};

// Paths of sockets are short and those of archives may be long: through the directory's descriptor
// any will do.
Result<sockaddr_un> AddressOf(const std::string& root, Descriptor& directory) {
  directory = Descriptor(::open(root.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (directory.get() < 0) return SystemError("open " + root);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string path =
      "/proc/self/fd/" + std::to_string(directory.get()) + "/" + std::string(kSocketName);
  path.copy(address.sun_path, sizeof(address.sun_path) - 1);
  return address;
}

Descriptor MakeSocket() { return Descriptor(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)); }

void SetPatience(int fd, Nanos patience) {
  timeval time{};
  time.tv_sec = static_cast<time_t>(patience / kSecond);
  time.tv_usec = static_cast<suseconds_t>(patience % kSecond / 1000);
  ::setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &time, sizeof(time));
  ::setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &time, sizeof(time));
}

// Up to the end of a line, of the connection or of what is allowed.
std::string ReadLine(int fd, size_t limit) {
  std::string line;
  char byte = 0;
  while (line.size() < limit && ::recv(fd, &byte, 1, 0) == 1) {
    line.push_back(byte);
    if (byte == '\n') break;
  }
  return line;
}

bool IsOurs(int fd) {
  ucred peer{};
  socklen_t size = sizeof(peer);
  return ::getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 &&
         (peer.uid == ::geteuid() || peer.uid == 0);
}

}  // namespace

struct ArchiveKeeper::Rep {
  Rep(Archive& kept, std::string path, const Retention& most)
      : archive(kept), root(std::move(path)), limits(most) {}

  Archive& archive;
  const std::string root;
  const Retention limits;
  const Descriptor stop{::eventfd(0, EFD_CLOEXEC)};
  Descriptor listener;
  std::thread thread;

  void Work();
  void Listen();
  void Answer() const;
  Result<uint64_t> Do(std::string_view question) const;
  Result<uint64_t> Ingest() const;
  Result<uint64_t> Prune(Nanos budget) const;
};

// Only with the archive's lock, so that nobody else listens there.
void ArchiveKeeper::Rep::Listen() {
  if (listener.get() >= 0 || !archive.owned()) return;
  Descriptor directory;
  const auto address = AddressOf(root, directory);
  if (!address.ok()) return log::Warning("{}", address.status().message());
  ::unlink(address->sun_path);
  Descriptor socket = MakeSocket();
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

Result<uint64_t> ArchiveKeeper::Rep::Prune(Nanos budget) const {
  if (!limits.any()) return 0;
  const auto pruned = archive.Prune(limits, Clock::System().Now(), budget);
  if (!pruned.ok()) return pruned.status();
  return pruned->profiles;
}

Result<uint64_t> ArchiveKeeper::Rep::Ingest() const {
  const auto taken = archive.IngestWaiting();
  if (taken.ok() && *taken > 0) {
    if (const auto pruned = Prune(kPruneBehind); !pruned.ok()) {
      log::Info("{}", pruned.status().message());
    }
  }
  return taken;
}

Result<uint64_t> ArchiveKeeper::Rep::Do(std::string_view question) const {
  if (question == kIngest) return Ingest();
  if (question == kPrune) return Prune(kPruneFor);
  if (question.starts_with(kTag)) {
    question.remove_prefix(kTag.size());
    const size_t tab = question.find('\t');
    const auto change = tab == std::string_view::npos
                            ? Status(Code::kCorrupt, "expected a key and tags")
                            : TagChangeFromText(question.substr(tab + 1));
    if (!change.ok()) return change.status();
    const auto tags = archive.Tag(std::string(question.substr(0, tab)), *change);
    if (!tags.ok()) return tags.status();
    return tags->size();
  }
  return Status(Code::kUnsupported, "a server of this version does not know the question");
}

void ArchiveKeeper::Rep::Answer() const {
  const Descriptor peer(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
  if (peer.get() < 0 || !IsOurs(peer.get())) return;
  SetPatience(peer.get(), kPatience);
  std::string question = ReadLine(peer.get(), kMaxQuestion);
  if (!question.ends_with('\n')) return;
  question.pop_back();
  const auto done = Do(question);
  std::string answer =
      done.ok() ? "ok " + std::to_string(*done) : "error " + std::string(done.status().message());
  answer.resize(std::min(answer.size(), kMaxAnswer - 1));
  answer.push_back('\n');
  static_cast<void>(::send(peer.get(), answer.data(), answer.size(), MSG_NOSIGNAL));
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
  ::unlink((rep_->root + "/" + std::string(kSocketName)).c_str());
}

std::string TagQuestion(const std::string& key, const TagChange& change) {
  return std::string(kTag) + key + "\t" + TagChangeToText(change);
}

Result<uint64_t> AskKeeper(const std::string& root, Nanos wait) {
  return AskKeeper(root, kIngest, wait);
}

Result<uint64_t> AskKeeper(const std::string& root, std::string_view question, Nanos wait) {
  Descriptor directory;
  const auto address = AddressOf(root, directory);
  if (!address.ok()) return address.status();
  const Descriptor socket = MakeSocket();
  const auto* where = reinterpret_cast<const sockaddr*>(&*address);
  SetPatience(socket.get(), std::max(wait, kMillisecond));
  if (socket.get() < 0 || ::connect(socket.get(), where, sizeof(*address)) != 0) {
    return Status(Code::kNotFound, "nobody on this host keeps the archive " + root);
  }
  // Another user's would be one that pretends.
  if (!IsOurs(socket.get())) {
    return Status(Code::kNotFound, "who keeps the archive " + root + " is another user");
  }
  const std::string line = std::string(question) + "\n";
  if (::send(socket.get(), line.data(), line.size(), MSG_NOSIGNAL) < 0) {
    return SystemError("ask who keeps the archive " + root);
  }
  if (wait == 0) return 0;
  return ParseKeeperAnswer(ReadLine(socket.get(), kMaxAnswer));
}

Result<uint64_t> ParseKeeperAnswer(std::string_view answer) {
  constexpr std::string_view kOk = "ok ";
  constexpr std::string_view kError = "error ";
  if (answer.ends_with('\n')) {
    answer.remove_suffix(1);
    if (answer.starts_with(kError)) {
      return Status(Code::kIo, std::string(answer.substr(kError.size())));
    }
    uint64_t count = 0;
    const char* end = answer.data() + answer.size();
    if (answer.starts_with(kOk)) {
      const auto read = std::from_chars(answer.data() + kOk.size(), end, count);
      if (read.ec == std::errc() && read.ptr == end) return count;
    }
  }
  return Status(Code::kCorrupt, "ask who keeps the archive: expected \"ok N\" or \"error WHY\"");
}

}  // namespace sonde
