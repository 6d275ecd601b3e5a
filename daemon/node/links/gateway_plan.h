// Which nodes of a step are gateways: they connect to the head, and the others through them.
//
// All nodes find the same plan by themselves, from the step's list of hosts. In a step of more
// nodes than `direct` the first g nodes are gateways, g being the square root of their number: so
// neither the head nor a gateway has more connections than that, and nobody is more than one hop
// from the head. A gateway listens on one of a few ports of the range that come of the step's key,
// so that nobody has to tell it, and nobody who lacks the key can take it beforehand.
//
// Thread safety: values and functions without state.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/text/settings.h"
#include "daemon/launch_message.h"
#include "daemon/message/message.h"

namespace sonde::node {

// Where ports are taken if no range is set: below those that the kernel gives to connections.
inline constexpr PortRange kGatewayPorts = {16'384, 32'767};
inline constexpr int kGatewayPortTries = 3;

struct GatewayPlan {
  // A gateway that a node may connect to.
  struct Way {
    uint32_t node = 0;  // its number in the step
    std::string host;   // its name
  };
  // Whether this node is one.
  bool is_gateway = false;
  // Else its gateway, and another one for when that goes. Empty: this node connects to the head.
  std::vector<Way> ways;
};

// Of the node that the message is for. Without a list of hosts that it finds itself in, of a step
// that has several components, and of one that has at most `direct` nodes, all connect to the head.
GatewayPlan PlanGateways(const LaunchMessage& launch, uint32_t direct);

// Where a gateway may listen: its number in the step, its name and a port each.
std::vector<tree::Place> DoorsOf(const GatewayPlan::Way& way, const StepKey& key, PortRange range);

// The ports at which a node listens as gateway, the first that is free.
std::vector<uint16_t> GatewayPorts(const StepKey& key, uint32_t node, PortRange range);

}  // namespace sonde::node
