#include "daemon/node/launcher_packets.h"

#include <cerrno>
#include <charconv>
#include <cstdint>
#include <optional>
#include <string>

#include "core/launch.h"
#include "core/log.h"

namespace sonde::node {
namespace {

// The numbers of a 'T', 'M' or 'X' packet.
struct TaskPacket {
  uint32_t rank = 0;
  int pid = 0;
  int status = 0;
  uint32_t first = 0;     // of the machine's events
  std::vector<int> perf;  // errno of every event, 0: opened
  bool has_totals = false;
  collect::TaskTotals totals;
};

template <typename T>
void ParseNumber(std::string_view text, T& out) {
  std::from_chars(text.data(), text.data() + text.size(), out);
}

// Nanoseconds as seconds.
double ParseSeconds(std::string_view text) {
  Nanos time = 0;
  ParseNumber(text, time);
  return static_cast<double>(time) / static_cast<double>(kSecond);
}

void ParseTotals(std::string_view key, std::string_view value, TaskPacket& task) {
  if (key == launch::key::kUserTime) task.has_totals = true;
  if (key == launch::key::kUserTime) task.totals.user_seconds = ParseSeconds(value);
  if (key == launch::key::kSystemTime) task.totals.system_seconds = ParseSeconds(value);
  if (key == launch::key::kMaxRss) ParseNumber(value, task.totals.peak_bytes);
  if (key == launch::key::kMinorFaults) ParseNumber(value, task.totals.minor_faults);
  if (key == launch::key::kMajorFaults) ParseNumber(value, task.totals.major_faults);
  if (key == launch::key::kReadBytes) ParseNumber(value, task.totals.read_bytes);
  if (key == launch::key::kWrittenBytes) ParseNumber(value, task.totals.written_bytes);
}

TaskPacket ParseTask(std::string_view body) {
  TaskPacket task;
  launch::ForEach(body, [&](std::string_view key, std::string_view value) {
    if (key == launch::key::kRank) ParseNumber(value, task.rank);
    if (key == launch::key::kFirst) ParseNumber(value, task.first);
    if (key == launch::key::kPid) ParseNumber(value, task.pid);
    if (key == launch::key::kStatus) ParseNumber(value, task.status);
    ParseTotals(key, value, task);
    if (key != launch::key::kPerf) return;
    while (!value.empty() && task.perf.size() < launch::kMaxEvents) {
      const size_t comma = value.find(',');
      ParseNumber(value.substr(0, comma), task.perf.emplace_back(0));
      value.remove_prefix(comma == std::string_view::npos ? value.size() : comma + 1);
    }
  });
  return task;
}

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
  node.OnTaskExit(task.status);
}

}  // namespace

void SendEvents(Lifeline& lifeline, Node& node) {
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
      return OnTask(node, ParseTask(body), std::move(fds));
    case launch::kMachine:
      return OnMachine(node, ParseTask(body), std::move(fds));
    case launch::kTaskExit:
      return OnTaskExit(node, ParseTask(body));
    default:
      break;  // of a newer launcher
  }
}

}  // namespace sonde::node
