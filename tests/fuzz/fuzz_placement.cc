// SwitchesOf and Placement: what nodes tell of their switches may be anything, and they come, go,
// move and return in any order. What placement.h says holds at any time does.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "core/bytes.h"
#include "daemon/tree/placement.h"

namespace {

using sonde::tree::kHeadIndex;
using sonde::tree::Placement;

constexpr size_t kMostNodes = 200;

void Check(bool holds) {
  if (!holds) std::abort();
}

void CheckAll(const Placement& tree, uint32_t fanout) {
  Check(tree.Children(kHeadIndex).size() <= fanout);
  for (uint32_t i = 0; i < tree.size(); ++i) {
    Check(tree.Children(i).size() <= fanout);
    if (!tree.Present(i)) continue;
    uint32_t steps = 0;
    for (uint32_t at = i; at != kHeadIndex; at = tree.Parent(at)) {
      Check(tree.Present(at) && ++steps <= tree.size());
    }
    Check(tree.Depth(i) == steps);
    const auto siblings = tree.Children(tree.Parent(i));
    Check(std::count(siblings.begin(), siblings.end(), i) == 1);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  sonde::ByteReader in(std::string_view(reinterpret_cast<const char*>(data), size));
  const uint32_t fanout = 2 + in.Fixed<uint8_t>() % 6;
  Placement tree(fanout, in.Fixed<uint8_t>());
  while (in.ok() && in.left() > 0) {
    const auto kind = in.Fixed<uint8_t>();
    if (kind % 5 == 0 || tree.size() == 0) {
      if (tree.size() >= kMostNodes) break;
      const std::string_view address = in.Text(512);
      const std::string_view pattern = in.Text(512);
      const std::string switches = sonde::tree::SwitchesOf(address, pattern);
      Check(switches.size() <= sonde::tree::kMaxTopology);
      // A node may say what is none, too.
      tree.Add(kind % 2 == 0 ? std::string_view(switches) : address);
    } else {
      const uint32_t node = in.Fixed<uint8_t>() % static_cast<uint32_t>(tree.size());
      if (kind % 5 == 1) tree.Remove(node);
      if (kind % 5 == 2 && !tree.Present(node)) tree.AddAgain(node, in.Text(512));
      if (kind % 5 == 3 && tree.Present(node)) {
        const std::vector<uint32_t> avoid = {tree.Parent(node)};
        tree.Move(node, avoid);
      }
      if (kind % 5 == 4 && tree.away().contains(node)) tree.Return(node);
    }
    CheckAll(tree, fanout);
  }
  return 0;
}
