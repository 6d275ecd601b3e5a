#include "daemon/head/record/end_state.h"

#include <csignal>

namespace sonde::head {

bool EndUnknown(const tree::Bye& ends) { return ends.launcher_gone && ends.exit_status == 0; }

EndState StateOf(const tree::Bye& ends, double out_of_memory_kills) {
  if (EndUnknown(ends)) return EndState::kLost;
  const int signal = ends.exit_status & 0x7f;
  // A shell whose program was killed ends with 128 and the signal.
  const bool killed = signal == SIGKILL || ends.exit_status == (128 + SIGKILL) << 8;
  if (killed && out_of_memory_kills > 0) return EndState::kOutOfMemory;
  if (signal == SIGTERM || signal == SIGKILL || signal == SIGINT) return EndState::kCancelled;
  return ends.exit_status == 0 ? EndState::kCompleted : EndState::kFailed;
}

}  // namespace sonde::head
