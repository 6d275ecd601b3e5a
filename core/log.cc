#include "core/log.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <syslog.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <memory>
#include <mutex>

#include "core/text/printable.h"
#include "core/time.h"
#include "core/unique_fd.h"

namespace sonde::log {
namespace {

std::atomic<Level> least_level = Level::kInfo;

// Bytes of a message. The system's log takes no datagram of any length.
constexpr size_t kMostShown = 4096;

// Where lines go.
struct Target {
  std::mutex mutex;
  std::string program = "sonde";
  UniqueFd file;  // none: stderr
  bool discard = false;
  std::string system_log;  // path of its socket; "": none
  UniqueFd system;         // connected to it
};
// Never destroyed: threads may log until the process has ended.
Target& TheTarget() {
  static Target* const target = std::make_unique<Target>().release();
  return *target;
}

std::string_view WordOf(Level level) {
  switch (level) {
    case Level::kDebug:
      return "debug";
    case Level::kInfo:
      return "info";
    case Level::kWarning:
      return "warning";
    case Level::kError:
      return "error";
  }
  return "info";
}

std::string StampOf(Nanos now) {
  const auto seconds = static_cast<time_t>(now / kSecond);
  tm utc{};
  gmtime_r(&seconds, &utc);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:03}Z", utc.tm_year + 1900,
                     utc.tm_mon + 1, utc.tm_mday, utc.tm_hour, utc.tm_min, utc.tm_sec,
                     now % kSecond / kMillisecond);
}

Result<UniqueFd> OpenFile(const std::string& path) {
  // Not blocking: somebody else's FIFO would hold us until there is a reader.
  UniqueFd file(
      ::open(path.c_str(),
             O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0600));
  if (!file) return SystemError("open log file " + path);
  struct stat info {};
  if (::fstat(file.get(), &info) != 0) return SystemError("look at log file " + path);
  if (!S_ISREG(info.st_mode) || info.st_uid != ::geteuid() || info.st_nlink != 1) {
    return Status(Code::kPermission,
                  fmt::format("log file {} is not a regular file of this user's with "
                              "one name: somebody else has put it there",
                              path));
  }
  return file;
}

// A daemon of the system's that hangs or is gone holds nobody up.
UniqueFd ConnectTo(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof(address.sun_path)) return UniqueFd();
  std::memcpy(address.sun_path, path.data(), path.size());
  UniqueFd fd(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd ||
      ::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
    return UniqueFd();
  }
  return fd;
}

// As syslog(3) does, which may block.
void WriteToSystem(Target& target, Level level, std::string_view line) {
  if (target.system_log.empty() || level < Level::kWarning) return;
  const time_t now = ::time(nullptr);
  tm local{};
  ::localtime_r(&now, &local);
  char stamp[32] = "";
  constexpr const char* kMonths[] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                     "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
  std::snprintf(stamp, sizeof(stamp), "%s %2d %02d:%02d:%02d", kMonths[local.tm_mon], local.tm_mday,
                local.tm_hour, local.tm_min, local.tm_sec);
  const int priority = LOG_USER | (level == Level::kError ? LOG_ERR : LOG_WARNING);
  const std::string packet = fmt::format("<{}>{} {}[{}]: {}: {}", priority, stamp, target.program,
                                         ::getpid(), WordOf(level), line);
  // Once more if the system's daemon was started anew.
  for (int attempt = 0; attempt < 2; ++attempt) {
    if (!target.system) target.system = ConnectTo(target.system_log);
    if (!target.system) return;
    const ssize_t sent =
        ::send(target.system.get(), packet.data(), packet.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent >= 0 || errno == EAGAIN || errno == EMSGSIZE) return;
    target.system.Reset();
  }
}

void WriteTo(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(fd, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return;
    text.remove_prefix(static_cast<size_t>(written));
  }
}

}  // namespace

Status Open(std::string_view program, const std::string& path, Level level) {
  UniqueFd file;
  if (!path.empty()) {
    Result<UniqueFd> opened = OpenFile(path);
    if (!opened.ok()) return opened.status();
    file = *std::move(opened);
  }
  Target& target = TheTarget();
  const std::lock_guard lock(target.mutex);
  target.program = program;
  target.file = std::move(file);
  target.discard = false;
  least_level = level;
  return {};
}

void Discard(std::string_view program) {
  Target& target = TheTarget();
  const std::lock_guard lock(target.mutex);
  target.program = program;
  target.file.Reset();
  target.discard = true;
}

void AddSystemLog(const std::string& path) {
  Target& target = TheTarget();
  const std::lock_guard lock(target.mutex);
  target.system_log = path;
  target.system.Reset();
}

Result<Level> ParseLevel(std::string_view text) {
  for (const Level level : {Level::kDebug, Level::kInfo, Level::kWarning, Level::kError}) {
    if (text == WordOf(level)) return level;
  }
  return Status(Code::kInvalid,
                fmt::format("'{}' is no log level; expected debug, info, warning or "
                            "error",
                            text));
}

bool Enabled(Level level) { return level >= least_level; }

// In one write, so that lines of several processes in one file stay whole. A line that cannot be
// written is lost: there is nobody to tell.
void Write(Level level, std::string_view message) {
  const std::string line = OneLine(message, kMostShown);
  Target& target = TheTarget();
  const std::lock_guard lock(target.mutex);
  WriteToSystem(target, level, line);
  if (target.discard) return;
  WriteTo(target.file ? target.file.get() : STDERR_FILENO,
          fmt::format("{} {}[{}] {}: {}\n", StampOf(Clock::System().Now()), target.program,
                      ::getpid(), WordOf(level), line));
}

}  // namespace sonde::log
