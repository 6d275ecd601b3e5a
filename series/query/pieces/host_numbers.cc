#include "series/query/pieces/host_numbers.h"

#include <bit>
#include <functional>
#include <limits>
#include <string_view>

namespace sonde {
namespace {

constexpr uint32_t kFree = std::numeric_limits<uint32_t>::max();

}  // namespace

// A table with open addressing, of each host's first node: very many nodes are numbered while
// somebody waits for an answer.
HostNumbers::HostNumbers(const std::vector<NodeInfo>& nodes, Same same) : hosts_(nodes.size()) {
  const std::hash<std::string_view> hash;
  const bool by_job = same == Same::kNode;
  const auto are_same = [&](const NodeInfo& a, const NodeInfo& b) {
    return a.host == b.host && (!by_job || a.job == b.job);
  };
  const size_t slots = std::bit_ceil(2 * nodes.size() + 1);
  std::vector<uint32_t> first(slots, kFree);
  for (uint32_t node = 0; node < nodes.size(); ++node) {
    const NodeInfo& info = nodes[node];
    size_t slot = hash(info.host) & (slots - 1);
    while (first[slot] != kFree && !are_same(nodes[first[slot]], info)) {
      slot = (slot + 1) & (slots - 1);
    }
    if (first[slot] == kFree) {
      first[slot] = node;
      hosts_[node] = size_++;
    } else {
      hosts_[node] = hosts_[first[slot]];
    }
  }
}

}  // namespace sonde
