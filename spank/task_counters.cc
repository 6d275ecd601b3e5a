#include "spank/task_counters.h"

#include <algorithm>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "launcher/machine_open.h"
#include "launcher/site/site_policy.h"
#include "spank/slurm_spank.h"

namespace sonde::spank {
namespace {

// That are there already, in one look.
constexpr int kMostPackets = 64;

}  // namespace

void TaskCounters::Prepare(const PluginConfig& config, bool alone, StepDaemon& daemon) {
  Take(config, alone, daemon);
  OfferMachine(daemon);
}

launch::TaskEvents TaskCounters::Open(pid_t task, launch::Writer& message) const {
  if (events_.task.empty()) return {};
  launch::TaskEvents opened = may_open_
                                  ? launch::OpenEvents(task, events_.task, paranoid_, syscalls_)
                                  : launch::RefuseEvents(events_.task.size());
  message.Add(launch::key::kPerf, opened.results);
  return opened;
}

void TaskCounters::Use(const PluginConfig& config, bool alone, std::string_view packet) {
  Result<launch::AskedEvents> events = launch::ParseEvents(packet);
  if (!events.ok()) {
    slurm_info("sonde: %s; no counters", std::string(events.status().message()).c_str());
    return;
  }
  events_ = std::move(*events);
  paranoid_ = launch::PerfEventParanoid();
  may_open_ = launch::MayOpenEvents(config.daemons.perf_events, paranoid_);
  may_count_machine_ =
      launch::MayCountMachine(config.policy.machine_counters, config.daemons.perf_events, alone);
  syscalls_ = launch::SyscallsTracepoint(may_count_machine_);
}

void TaskCounters::Take(const PluginConfig& config, bool alone, StepDaemon& daemon) {
  if (!events_.task.empty()) return;
  const launch::Deadline deadline(waited_ ? std::chrono::milliseconds(0) : kWait);
  waited_ = true;
  std::string packet;
  // A daemon that sends all the while is not heard for longer than one that says nothing.
  for (int looks = 0; looks < kMostPackets || deadline.LeftMs() > 0; ++looks) {
    // Now and then looks whether the daemon is still there to wait for.
    const launch::Deadline next(std::chrono::milliseconds(std::min(deadline.LeftMs(), 20)));
    switch (daemon.lifeline().Receive(packet, next)) {
      case launch::Lifeline::Event::kPacket:
        if (packet[0] == launch::kEvents) return Use(config, alone, packet);
        daemon.Take(packet);
        break;
      case launch::Lifeline::Event::kTimeout:
        if (deadline.LeftMs() == 0 || daemon.Gone()) return;
        break;
      case launch::Lifeline::Event::kEnd:
        return;
    }
  }
}

// Sends them once, when there is a task to count for.
void TaskCounters::OfferMachine(StepDaemon& daemon) {
  const std::vector<launch::MachineEvent> events = std::exchange(events_.machine, {});
  if (events.empty()) return;
  if (!may_count_machine_) return daemon.Tell(launch::Writer(launch::kMachine));
  launch::OfferMachineEvents(events, [&](const launch::Writer& message, std::span<const int> fds) {
    daemon.Tell(message, fds);
  });
}

}  // namespace sonde::spank
