#include "daemon/head/registry/registrations.h"

#include <algorithm>

namespace sonde::head {

std::optional<uint32_t> Registrations::IndexOf(const tree::Registration& who) const {
  const auto known = newest_.find({who.job, who.node_id});
  if (known == newest_.end()) return std::nullopt;
  return known->second;
}

std::optional<uint32_t> Registrations::Enter(const tree::Registration& who, uint32_t index) {
  const auto [known, added] = newest_.try_emplace({who.job, who.node_id}, index);
  if (added || known->second == index) return std::nullopt;
  return std::exchange(known->second, index);
}

bool Registrations::Expect(const tree::Registration& who) {
  uint32_t& nodes = components_[who.job];
  nodes = std::max(nodes, who.nodes);
  uint32_t sum = 0;
  for (const auto& [job, count] : components_) sum += count;
  if (sum <= expected_) return false;
  expected_ = sum;
  return true;
}

void Registrations::Inherit(const JobDescription& job) {
  expected_ = job.expected_nodes;
  for (uint32_t i = 0; i < job.nodes.size(); ++i) {
    newest_[{job.nodes[i].job, job.nodes[i].node_id}] = i;
  }
}

}  // namespace sonde::head
