// A set of a step's nodes: whose samples a part of a tick has.
//
// Nodes are numbered from 0 in the order in which they came. A subtree's numbers lie close together
// where the tree follows these numbers; where it follows the network's switches they lie anywhere,
// and the set of a subtree is thousands of ranges. So a copy of a set of several ranges shares them
// with its original until one of the two changes: it costs nothing, and both are known to be equal
// (SharesWith).
//
// Thread safety: values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/bytes.h"

namespace sonde::tree {

class NodeSet {
 public:
  // Nodes of a step are fewer.
  static constexpr uint32_t kMaxNodes = 1u << 24;
  static constexpr size_t kMaxRanges = 1u << 16;

  NodeSet() = default;
  explicit NodeSet(uint32_t node) : one_{node, node} {}

  bool empty() const { return all().empty(); }
  size_t size() const;
  // Of consecutive nodes.
  size_t ranges() const { return all().size(); }
  // Memory beside the set itself.
  size_t bytes() const { return many_ == nullptr ? 0 : many_->ranges.capacity() * sizeof(Range); }
  // The first one; of an empty set kMaxNodes.
  uint32_t first() const { return empty() ? kMaxNodes : all().front().first; }
  // And the last one; the set is not empty.
  uint32_t last() const { return all().back().last; }
  bool Has(uint32_t node) const;
  // Nothing but this one.
  bool Is(uint32_t node) const { return ranges() == 1 && all().front() == Range{node, node}; }
  bool HasAll(const NodeSet& other) const;
  bool Intersects(const NodeSet& other) const;
  // One is a copy of the other, and of several ranges: they are equal, and nobody has to compare.
  bool SharesWith(const NodeSet& other) const { return many_ != nullptr && many_ == other.many_; }
  // Those that `other` does not have.
  NodeSet Without(const NodeSet& other) const;
  // Ascending.
  template <typename OnNode>
  void ForEach(OnNode on_node) const {
    for (const Range& r : all()) {
      for (uint32_t node = r.first; node <= r.last; ++node) on_node(node);
    }
  }

  // Ascending, of the nodes before `end` those that are not in it. What is in it costs as much as
  // its ranges.
  template <typename OnNode>
  void ForEachOther(uint32_t end, OnNode on_node) const {
    uint32_t node = 0;
    for (const Range& r : all()) {
      for (; node < end && node < r.first; ++node) on_node(node);
      node = r.last + 1;
      if (node >= end) return;
    }
    for (; node < end; ++node) on_node(node);
  }

  void Clear();
  void Set(uint32_t node) { *this = NodeSet(node); }
  void Add(const NodeSet& other);

  // The ranges as gaps and lengths.
  void Encode(ByteWriter& w) const;
  // Makes the reader bad if that is not what Encode writes.
  void Decode(ByteReader& r);

  bool operator==(const NodeSet& other) const;

 private:
  struct Range {
    uint32_t first;
    uint32_t last;
    bool operator==(const Range&) const = default;
  };
  struct Many {
    std::vector<Range> ranges;
    size_t size = 0;  // in nodes
  };

  std::span<const Range> all() const {
    if (many_ != nullptr) return many_->ranges;
    return {&one_, one_.first == kMaxNodes ? 0u : 1u};
  }
  // The first of these ranges that does not end before `node`.
  template <typename At>
  static At FirstFrom(At at, At end, uint32_t node, bool search);
  Many& Own();
  static void AddRange(Many& many, const Range& range);
  void Merge(const NodeSet& other);

  // The set of one range, which allocates nothing, or none; if many_ is nullptr.
  Range one_{kMaxNodes, kMaxNodes};
  // Its ranges: ascending, with at least one node between two. Changed by one owner alone.
  std::shared_ptr<Many> many_;
};

}  // namespace sonde::tree
