// Whether slurm.conf lets jobs share cores on a node, at the same time or in turns: OverSubscribe
// (Shared, as older files call it) of the partitions that the node is in, and PreemptMode. What
// scontrol has changed since is not in the file.
//
// Thread safety: one thread at a time.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "launcher/site/slurm_conf.h"

namespace sonde::launch {

class SlurmPartitions {
 public:
  // Lines that are not of partitions or sets of nodes are passed over.
  void Take(SlurmLine line);
  // After all lines: whether the node is in a partition in which Slurm gives a core to several
  // jobs, or Slurm suspends jobs for others anywhere. A set of nodes (NodeSet) is taken to have
  // every node, for it may be made by features.
  bool ShareCores(std::string_view node) const;

 private:
  struct Partition {
    std::string nodes;
    bool shares = false;
  };

  bool HasNode(const Partition& partition, std::string_view node) const;

  Partition default_;
  std::vector<Partition> partitions_;
  std::vector<std::string> sets_;
  bool suspends_ = false;
};

}  // namespace sonde::launch
