#include "daemon/head/registry/registrations.h"

#include <utility>

namespace sonde::head {

std::optional<uint32_t> Registrations::IndexOf(const tree::Registration& who) const {
  const auto component = components_.find(who.job);
  if (component == components_.end()) return std::nullopt;
  const auto known = component->second.newest.find(who.node_id);
  if (known == component->second.newest.end()) return std::nullopt;
  return known->second;
}

std::optional<uint32_t> Registrations::Enter(const tree::Registration& who, uint32_t index) {
  const auto [known, added] = components_[who.job].newest.try_emplace(who.node_id, index);
  registered_ += added ? 1 : 0;
  if (added || known->second == index) return std::nullopt;
  return std::exchange(known->second, index);
}

bool Registrations::Expect(const tree::Registration& who) {
  uint32_t& nodes = components_[who.job].nodes;
  if (who.nodes <= nodes) return false;
  nodes = who.nodes;
  uint32_t sum = 0;
  for (const auto& [job, component] : components_) sum += component.nodes;
  if (sum <= expected_) return false;
  expected_ = sum;
  return true;
}

void Registrations::Inherit(const JobDescription& job) {
  expected_ = job.expected_nodes;
  for (uint32_t i = 0; i < job.nodes.size(); ++i) {
    auto& newest = components_[job.nodes[i].job].newest;
    registered_ += newest.insert_or_assign(job.nodes[i].node_id, i).second ? 1 : 0;
  }
}

}  // namespace sonde::head
