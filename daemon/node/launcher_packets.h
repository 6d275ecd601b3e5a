// What the launcher tells a node of its tasks, and what the node asks of it, over the lifeline.
//
// Thread safety: the loop's thread only.
#pragma once

#include <string_view>
#include <vector>

#include "daemon/launcher_line.h"
#include "daemon/node/node.h"

namespace sonde::node {

// The perf events that the launcher is to open for every task.
void SendEvents(LauncherLine& lifeline, Node& node);
// A packet of the launcher's (launcher/launch.h): a task has begun, or ended.
void OnLauncherPacket(Node& node, char kind, std::string_view body, std::vector<UniqueFd> fds);

}  // namespace sonde::node
