#include "daemon/collect/gpu/call_gate.h"

#include <algorithm>
#include <limits>

namespace sonde::collect::gpu {
namespace {

constexpr Nanos kShare = 100;

}  // namespace

void CallGate::Done(Outcome outcome, Nanos start, Nanos end) {
  const Nanos took = std::max<Nanos>(end - start, 0);
  const Nanos before = took_;
  took_ = took;
  missing_ = outcome != Outcome::kRead;
  switch (outcome) {
    case Outcome::kUnsupported:
      due_ = std::numeric_limits<Nanos>::max();
      break;
    case Outcome::kFailed:
      pause_ = std::clamp(2 * pause_, kFirstPause, kLongestPause);
      due_ = end + pause_;
      break;
    case Outcome::kRead:
      pause_ = 0;
      due_ = start + kShare * std::min(before, took);
      break;
  }
}

}  // namespace sonde::collect::gpu
