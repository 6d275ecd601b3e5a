#include "daemon/node/links/gateway_plan.h"

#include <algorithm>
#include <cstring>
#include <optional>

#include "core/bytes.h"
#include "core/log.h"
#include "core/text/hostlist.h"
#include "daemon/link/trust/auth.h"
#include "daemon/link/via_links.h"

namespace sonde::node {

GatewayPlan PlanGateways(const LaunchMessage& launch, uint32_t direct) {
  const uint32_t nodes = launch.job.expected_nodes;
  const uint32_t own = launch.node_id;
  if (nodes <= direct || nodes < 2 || own >= nodes) return {};
  if (launch.hosts.empty() || !launch.job.het_job.empty() || launch.role != Role::kNode) return {};
  // Of the list, which may be long, as much as is needed.
  const std::optional<std::vector<std::string>> hosts =
      ExpandHosts(launch.hosts, tree::GatewaysOf(nodes));
  if (!hosts) {
    log::Warning("not a list of hosts as n[001-003,007]: '{}'", launch.hosts);
    return {};
  }
  const auto gateways = static_cast<uint32_t>(hosts->size());
  const auto at = std::find(hosts->begin(), hosts->end(), launch.host);
  const bool listed = at != hosts->end();
  // Another order than that of the nodes' numbers would lead all of them astray.
  if (gateways == 0 || listed != (own < gateways)) return {};
  if (listed && static_cast<uint32_t>(at - hosts->begin()) != own) return {};
  if (listed) return {.is_gateway = true, .ways = {}};
  const uint32_t first = own % gateways;
  // Those of a gateway that goes spread over all others.
  const uint32_t second = (first + 1 + own / gateways % std::max(gateways - 1, 1u)) % gateways;
  GatewayPlan plan;
  plan.ways.push_back({first, (*hosts)[first]});
  if (second != first) plan.ways.push_back({second, (*hosts)[second]});
  return plan;
}

std::vector<uint16_t> GatewayPorts(const StepKey& key, uint32_t node, PortRange range) {
  if (range.first == 0) range = kGatewayPorts;
  const uint32_t count = range.second - range.first + 1u;
  const std::string random = tree::Prove(key, "gateway port", VarintBytes(node));
  std::vector<uint16_t> ports;
  for (int i = 0; i < kGatewayPortTries; ++i) {
    uint32_t word = 0;
    std::memcpy(&word, random.data() + i * sizeof word, sizeof word);
    const auto port = static_cast<uint16_t>(range.first + word % count);
    if (std::find(ports.begin(), ports.end(), port) == ports.end()) ports.push_back(port);
  }
  return ports;
}

std::vector<tree::Place> DoorsOf(const GatewayPlan::Way& way, const StepKey& key, PortRange range) {
  std::vector<tree::Place> doors;
  for (const uint16_t port : GatewayPorts(key, way.node, range)) {
    doors.push_back({way.node, way.host, port});
  }
  return doors;
}

}  // namespace sonde::node
