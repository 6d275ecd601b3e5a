// Moves descriptors away from the small fixed numbers at which a daemon finds its own.
//
// Thread safety: a function without state.
#pragma once

#include <fcntl.h>

#include "core/unique_fd.h"

namespace sonde::launch {

// Moves the open file to a number of 16 or more, closed on exec: a child can then put it on a small
// fixed number without closing another descriptor that lies there. The number stays below 64: at 64
// the kernel enlarges the table, and then a process with threads waits until every processor has
// passed a quiet state, 14 ms.
inline void MoveUp(UniqueFd& fd) {
  constexpr int kHigh = 16;
  if (!fd || fd.get() >= kHigh) return;
  const int high = ::fcntl(fd.get(), F_DUPFD_CLOEXEC, kHigh);
  if (high >= 0) fd.Reset(high);
}

}  // namespace sonde::launch
