#include "launcher/site/slurm_partitions.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "core/text/ascii.h"
#include "core/text/cpu_list.h"
#include "launcher/site/slurm_node.h"

namespace sonde::launch {
namespace {

// NO, EXCLUSIVE, or YES and FORCE with how many jobs may have a core: 4 unless it is said. With
// YES a job has to ask for it, with FORCE it need not. FORCE:1 is for jobs that are suspended
// while others run (slurm.conf(5)): the daemon of a suspended job goes on.
bool Shares(std::string_view value) {
  const size_t colon = value.find(':');
  const std::string_view word = value.substr(0, colon);
  if (EqualsIgnoringCase(word, "FORCE")) return true;
  if (!EqualsIgnoringCase(word, "YES")) return false;
  uint32_t jobs = 0;
  return colon == std::string_view::npos || !ParseNumber(value.substr(colon + 1), jobs) || jobs > 1;
}

// PreemptMode of the cluster or of a partition: whether jobs are suspended for others.
bool Suspends(const SlurmSetting& setting) {
  if (!IsSlurmSetting(setting, "PreemptMode")) return false;
  const std::string value = Lower(setting.second);
  return value.find("suspend") != std::string::npos || value.find("gang") != std::string::npos;
}

}  // namespace

void SlurmPartitions::Take(SlurmLine line) {
  suspends_ = suspends_ || std::ranges::any_of(line, Suspends);
  if (IsSlurmSetting(line.front(), "NodeSet")) sets_.emplace_back(line.front().second);
  if (!IsSlurmSetting(line.front(), "PartitionName")) return;
  Partition partition = default_;
  for (const SlurmSetting& setting : line) {
    if (IsSlurmSetting(setting, "Nodes")) partition.nodes = setting.second;
    if (IsSlurmSetting(setting, "OverSubscribe") || IsSlurmSetting(setting, "Shared")) {
      partition.shares = Shares(setting.second);
    }
  }
  if (EqualsIgnoringCase(line.front().second, "DEFAULT")) {
    default_ = std::move(partition);
  } else {
    partitions_.push_back(std::move(partition));
  }
}

bool SlurmPartitions::HasNode(const Partition& partition, std::string_view node) const {
  return EqualsIgnoringCase(partition.nodes, "ALL") || NamesNode(partition.nodes, node) ||
         std::ranges::any_of(
             sets_, [&](const std::string& set) { return NamesNode(partition.nodes, set); });
}

bool SlurmPartitions::ShareCores(std::string_view node) const {
  return suspends_ || std::ranges::any_of(partitions_, [&](const Partition& partition) {
           return partition.shares && HasNode(partition, node);
         });
}

}  // namespace sonde::launch
