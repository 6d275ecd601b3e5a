#include "core/log.h"

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <ctime>
#include <memory>
#include <mutex>

#include "core/time.h"
#include "core/unique_fd.h"

namespace sonde::log {
namespace {

std::atomic<Level> least_level = Level::kInfo;

// Where lines go.
struct Target {
  std::mutex mutex;
  std::string program = "sonde";
  UniqueFd file;  // none: stderr
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

}  // namespace

Status Open(std::string_view program, const std::string& path, Level level) {
  UniqueFd file;
  if (!path.empty()) {
    file = UniqueFd(::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
    if (!file) return SystemError("open log file " + path);
  }
  Target& target = TheTarget();
  const std::lock_guard lock(target.mutex);
  target.program = program;
  target.file = std::move(file);
  least_level = level;
  return {};
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
void Write(Level level, std::string_view line) {
  Target& target = TheTarget();
  const std::lock_guard lock(target.mutex);
  const std::string whole = fmt::format("{} {}[{}] {}: {}\n", StampOf(Clock::System().Now()),
                                        target.program, ::getpid(), WordOf(level), line);
  const int fd = target.file ? target.file.get() : STDERR_FILENO;
  std::string_view rest = whole;
  while (!rest.empty()) {
    const ssize_t written = ::write(fd, rest.data(), rest.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return;
    rest.remove_prefix(static_cast<size_t>(written));
  }
}

}  // namespace sonde::log
