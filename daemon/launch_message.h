// The launch message as the daemon reads it: launcher/launch.h's keys, checked.
//
// Thread safety: values.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/config.h"
#include "core/job.h"
#include "core/status.h"
#include "launcher/preload.h"

namespace sonde {

using StepKey = std::array<unsigned char, 32>;

enum class Role : uint8_t { kHead, kNode, kSolo };

struct LaunchMessage {
  Role role = Role::kNode;
  JobDescription job;  // as far as the launcher knows it
  std::string host;
  std::string home;
  uint32_t node_id = 0;
  std::string hosts;     // of the step in the order of node_id, perhaps only the first; "": unknown
  std::string topology;  // the node's place in the network and what its parts are, as Slurm says
  std::string topology_pattern;
  uint32_t tasks_here = 0;
  std::string events;   // --telemetry-events as granted
  std::string gpus;     // the step's on this node; "": all of the node's
  uint64_t memory = 0;  // that Slurm has allocated to the step on this node, bytes; 0: not known
  bool has_key = false;
  StepKey key{};
  std::string head_host;
  uint16_t head_port = 0;
  std::string ports;   // "60000-60100": where to listen; "": as the configuration says
  std::string socket;  // abstract name for the application; "": none
  std::string config_path;
  uint32_t columns = 0;            // of the terminal on which the report is read; 0: there is none
  std::string archive;             // SONDE_ARCHIVE of the user; "": by config
  std::vector<std::string> notes;  // of the launcher, for the profile
  std::string alarms;              // the user's file of alarm rules; "": none
  preload::Calls calls;            // that somebody asked to have counted
  Nanos time_limit = 0;            // 0: none
  Nanos begun = 0;                 // of a head: when srun asked for the step; 0: it does not say
  bool acting = false;             // a head that goes on where another one died
  Nanos ahead = 0;                 // for it: what the step's time is ahead of the wall clock
  bool variables_come = false;     // of the tasks, for the fabric: launch::kVariables
  uint32_t place = 0xffffffff;     // for it: its node's index in the step
  std::string before;              // and where nodes listen that should act rather than its own
  std::string text;                // as it came: an acting head gets it with a few more lines

  // Whether slurmstepd has started this daemon, so that it is in the step's control group there,
  // and whoever it leaves behind as well. Not beside srun, nor under `sonde run`.
  bool InStep() const { return (role != Role::kHead || acting) && job.id.step != "run"; }
};

// The body of an 'L' packet. kInvalid names the key that is wrong and what was expected.
Result<LaunchMessage> ParseLaunchMessage(std::string_view body);

}  // namespace sonde
