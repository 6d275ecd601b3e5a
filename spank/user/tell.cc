#include "spank/user/tell.h"

#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdarg>
#include <cstdio>
#include <string>

#include "core/text/printable.h"
#include "core/unique_fd.h"
#include "launcher/error_stream.h"

extern "C" {
#include <slurm/slurm.h>
#include <slurm/spank.h>
}

namespace sonde::spank {
namespace {

// Of the process that has loaded the plugin.
const launch::ErrorStream users_stderr;

// A message with what Slurm puts in front of it: a pipe that has room takes so much at once.
constexpr size_t kMostShown = PIPE_BUF - 128;

// Whether somebody reads from stderr and it has room, a pipe for PIPE_BUF bytes.
bool WaitForRoom(const launch::Deadline& deadline) {
  for (;;) {
    pollfd waiting{STDERR_FILENO, POLLOUT, 0};
    const int left = deadline.LeftMs();
    const int ready = ::poll(&waiting, 1, left);
    if (ready < 0 && errno == EINTR && left > 0) continue;
    return ready > 0 && (waiting.revents & (POLLERR | POLLHUP)) == 0;
  }
}

// Slurm's own writing waits for a reader without end. Who did not read once is not waited for
// again.
bool HasRoomForMessage() {
  static std::chrono::milliseconds patience{500};
  if (WaitForRoom(launch::Deadline(patience))) return true;
  patience = std::chrono::milliseconds(0);
  return false;
}

// Whether Slurm would write to the user, or where nobody reads; else to a log.
bool MayWrite() {
  switch (spank_context()) {
    case S_CTX_REMOTE:
    case S_CTX_SLURMD:
    case S_CTX_JOB_SCRIPT:
      return true;
    default:  // when srun ends Slurm no longer knows
      return users_stderr.open() && HasRoomForMessage();
  }
}

std::string Format(const char* format, va_list arguments) {
  va_list again;
  va_copy(again, arguments);
  const int size = std::vsnprintf(nullptr, 0, format, again);
  va_end(again);
  std::string text(size > 0 ? static_cast<size_t>(size) : 0, '\0');
  std::vsnprintf(text.data(), text.size() + 1, format, arguments);
  return text;
}

// By calls of Slurm's functions, not by their addresses: `sonde doctor` loads the plugin without
// Slurm.
template <typename Write>
void Tell(const char* format, va_list arguments, const Write& write) {
  if (MayWrite()) write(OneLine(Format(format, arguments), kMostShown).c_str());
}

}  // namespace

#define SONDE_TELL(name)                                                   \
  void name(const char* format, ...) {                                     \
    va_list arguments;                                                     \
    va_start(arguments, format);                                           \
    Tell(format, arguments, [](const char* line) { ::name("%s", line); }); \
    va_end(arguments);                                                     \
  }

SONDE_TELL(slurm_error)
SONDE_TELL(slurm_info)
SONDE_TELL(slurm_verbose)
SONDE_TELL(slurm_debug)
SONDE_TELL(slurm_spank_log)
#undef SONDE_TELL

// Not blocking, with a description of its own: that of descriptor 2 may be shared with other
// processes, such as the user's shell, which expect it to block. Other processes may also fill a
// pipe that had room a moment ago. None for a file, which would be written from its beginning, and
// for a socket, which cannot be opened.
UniqueFd OpenAnew() {
  struct stat info {};
  if (::fstat(STDERR_FILENO, &info) != 0) return UniqueFd();
  if (!S_ISFIFO(info.st_mode) && !S_ISCHR(info.st_mode)) return UniqueFd();
  return UniqueFd(
      ::open("/proc/self/fd/2", O_WRONLY | O_APPEND | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
}

bool WriteToUser(std::string_view text, const launch::Deadline& deadline) {
  const UniqueFd own = OpenAnew();
  const int fd = own ? own.get() : STDERR_FILENO;
  while (!text.empty()) {
    if (!users_stderr.open() || !WaitForRoom(deadline)) return false;
    // More would wait for a reader where the descriptor blocks.
    const ssize_t done = ::write(fd, text.data(), std::min<size_t>(text.size(), PIPE_BUF));
    if (done < 0 && errno != EINTR && errno != EAGAIN) return false;
    if (done > 0) text.remove_prefix(static_cast<size_t>(done));
    // Some terminals say that they have room, and take nothing.
    if (done <= 0 && deadline.LeftMs() == 0) return false;
    if (done <= 0) ::poll(nullptr, 0, 5);
  }
  return true;
}

}  // namespace sonde::spank
