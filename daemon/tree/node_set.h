// A set of a step's nodes: whose samples a part of a tick has.
//
// Nodes are numbered from 0 in the order in which they came, and a subtree's numbers lie close
// together, so a set is a few ranges whatever its size.
//
// Thread safety: values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/bytes.h"

namespace sonde::tree {

class NodeSet {
 public:
  // Nodes of a step are fewer.
  static constexpr uint32_t kMaxNodes = 1u << 24;
  static constexpr size_t kMaxRanges = 1u << 16;

  NodeSet() = default;
  explicit NodeSet(uint32_t node) : ranges_{{node, node}} {}

  bool empty() const { return ranges_.empty(); }
  size_t size() const;
  // The first one; of an empty set kMaxNodes.
  uint32_t first() const { return ranges_.empty() ? kMaxNodes : ranges_.front().first; }
  bool Has(uint32_t node) const;
  // Nothing but this one.
  bool Is(uint32_t node) const {
    return ranges_.size() == 1 && ranges_[0].first == node && ranges_[0].last == node;
  }
  bool HasAll(const NodeSet& other) const;
  bool Intersects(const NodeSet& other) const;
  // Those that `other` does not have.
  NodeSet Without(const NodeSet& other) const;
  // Ascending.
  template <typename OnNode>
  void ForEach(OnNode on_node) const {
    for (const Range& r : ranges_) {
      for (uint32_t node = r.first; node <= r.last; ++node) on_node(node);
    }
  }

  void Clear() { ranges_.clear(); }
  void Set(uint32_t node) { ranges_.assign(1, {node, node}); }
  void Add(const NodeSet& other);

  // The ranges as gaps and lengths.
  void Encode(ByteWriter& w) const;
  // Makes the reader bad if that is not what Encode writes.
  void Decode(ByteReader& r);

  bool operator==(const NodeSet&) const = default;

 private:
  struct Range {
    uint32_t first;
    uint32_t last;
    bool operator==(const Range&) const = default;
  };
  void Merge(const std::vector<Range>& theirs);

  // Ascending, with at least one node between two.
  std::vector<Range> ranges_;
};

}  // namespace sonde::tree
