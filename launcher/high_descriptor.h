// Descriptors out of the way of the small fixed numbers that a daemon finds its own at.
//
// Thread safety: a function without state.
#pragma once

#include <fcntl.h>

#include "core/unique_fd.h"

namespace sonde::launch {

// The same open file at a number of 16 or more, closed on exec: a child can then put it on a small
// fixed number without closing another descriptor that happens to lie there. Below 64, as the first
// number beyond makes the kernel enlarge the table, for which a process with threads waits until
// every processor has passed a quiet state: 14 ms.
inline void MoveUp(UniqueFd& fd) {
  constexpr int kHigh = 16;
  if (!fd || fd.get() >= kHigh) return;
  const int high = ::fcntl(fd.get(), F_DUPFD_CLOEXEC, kHigh);
  if (high >= 0) fd.Reset(high);
}

}  // namespace sonde::launch
