// Where a block of series belongs.
//
// Thread safety: values.
#pragma once

#include <compare>
#include <cstdint>
#include <string>

namespace sonde {

// The node index under which the reduced series of the whole step are stored.
inline constexpr uint32_t kReducedNode = 0xffffffff;

// Where a block belongs. Together with the sequence it is the block's identity: the same block
// stored twice is stored once.
struct BlockKey {
  uint32_t node = 0;
  std::string group;  // "os", "task", "app", ...
  uint64_t sequence = 0;
  auto operator<=>(const BlockKey&) const = default;
};

}  // namespace sonde
