// Whose samples are missing in rows of the whole step, as a reduced value: 1 for each node that is
// there and not in the row, 0 for each that is. A node that has only just come need not be in a row
// yet, and counts from two periods later on.
//
// A row costs what its missing nodes, those that are gone and those that have only just come cost,
// and not what all do: in a large step somebody may be missing at every tick.
//
// Thread safety: the loop's thread only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/time.h"
#include "daemon/tree/node_set.h"
#include "series/store/reduced.h"

namespace sonde::head {

class MissingNodes {
 public:
  explicit MissingNodes(Nanos period) : period_(period) {}

  void OnNode(uint32_t index, Nanos now);
  void OnGone(uint32_t index);
  // Nodes that are not gone.
  size_t present() const { return present_; }

  // Of a row; rows come in the order of their ticks. No row has more nodes than are there, and then
  // nobody is looked at.
  Reduced OfRow(Nanos tick, const tree::NodeSet& nodes);
  // As of a row that has nobody.
  Reduced OfNoRow(Nanos tick) const { return Count(tick, {}); }

 private:
  bool Counts(uint32_t node, Nanos tick) const;
  Reduced Count(Nanos tick, const tree::NodeSet& nodes) const;

  const Nanos period_;
  std::vector<Nanos> joined_;  // by node; 0: gone
  size_t present_ = 0;
  std::vector<uint32_t> young_;  // those that did not count in the last row, each once
  std::vector<bool> is_young_;   // by node
};

}  // namespace sonde::head
