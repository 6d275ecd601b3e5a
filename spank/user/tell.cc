#include "spank/user/tell.h"

#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <string>

#include "core/text/printable.h"
#include "launcher/error_stream.h"

extern "C" {
#include <slurm/slurm.h>
#include <slurm/spank.h>
}

namespace sonde::spank {
namespace {

// Of the process that has loaded the plugin.
const launch::ErrorStream users_stderr;

constexpr size_t kMostShown = 4096;  // bytes of a message

// Whether Slurm would write to the user, or where nobody reads; else to a log.
bool MayWrite() {
  switch (spank_context()) {
    case S_CTX_REMOTE:
    case S_CTX_SLURMD:
    case S_CTX_JOB_SCRIPT:
      return true;
    default:  // when srun ends Slurm no longer knows
      return users_stderr.open();
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

void WriteToUser(std::string_view text, const launch::Deadline& deadline) {
  while (!text.empty() && users_stderr.open()) {
    pollfd waiting{STDERR_FILENO, POLLOUT, 0};
    const int left = deadline.LeftMs();
    const int ready = ::poll(&waiting, 1, left);
    if (ready < 0 && errno == EINTR && left > 0) continue;
    if (ready <= 0) return;
    const ssize_t done = ::write(STDERR_FILENO, text.data(), text.size());
    if (done < 0 && errno != EINTR && errno != EAGAIN) return;
    if (done > 0) text.remove_prefix(static_cast<size_t>(done));
  }
}

}  // namespace sonde::spank
