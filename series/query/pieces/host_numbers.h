// Which nodes of a step are daemons of the same host, one started anew after the other: hosts as
// numbers, in the order in which they first came.
//
// Thread safety: values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/job.h"

namespace sonde {

class HostNumbers {
 public:
  // kNode: components of a het step may share a host, and their nodes are different ones. kName:
  // hosts are told apart by their names alone, as the tag `host` does.
  enum class Same : unsigned char { kNode, kName };
  HostNumbers(const std::vector<NodeInfo>& nodes, Same same);

  // How many hosts there are.
  size_t size() const { return size_; }
  // The host of a node, by the node's index.
  uint32_t operator[](size_t node) const { return hosts_[node]; }

 private:
  uint32_t size_ = 0;
  std::vector<uint32_t> hosts_;  // by node
};

}  // namespace sonde
