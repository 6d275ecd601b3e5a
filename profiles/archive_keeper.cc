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

namespace sonde {
namespace {

constexpr std::string_view kSocketName = "db.sock";
constexpr std::string_view kQuestion = "ingest\n";
constexpr Nanos kPatience = kSecond;  // with one who asks and does not go on
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
  Rep(Archive& kept, std::string path) : archive(kept), root(std::move(path)) {}

  Archive& archive;
  const std::string root;
  const Descriptor stop{::eventfd(0, EFD_CLOEXEC)};
  Descriptor listener;
  std::thread thread;

  void Work();
  void Listen();
  void Answer() const;
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

void ArchiveKeeper::Rep::Answer() const {
  const Descriptor peer(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
  if (peer.get() < 0 || !IsOurs(peer.get())) return;
  SetPatience(peer.get(), kPatience);
  if (ReadLine(peer.get(), kQuestion.size()) != kQuestion) return;
  const auto taken = archive.IngestWaiting();
  std::string answer = taken.ok() ? "ok " + std::to_string(*taken)
                                  : "error " + std::string(taken.status().message());
  answer.resize(std::min(answer.size(), kMaxAnswer - 1));
  answer.push_back('\n');
  static_cast<void>(::send(peer.get(), answer.data(), answer.size(), MSG_NOSIGNAL));
}

void ArchiveKeeper::Rep::Work() {
  while (true) {
    Listen();
    pollfd ready[2] = {{stop.get(), POLLIN, 0}, {listener.get(), POLLIN, 0}};
    const int count = ::poll(ready, 2, static_cast<int>(kBetween / kMillisecond));
    if (ready[0].revents != 0) return;
    if (count > 0 && ready[1].revents != 0) {
      Answer();
    } else if (count == 0) {
      const auto taken = archive.IngestWaiting();
      if (!taken.ok()) log::Info("{}", taken.status().message());
    }
  }
}

ArchiveKeeper::ArchiveKeeper(Archive& archive, std::string root)
    : rep_(std::make_unique<Rep>(archive, std::move(root))) {
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

Result<uint64_t> AskKeeper(const std::string& root, Nanos wait) {
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
  if (::send(socket.get(), kQuestion.data(), kQuestion.size(), MSG_NOSIGNAL) < 0) {
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
