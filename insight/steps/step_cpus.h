// How many CPUs a step had on each of its nodes.
//
// Thread safety: functions without state.
#pragma once

#include <vector>

#include "insight/steps/step_rows.h"
#include "profiles/model/profile.h"

namespace sonde::insight {

// CPUs that Slurm gave the job on each of the step's nodes, if it says so and they are even; NaN:
// it does not.
double AskedCpusOfNode(const Profile& profile);

// By node of the description; NaN: not known. `cpusets` are rows of cgroup_cpuset_cpus by node, of
// which the mean counts; where there is none, AskedCpusOfNode, at most `cpus` of the node (NaN: not
// known).
std::vector<double> CpusOfNodes(const Profile& profile, const StepRows& cpusets,
                                const std::vector<double>& cpus);

}  // namespace sonde::insight
