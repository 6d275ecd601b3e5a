// What the time budget of a step's ranks is made of (insight/budget.h), read from its profile: what
// is known of a node only is divided among the step's tasks on it, at each tick.
//
//   stolen   steal * CPU time of the task / busy time of the node     the host gave the CPU to
//   others
//            + max(throttled, pressure) * CPU time of the task / that of all the node's tasks
//                                           the CPU limit; some task waited for a CPU. Of these two
//                                           one contains the other, and several tasks that wait
//                                           count as one: a lower bound. Where only the node's
//                                           pressure is known: that * CPU time of the task / busy
//                                           time of the node, an estimate
//   GPU      sum of the GPUs' utilization / max(tasks on the node, GPUs)
//
// Thread safety: one thread.
#pragma once

#include <cstddef>
#include <limits>
#include <set>
#include <string>
#include <vector>

#include "core/status.h"
#include "insight/budget.h"
#include "insight/steps/step_rows.h"
#include "insight/steps/tick_grid.h"
#include "profiles/archive/archive.h"
#include "profiles/model/profile.h"

namespace sonde::insight {

struct StepRank {
  StepRows::Who who;
  RankRates rates;                                                // calls are spread (SpreadCalls)
  double collectives = std::numeric_limits<double>::quiet_NaN();  // calls; NaN: not counted
  Row in_collectives;  // seconds per second, barriers included, as calls return; empty: not counted
};

class StepRates {
 public:
  // What was seen of nodes.
  struct Seen {
    bool steal = false, throttled = false, pressure = false, node_pressure = false, gpu = false;
  };

  // All of these outlive it; `cpus` are those of a task.
  StepRates(const Archive& archive, const std::string& key, const Profile& profile,
            const TickGrid& grid, double cpus);

  // The series that are read of a rank and its node, by the footprint.
  static size_t SeriesOfRank(const Profile& profile);

  // Of the ranks on these nodes; all of a node's ranks are divided its amounts.
  Result<std::vector<StepRank>> Read(const std::set<size_t>& nodes);
  // The same, with what is known of MPI only, for which less is read.
  Result<std::vector<StepRank>> ReadMpi(const std::set<size_t>& nodes) const;
  const Seen& seen() const { return seen_; }

 private:
  void TakeMpi(std::vector<StepRows>& rows, StepRank& rank) const;
  void Divide(const std::vector<StepRows>& rows, std::vector<StepRank>& ranks);
  void DivideStolen(const std::vector<StepRows>& rows, size_t node,
                    const std::vector<StepRank*>& ranks);
  void DivideGpu(const Row& gpu, const std::vector<StepRank*>& ranks);

  const Archive& archive_;
  const std::string& key_;
  const Profile& profile_;
  const TickGrid& grid_;
  const double cpus_;
  const size_t gpus_;  // of a node
  Seen seen_;
};

}  // namespace sonde::insight
