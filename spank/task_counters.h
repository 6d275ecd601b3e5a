// The perf events that the daemon of a step asks for, opened by slurmstepd: those of each task, and
// once those of the machine.
//
// Thread safety: Slurm's one thread that calls the plugin.
#pragma once

#include <sys/types.h>

#include <cerrno>
#include <chrono>
#include <cstdint>
#include <string_view>

#include "launcher/launch.h"
#include "launcher/perf_open.h"
#include "spank/plugin_config.h"
#include "spank/slurm_spank.h"
#include "spank/step_daemon.h"

namespace sonde::spank {

class TaskCounters {
 public:
  // How long to wait for the list of events of a daemon that has just been started. It is there
  // after some ms. But where all processors are taken the daemon waits for its turns, and a task
  // that began before the list was there is never counted.
  static constexpr std::chrono::milliseconds kWait{1000};

  // A task is about to run. `alone`: nobody else is on the node. Waits once for the daemon's list
  // of events; later tasks use the list if it has come meanwhile.
  void Prepare(const PluginConfig& config, bool alone, StepDaemon& daemon);
  // Opens the events of a task and adds them to `message`; the descriptors go with that message.
  launch::TaskEvents Open(pid_t task, launch::Writer& message) const;

 private:
  void Take(const PluginConfig& config, bool alone, StepDaemon& daemon);
  void Use(const PluginConfig& config, bool alone, std::string_view packet);
  void OfferMachine(StepDaemon& daemon);

  bool waited_ = false;
  launch::AskedEvents events_;
  int paranoid_ = 2;
  bool may_open_ = false;
  bool may_count_machine_ = false;
  int64_t syscalls_ = -EPERM;  // as SyscallsTracepoint gives it
};

}  // namespace sonde::spank
