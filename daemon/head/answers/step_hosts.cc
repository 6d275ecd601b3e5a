#include "daemon/head/answers/step_hosts.h"

#include <algorithm>
#include <limits>

#include "series/query/pieces/host_numbers.h"

namespace sonde::head {
namespace {

constexpr uint32_t kNoNode = std::numeric_limits<uint32_t>::max();

// Hosts' names are the same as hosts, but in a het step.
bool IsOneComponent(const JobDescription& job) {
  return std::all_of(job.nodes.begin(), job.nodes.end(),
                     [&](const NodeInfo& node) { return node.job == job.nodes.front().job; });
}

}  // namespace

StepHosts::StepHosts(const JobDescription& job)
    : StepHosts(job, HostNumbers(job.nodes, HostNumbers::Same::kNode)) {}

StepHosts::StepHosts(const JobDescription& job, const HostNumbers& hosts)
    : hosts_(static_cast<uint32_t>(hosts.size())), times_(job.nodes, hosts) {
  FindNewest(job, hosts);
  if (IsOneComponent(job)) {
    FindAnew(job, hosts);
  } else {
    FindAnew(job, HostNumbers(job.nodes, HostNumbers::Same::kName));
  }
  if (job.nodes.size() == 1) only_ = job.nodes.front().host;
}

void StepHosts::FindNewest(const JobDescription& job, const HostNumbers& hosts) {
  kinds_.resize(job.nodes.size());
  std::vector<uint32_t> newest(hosts.size(), kNoNode);
  for (uint32_t i = 0; i < kinds_.size(); ++i) {
    const NodeInfo& node = job.nodes[i];
    uint32_t& known = newest[hosts[i]];
    if (known != kNoNode) {
      kinds_[known].newest = false;
      one_before_.emplace_hint(one_before_.end(), i, known);
    }
    known = i;
    kinds_[i] = {true, node.IsGone(), node.lost, !node.host.empty()};
    connected_ += node.IsGone() ? 0 : 1;
  }
  in_rows_.expected = std::max(hosts_, job.expected_nodes);
  for (const uint32_t node : newest) in_rows_.there += job.nodes[node].lost ? 0 : 1;
}

// Who has never come has no series.
void StepHosts::FindAnew(const JobDescription& job, const HostNumbers& names) {
  if (names.size() == job.nodes.size()) return;
  std::vector<uint32_t> daemons(names.size());
  std::vector<bool> is_gone(names.size());
  for (uint32_t i = 0; i < job.nodes.size(); ++i) {
    ++daemons[names[i]];
    if (job.nodes[i].IsGone()) is_gone[names[i]] = true;
  }
  for (uint32_t i = 0; i < job.nodes.size(); ++i) {
    const NodeInfo& node = job.nodes[i];
    if (daemons[names[i]] < 2 || !is_gone[names[i]] || node.host.empty()) continue;
    const auto [at, is_new] = anew_.try_emplace(node.host, Anew{node.joined, 0, {}});
    Anew& host = at->second;
    host.first = std::min(host.first, node.joined);
    host.newest = node.joined;
    host.nodes.push_back(i);
  }
}

bool StepHosts::Is(uint32_t node, const NodeInfo& now) const {
  return kinds_[node].gone == now.IsGone() && kinds_[node].lost == now.lost;
}

bool StepHosts::HasOlder(uint32_t node, const tree::NodeSet& who) const {
  for (auto at = one_before_.find(node); at != one_before_.end();
       at = one_before_.find(at->second)) {
    if (who.Has(at->second)) return true;
  }
  return false;
}

WhoAnswers StepHosts::SortOut(const tree::NodeSet& who, uint32_t unknown) const {
  WhoAnswers told;
  told.expected = in_rows_.expected;
  told.answered = hosts_;
  who.ForEachOther(nodes(), [&](uint32_t node) {
    const Kind& kind = kinds_[node];
    if (!kind.newest || HasOlder(node, who)) return;
    --told.answered;
    if (!kind.gone) {
      told.silent.push_back(node);
    } else if (kind.named) {
      told.gone.push_back(node);
    }
  });
  const auto silent = static_cast<uint32_t>(told.silent.size());
  told.answered += std::min(unknown, silent);
  if (unknown >= silent) told.silent.clear();
  return told;
}

}  // namespace sonde::head
