// When nodes that have left their parent go back to it.
//
// A parent that was silent, since its machine had too much to do, is left by its children, which
// makes the tree uneven and dear. Once nobody has complained of it for a while they go home, few at
// a time. If a parent fails again after that, its children wait twice as long: nothing flaps.
//
// Nothing here looks at the clock: times are monotonic.
//
// Thread safety: none; the loop's thread only.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "core/time.h"
#include "daemon/tree/placement.h"

namespace sonde::tree {

class Homecoming {
 public:
  // A parent is well after so long without complaints: at first, and at most. A complaint that is
  // older than kForgiven by then is forgotten.
  static constexpr Nanos kQuiet = 5 * kSecond;
  static constexpr Nanos kMostQuiet = 5 * 60 * kSecond;
  static constexpr Nanos kForgiven = 60 * kSecond;
  // So many nodes go home at a time: to one parent, and in all; in large steps one node of kShare.
  static constexpr size_t kOfOne = 2;
  static constexpr size_t kAtOnce = 8;
  static constexpr size_t kShare = 128;

  explicit Homecoming(Placement& placement) : placement_(placement) {}

  // A node could not reach `parent`, or heard nothing of it.
  void OnFailed(uint32_t parent, Nanos now);
  // Once a second or so: the nodes that go home now. The placement has their parents already; the
  // caller has to tell the nodes.
  std::vector<uint32_t> Due(Nanos now);

 private:
  struct Trouble {
    Nanos last = 0;
    Nanos quiet = kQuiet;
  };
  Placement& placement_;
  std::unordered_map<uint32_t, Trouble> troubles_;  // of those with children that are away
};

}  // namespace sonde::tree
