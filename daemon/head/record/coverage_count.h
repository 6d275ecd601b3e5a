// How many samples a complete record of the step would have, and how many are in it.
//
// A node says in its goodbye how many ticks fell into its time. Until then, and for a lost node,
// they are counted from its first one to the newest: the first is the tick of its first sample, or
// the second after its registration, whichever is earlier. A node that never came owes every tick
// from kStartGrace on. Each node's last word is one sample more.
//
// Thread safety: none; the loop's thread.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "core/job.h"
#include "core/time.h"
#include "daemon/tree/node_set.h"

namespace sonde::head {

class CoverageCount {
 public:
  // From then on a node that has not registered is counted as missing.
  static constexpr Nanos kStartGrace = 3 * kSecond;

  CoverageCount(Nanos start, Nanos period) : start_(start), period_(period) {}

  // The node sends from now on, to any parent. When it comes back, a second call does nothing.
  void OnRegistered(uint32_t node, Nanos now);
  // Samples of `nodes` are in the record: those of a tick, or of a part that came late.
  void OnRow(Nanos tick, const tree::NodeSet& nodes);
  // Its last word: `ticks` fell into its time, for `skipped` of them it took no sample. More than
  // there were since the start are not believed.
  void OnBye(uint32_t node, Nanos now, uint64_t ticks, uint64_t skipped);
  // It will not come back: another daemon samples its host from now on.
  void OnReplaced(uint32_t node, Nanos now);
  // It was gone before this head counted anything.
  void OnGoneBefore(uint32_t node);

  Coverage Now(uint32_t expected_nodes) const;
  // The same after the end, when every node should have said its last word.
  Coverage AtEnd(uint32_t expected_nodes) const;

 private:
  enum class State : uint8_t {
    kUnknown,  // it has not come
    kHere,     // or lost: owes the ticks from `first` to the newest
    kClosed,   // owes those from `first` to `last`, which have counted
    kSaidBye,  // what it said has counted
  };
  // Ticks; 0: none.
  struct Node {
    State state = State::kUnknown;
    Nanos first = 0;
    Nanos last = 0;
  };

  Node& Of(uint32_t node);
  void Count(Node& node, Nanos tick);
  void CountFrom(Node& node, Nanos tick);
  void Come(Node& node);
  void Go(Node& node, State state);
  void Close(uint32_t node, Nanos last);
  // Of the ticks from `first` to `last`.
  uint64_t Ticks(Nanos first, Nanos last) const;
  Nanos FirstAfter(Nanos time) const { return (time / period_ + 1) * period_; }

  Nanos start_;
  Nanos period_;
  Nanos newest_ = 0;
  std::vector<Node> nodes_;
  std::map<Nanos, uint64_t> here_;  // nodes that are, by their first ticks: a few of these
  tree::NodeSet seen_;              // had samples in a row
  tree::NodeSet closed_;            // owe no newer ticks, but may have been in some that come late
  tree::NodeSet plain_;             // of a newer row: all seen, none closed
  uint32_t came_ = 0;               // nodes, of two daemons of one host only one
  uint64_t byes_ = 0;
  Coverage told_;  // `expected` of closed ones and those that said goodbye; `got` of all
};

}  // namespace sonde::head
