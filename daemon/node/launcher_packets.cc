#include "daemon/node/launcher_packets.h"

#include <cerrno>
#include <optional>
#include <string>
#include <vector>

#include "core/log.h"
#include "daemon/add_environment.h"
#include "daemon/node/launcher/task_packet.h"
#include "launcher/launch.h"

namespace sonde::node {
namespace {

// In the order of the events: descriptors, or -errno.
std::vector<int> PerfDescriptors(const TaskPacket& task, std::vector<UniqueFd>& fds) {
  std::vector<int> all;
  size_t next = 0;
  for (const int error : task.perf) {
    if (error == 0 && next < fds.size()) {
      all.push_back(fds[next++].Release());
    } else {
      all.push_back(error == 0 ? -EBADF : -error);
    }
  }
  return all;
}

void OnTask(Node& node, const TaskPacket& task, std::vector<UniqueFd> fds) {
  const Status added = node.sampler().tasks().AddTask(task.rank, task.pid);
  if (!added.ok()) log::Warning("{}", added.message());
  node.OnTask(task.rank, task.pid);
  collect::PerfSource* perf = node.sampler().perf();
  if (perf != nullptr && !task.perf.empty()) {
    perf->AddTask(task.rank, PerfDescriptors(task, fds));
  }
}

void OnMachine(Node& node, const TaskPacket& packet, std::vector<UniqueFd> fds) {
  collect::MachineSource* machine = node.sampler().machine();
  if (machine == nullptr) return;
  if (packet.perf.empty()) return machine->Refuse();
  machine->Take(packet.first, PerfDescriptors(packet, fds));
}

void OnTaskExit(Node& node, const TaskPacket& task) {
  node.sampler().TaskExited(task.rank, task.has_totals ? std::optional(task.totals) : std::nullopt);
  node.OnTaskExit(task.rank, task.status);
}

// The launcher says which; this does not take its word for it, as some change what a library loads.
void OnVariables(Node& node, std::string_view body) {
  std::vector<std::string> entries;
  launch::ForEach(body, [&](std::string_view name, std::string_view entry) {
    if (name != launch::key::kEnvironment || !entry.starts_with(launch::kFabricVariable)) return;
    entries.emplace_back(entry);
    log::Debug("for the fabric: {}", entry);
  });
  AddToEnvironment(entries);
  node.OnFabricVariables();
}

}  // namespace

void SendEvents(LauncherLine& lifeline, Node& node) {
  const collect::PerfSource* perf = node.sampler().perf();
  const collect::MachineSource* machine = node.sampler().machine();
  if (perf == nullptr || machine == nullptr) return;
  std::string body;
  const auto add = [&body](const auto& events) {
    body += static_cast<char>(events.size());
    body.append(reinterpret_cast<const char*>(events.data()),
                events.size() * sizeof(*events.data()));
  };
  add(perf->events());
  add(machine->events());
  lifeline.Send(launch::kEvents, body);
}

void OnLauncherPacket(Node& node, char kind, std::string_view body, std::vector<UniqueFd> fds) {
  switch (kind) {
    case launch::kTask:
      return OnTask(node, ParseTaskPacket(body), std::move(fds));
    case launch::kMachine:
      return OnMachine(node, ParseTaskPacket(body), std::move(fds));
    case launch::kTaskExit:
      return OnTaskExit(node, ParseTaskPacket(body));
    case launch::kVariables:
      return OnVariables(node, body);
    default:
      break;  // of a newer launcher
  }
}

}  // namespace sonde::node
