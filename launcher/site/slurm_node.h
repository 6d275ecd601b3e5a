// What slurm.conf says of one node: how many cores Slurm shares out there, whether to one job each,
// and where slurmd's pid file is. It is read in one go with what it says of the network.
//
// Thread safety: functions without state.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core/status.h"
#include "launcher/site/slurm_conf.h"

namespace sonde::launch {

struct SlurmNode {
  // Cores as Slurm counts them, and those of them that no job gets (CoreSpecCount, CpuSpecList). 0:
  // not known.
  uint32_t cores = 0;
  uint32_t specialized = 0;
  // Whether several jobs may have the same core, in turns too. They may where it is not known.
  bool cores_are_shared = true;
  std::string slurmd_pid_file = "/var/run/slurmd.pid";
};

struct SlurmOnNode {
  Status complete;  // why a part of slurm.conf is not known
  SlurmNode node;
  SlurmNetwork network;
};

SlurmOnNode ReadSlurmOnNode(const std::string& path, std::string_view node, const ReadConf& read);
// The same of the file that FindSlurmConf finds.
SlurmOnNode ReadSlurmOnNode(const Environment& environment, std::string_view node);

// Whether a list as in NodeName, such as "n[01-03,7],login", names the node.
bool NamesNode(std::string_view list, std::string_view node);

// The processors on which slurmd itself may run, in Slurm's form such as "0,64"; "" if that cannot
// be found out. Where a node has specialized cores Slurm keeps slurmd there.
std::string SlurmdProcessors(const SlurmNode& node, const std::string& proc = "/proc");

}  // namespace sonde::launch
