#include "core/niceness.h"

#include <sys/resource.h>

#include <algorithm>

namespace sonde {

// On Linux these are of the calling thread, not of the whole process.
void BeNicer(int more) {
  constexpr int kMost = 19;
  if (more <= 0) return;
  const int now = getpriority(PRIO_PROCESS, 0);
  (void)setpriority(PRIO_PROCESS, 0, std::min(now + more, kMost));
}

}  // namespace sonde
