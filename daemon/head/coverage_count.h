// How many samples a complete record of the step would have, and how many are in it.
//
// A node that has said goodbye tells itself how many ticks fell into its time. Until then, and for
// a node that was lost, they are counted from its first schema to the newest tick; a node that
// never came owes every tick from kStartGrace on. Each node's last word is one sample more.
//
// Thread safety: none; the loop's thread.
#pragma once

#include <cstdint>
#include <vector>

#include "core/job.h"
#include "core/time.h"

namespace sonde::head {

class CoverageCount {
 public:
  // From then on a node that has not registered is counted as missing.
  static constexpr Nanos kStartGrace = 3 * kSecond;

  CoverageCount(Nanos start, Nanos period) : start_(start), period_(period) {}

  // Its first schema: from now on it sends.
  void OnSchema(uint32_t node, Nanos now);
  // Samples of `nodes` nodes are in the record: a tick's, or a part of one that came late.
  void OnRow(Nanos tick, uint32_t nodes);
  // Its last word: `ticks` fell into its time, for `skipped` of them it took no sample. More than
  // there were since the start are not believed.
  void OnBye(uint32_t node, Nanos now, uint64_t ticks, uint64_t skipped);

  // It will not come back: another daemon samples its host from now on.
  void OnReplaced(uint32_t node, Nanos now);

  Coverage Now(uint32_t expected_nodes) const;
  // The same after the end, when every node should have said its last word.
  Coverage AtEnd(uint32_t expected_nodes) const;

 private:
  struct Node {
    Nanos since = 0;  // 0: sends nothing yet
    bool gone = false;
  };
  Node& Of(uint32_t node);
  uint64_t Ticks(Nanos after, Nanos to) const;

  Nanos start_;
  Nanos period_;
  Nanos newest_ = 0;
  std::vector<Node> nodes_;
  uint64_t byes_ = 0;
  Coverage told_;  // `expected` and `skipped` of those that said goodbye; `got` of all
};

}  // namespace sonde::head
