#include "insight/collective_waits.h"

#include <algorithm>
#include <cmath>

namespace sonde::insight {

CollectiveWaits::CollectiveWaits(size_t ticks, double tick_seconds)
    : tick_seconds_(tick_seconds), windows_((ticks + kCollectiveWindow - 1) / kCollectiveWindow) {}

void CollectiveWaits::Add(uint32_t rank, const Row& in_collectives) {
  for (size_t w = 0; w < windows_.size(); ++w) {
    const size_t begin = std::min(w * kCollectiveWindow, in_collectives.size());
    const size_t end = std::min(begin + kCollectiveWindow, in_collectives.size());
    double own = 0;
    size_t known = 0;
    for (size_t t = begin; t < end; ++t) {
      if (std::isnan(in_collectives[t])) continue;
      own += in_collectives[t] * tick_seconds_;
      ++known;
    }
    // A rank of which a part is missing would look like the last one.
    if (known == 0 || known < end - begin) continue;
    Window& window = windows_[w];
    window.sum += own;
    if (window.ranks++ == 0 || own < window.least) {
      window.least = own;
      window.last = rank;
    }
  }
}

std::map<uint32_t, double> CollectiveWaits::Awaited() const {
  std::map<uint32_t, double> out;
  for (const Window& window : windows_) {
    const double waited = window.sum - static_cast<double>(window.ranks) * window.least;
    if (waited > 0) out[window.last] += waited;
  }
  return out;
}

}  // namespace sonde::insight
