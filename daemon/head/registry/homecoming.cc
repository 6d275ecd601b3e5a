#include "daemon/head/registry/homecoming.h"

#include <algorithm>

namespace sonde::tree {

void Homecoming::OnFailed(uint32_t parent, Nanos now) {
  const auto [at, first] = troubles_.try_emplace(parent);
  Trouble& trouble = at->second;
  // All children that a parent has complain at about the same time: that is one trouble.
  const Nanos since = now - trouble.last;
  if (!first && since > trouble.quiet) {
    trouble.quiet =
        since > trouble.quiet + kForgiven ? kQuiet : std::min(2 * trouble.quiet, kMostQuiet);
  }
  trouble.last = now;
}

std::vector<uint32_t> Homecoming::Due(Nanos now) {
  const size_t most = std::max(kAtOnce, placement_.present() / kShare);
  std::vector<uint32_t> due;
  std::unordered_map<uint32_t, size_t> to;
  for (const uint32_t node : placement_.away()) {
    if (due.size() == most) break;
    const uint32_t home = placement_.Home(node);
    const auto trouble = troubles_.find(home);
    if (trouble != troubles_.end() && now - trouble->second.last <= trouble->second.quiet) continue;
    if (to[home]++ < kOfOne) due.push_back(node);
  }
  std::erase_if(due, [this](uint32_t node) { return !placement_.Return(node); });
  std::erase_if(troubles_, [&](const auto& one) {
    return now - one.second.last > one.second.quiet + kForgiven;
  });
  return due;
}

}  // namespace sonde::tree
