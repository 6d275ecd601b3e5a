#include "daemon/head/answers/who_answers.h"

#include <algorithm>
#include <string_view>
#include <utility>

namespace sonde::head {
namespace {

bool IsGone(const NodeInfo& node) { return node.left != 0 || node.lost; }

// The indexes of each host's daemons, the newest last.
using Hosts = std::map<std::pair<std::string_view, std::string_view>, std::vector<uint32_t>>;

Hosts HostsOf(const JobDescription& job) {
  Hosts hosts;
  for (uint32_t i = 0; i < job.nodes.size(); ++i) {
    hosts[{job.nodes[i].job, job.nodes[i].host}].push_back(i);
  }
  return hosts;
}

uint32_t Expected(const Hosts& hosts, const JobDescription& job) {
  return std::max(static_cast<uint32_t>(hosts.size()), job.expected_nodes);
}

}  // namespace

WhoAnswers SortOut(const JobDescription& job, const tree::NodeSet& who, uint32_t unknown) {
  const Hosts hosts = HostsOf(job);
  WhoAnswers told;
  told.expected = Expected(hosts, job);
  for (const auto& [name, nodes] : hosts) {
    if (std::any_of(nodes.begin(), nodes.end(), [&](uint32_t node) { return who.Has(node); })) {
      ++told.answered;
    } else if (IsGone(job.nodes[nodes.back()])) {
      told.gone.emplace(name.second, nodes.back());
    } else {
      told.silent.push_back(nodes.back());
    }
  }
  const auto silent = static_cast<uint32_t>(told.silent.size());
  told.answered += std::min(unknown, silent);
  if (unknown >= silent) told.silent.clear();
  return told;
}

HostsInRows CountHosts(const JobDescription& job) {
  const Hosts hosts = HostsOf(job);
  HostsInRows count;
  count.expected = Expected(hosts, job);
  for (const auto& [name, nodes] : hosts) count.there += job.nodes[nodes.back()].lost ? 0 : 1;
  return count;
}

std::set<std::string> StartedAnew(const JobDescription& job) {
  struct Daemons {
    size_t all = 0;
    size_t gone = 0;
  };
  std::map<std::string_view, Daemons> hosts;
  for (const NodeInfo& node : job.nodes) {
    Daemons& daemons = hosts[node.host];
    ++daemons.all;
    daemons.gone += IsGone(node) ? 1 : 0;
  }
  std::set<std::string> anew;
  for (const auto& [host, daemons] : hosts) {
    if (daemons.all > 1 && daemons.gone > 0) anew.emplace(host);
  }
  return anew;
}

}  // namespace sonde::head
