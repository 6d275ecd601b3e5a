// A finished step and its phases on the roofline of its nodes (insight/hardware/roofline.h), or
// what else can be said of them (insight/hardware/bottleneck.h) where the counters are missing.
//
// FLOP/s are task_flops_per_second. Bytes are those of the memory controllers
// (node_memory_traffic_bytes_total), which are counted where the step's job has the node's
// processors to itself and have reads and writes; else task_memory_bytes_per_second, which has no
// writes, so that the intensity comes out too high. All are means over the ticks in which something
// was counted, of the whole step, and for each phase that the application told, else that shows in
// the step's series (insight/steps/step_phases.h).
//
// The roof of the step is the sum over its nodes. A node's peaks are found by node_processor_info,
// which says its type of processor. A profile without that (of an older release, or below level 3)
// takes those that were measured on a host of that name.
//
// Thread safety: functions without state.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "core/status.h"
#include "insight/hardware/bottleneck.h"
#include "insight/hardware/roofline.h"
#include "profiles/archive/archive.h"
#include "profiles/model/profile.h"

namespace sonde::insight {

struct RooflinePhase {
  std::string name;
  double seconds = 0;
  Placed placed;
  Evidence evidence;
  Bottleneck bottleneck;
};

struct StepRoofline {
  RooflinePhase step;
  std::vector<RooflinePhase> phases;  // none: the step shows as one
  bool told = false;                  // by the application
  Roof roof;                          // 0: not known, and no_roof says why
  std::string no_roof;
  std::vector<ProcessorType> types;  // of its nodes
  double cpus = 0;                   // that it had, on all nodes; NaN: not known
  bool with_writes = false;          // the bytes are those of the memory controllers
  bool counted = false;              // there are FLOP/s and bytes/s
  std::vector<std::string> notes;    // what to know of the numbers
};

// `peaks`: all that are known; of several for a type the last one with the most CPUs.
Result<StepRoofline> RooflineOf(const Archive& archive, const std::string& key,
                                const Profile& profile, std::span<const NodePeaks> peaks);

std::string RooflineToJson(const StepRoofline& all, const Profile& profile);

}  // namespace sonde::insight
