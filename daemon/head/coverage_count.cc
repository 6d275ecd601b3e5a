#include "daemon/head/coverage_count.h"

#include <algorithm>

namespace sonde::head {

CoverageCount::Node& CoverageCount::Of(uint32_t node) {
  if (node >= nodes_.size()) nodes_.resize(node + 1);
  return nodes_[node];
}

void CoverageCount::OnSchema(uint32_t node, Nanos now) {
  if (Node& n = Of(node); n.since == 0) n.since = now;
}

void CoverageCount::OnRow(Nanos tick, uint32_t nodes) {
  newest_ = std::max(newest_, tick);
  told_.got += nodes;
}

void CoverageCount::OnBye(uint32_t node, Nanos now, uint64_t ticks, uint64_t skipped) {
  Node& n = Of(node);
  if (n.gone) return;
  n.gone = true;
  ++byes_;
  // One more on either side: clocks of nodes differ a little.
  ticks = std::min(ticks, static_cast<uint64_t>(std::max<Nanos>(now - start_, 0) / period_) + 2);
  told_.expected += ticks;
  told_.skipped += std::min(skipped, ticks);
}

void CoverageCount::OnReplaced(uint32_t node, Nanos now) {
  Node& n = Of(node);
  if (n.gone) return;
  n.gone = true;
  if (n.since != 0) told_.expected += Ticks(n.since + period_, now);
}

uint64_t CoverageCount::Ticks(Nanos after, Nanos to) const {
  return to <= after ? 0 : static_cast<uint64_t>(to / period_ - after / period_);
}

Coverage CoverageCount::Now(uint32_t expected_nodes) const {
  Coverage now = told_;
  for (const Node& node : nodes_) {
    // A tick that fell into its registration is not expected of a node.
    if (!node.gone && node.since != 0) now.expected += Ticks(node.since + period_, newest_);
  }
  if (nodes_.size() < expected_nodes) {
    now.expected += (expected_nodes - nodes_.size()) * Ticks(start_ + kStartGrace, newest_);
  }
  now.expected = std::max(now.expected, now.got);
  return now;
}

Coverage CoverageCount::AtEnd(uint32_t expected_nodes) const {
  Coverage end = Now(expected_nodes);
  end.expected += expected_nodes;
  end.got += byes_;
  return end;
}

}  // namespace sonde::head
