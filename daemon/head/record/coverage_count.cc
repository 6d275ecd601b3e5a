#include "daemon/head/record/coverage_count.h"

#include <algorithm>

namespace sonde::head {

CoverageCount::Node& CoverageCount::Of(uint32_t node) {
  if (node >= nodes_.size()) nodes_.resize(node + 1);
  return nodes_[node];
}

void CoverageCount::OnRegistered(uint32_t node, Nanos now) {
  Node& n = Of(node);
  if (n.state != State::kUnknown) return;
  Come(n);
  // A tick that fell into its registration is not expected of a node.
  CountFrom(n, FirstAfter(now + period_));
  ++came_;
}

// Usually all of them had samples before and owe this one: that costs nothing for each node.
void CoverageCount::OnRow(Nanos tick, const tree::NodeSet& nodes) {
  told_.got += nodes.size();
  const bool newer = tick > newest_;
  newest_ = std::max(newest_, tick);
  if (newer && nodes.SharesWith(plain_)) return;
  if (newer && seen_.HasAll(nodes) && !closed_.Intersects(nodes)) {
    plain_ = nodes;
    return;
  }
  nodes.ForEach([&](uint32_t node) { Count(Of(node), tick); });
  seen_.Add(nodes);
}

// The node had a sample at that tick, so it owed it.
void CoverageCount::Count(Node& node, Nanos tick) {
  switch (node.state) {
    case State::kUnknown:
    case State::kHere:
      return CountFrom(node, tick);
    case State::kClosed: {
      const uint64_t before = Ticks(node.first, node.last);
      if (before == 0) node.first = node.last = tick;
      CountFrom(node, tick);
      node.last = std::max(node.last, tick);
      told_.expected += Ticks(node.first, node.last) - before;
      return;
    }
    case State::kSaidBye:
      return;
  }
}

void CoverageCount::CountFrom(Node& node, Nanos tick) {
  if (node.first != 0 && node.first <= tick) return;
  const bool here = node.state == State::kHere;
  if (here) Go(node, State::kUnknown);
  node.first = tick;
  if (here) Come(node);
}

void CoverageCount::Come(Node& node) {
  node.state = State::kHere;
  ++here_[node.first];
}

void CoverageCount::Go(Node& node, State state) {
  if (node.state == State::kHere) {
    const auto at = here_.find(node.first);
    if (--at->second == 0) here_.erase(at);
  }
  node.state = state;
}

void CoverageCount::OnBye(uint32_t node, Nanos now, uint64_t ticks, uint64_t skipped) {
  Node& n = Of(node);
  if (n.state != State::kHere) return;
  Go(n, State::kSaidBye);
  ++byes_;
  // One more on either side: clocks of nodes differ a little.
  ticks = std::min(ticks, static_cast<uint64_t>(std::max<Nanos>(now - start_, 0) / period_) + 2);
  told_.expected += ticks;
  told_.skipped += std::min(skipped, ticks);
}

void CoverageCount::OnReplaced(uint32_t node, Nanos now) {
  if (Of(node).state != State::kHere) return;
  Close(node, now / period_ * period_);
  --came_;
}

void CoverageCount::OnGoneBefore(uint32_t node) {
  Close(node, 0);
  ++came_;
}

void CoverageCount::Close(uint32_t node, Nanos last) {
  Node& n = Of(node);
  Go(n, State::kClosed);
  n.last = last;
  told_.expected += Ticks(n.first, n.last);
  closed_.Add(tree::NodeSet(node));
  plain_.Clear();
}

uint64_t CoverageCount::Ticks(Nanos first, Nanos last) const {
  return first == 0 || last < first ? 0 : static_cast<uint64_t>((last - first) / period_) + 1;
}

Coverage CoverageCount::Now(uint32_t expected_nodes) const {
  Coverage now = told_;
  for (const auto& [first, count] : here_) now.expected += count * Ticks(first, newest_);
  if (came_ < expected_nodes) {
    now.expected += (expected_nodes - came_) * Ticks(FirstAfter(start_ + kStartGrace), newest_);
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
