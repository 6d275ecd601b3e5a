#include "launcher/site/site_policy.h"

#include <algorithm>

#include "core/text/cpu_list.h"

namespace sonde::launch {

// Up to 2 users may count their own processes; what more there is above 2, distributions have
// added.
bool MayOpenEvents(DaemonSettings::PerfEvents choice, int perf_event_paranoid) {
  using enum DaemonSettings::PerfEvents;
  return choice == kGrant || (choice == kFollow && perf_event_paranoid <= 2);
}

std::string_view RoleOf(StepKind step, int level, const SitePolicy& policy, bool has_head) {
  if (level == 0) return "";
  switch (step) {
    case StepKind::kBatch:
      return policy.monitor_batch ? "solo" : "";
    case StepKind::kInteractive:
      return policy.monitor_interactive ? "solo" : "";
    case StepKind::kOther:
      break;
  }
  return policy.monitor_steps && has_head ? "node" : "";
}

long CountListed(std::string_view list) {
  long count = 0;
  const bool good = ForEachRange(list, [&](uint32_t first, uint32_t last) {
    count += static_cast<long>(last) - static_cast<long>(first) + 1;
  });
  return good ? count : 0;
}

bool HasNodeAlone(std::string_view cores, uint32_t cpus, long processors_online,
                  const SlurmNode& node) {
  if (node.cores_are_shared) return false;
  const long has = CountListed(cores);
  const uint32_t job_cores = node.cores - std::min(node.cores, node.specialized);
  if (job_cores > 0 && has >= static_cast<long>(job_cores)) return true;
  return processors_online > 0 &&
         (has >= processors_online || static_cast<long>(cpus) >= processors_online);
}

bool MayCountMachine(SitePolicy::Machine choice, DaemonSettings::PerfEvents events, bool alone) {
  using enum SitePolicy::Machine;
  if (events == DaemonSettings::PerfEvents::kNever) return false;
  return choice == kAlways || (choice == kExclusive && alone);
}

std::string_view StepGpus(const Environment& environment, bool alone) {
  if (!alone && environment.First("SLURM_STEP_GPUS", "SLURM_JOB_GPUS").empty()) return "none";
  const std::string_view cuda = environment.First("CUDA_VISIBLE_DEVICES");
  if (cuda.find("MIG-") != std::string_view::npos) return cuda;
  return environment.First("SLURM_STEP_GPUS", "SLURM_JOB_GPUS", "CUDA_VISIBLE_DEVICES",
                           "ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ZE_AFFINITY_MASK",
                           "GPU_DEVICE_ORDINAL");
}

}  // namespace sonde::launch
