#include "series/alarm/defaults.h"

namespace sonde::alarms {
namespace {

constexpr std::string_view kDefaults =
    R"(memory: node_memory_MemAvailable_bytes / node_memory_MemTotal_bytes any < 4% for 3s clear 6% critical message "memory is about to run out: {value} of the node's is left"
memory_soon: node_memory_MemAvailable_bytes / node_memory_MemTotal_bytes any < 20% and node_memory_MemAvailable_bytes / node_memory_MemTotal_bytes any < 1% in 60s for 5s critical message "memory runs out in {left} if this goes on: {value} of the node's is left"
memory_limit: cgroup_memory_anon_bytes / cgroup_memory_limit_bytes any > 95% for 3s clear 92% critical message "the memory limit is about to be reached: {value} of it is used"
memory_limit_soon: cgroup_memory_anon_bytes / cgroup_memory_limit_bytes any > 75% and cgroup_memory_anon_bytes / cgroup_memory_limit_bytes any > 99% in 60s for 5s critical message "the memory limit is reached in {left} if this goes on: {value} of it is used"
filesystem: node_filesystem_avail_bytes / node_filesystem_size_bytes any < 1% and node_filesystem_readonly < 1 for 10s clear 2% message "{mountpoint} is full: {value} is left"
hung: task_cpu_seconds_total{mode=user} avg rate < 0.002 and task_cpu_seconds_total{mode=system} avg rate < 0.002 and task_read_call_bytes_total rate < 1 and task_write_call_bytes_total rate < 1 for 2m message "the step seems to hang: no task computes, reads or writes"
idle_node: task_cpu_seconds_total{mode=user} any node rate < 0.01 and task_cpu_seconds_total{mode=user} rate > 0.5 for 2m message "the node's tasks do nothing while others compute"
idle_gpu: gpu_utilization_ratio any < 1% for 2m info message "GPU {gpu} does nothing"
straggler: task_cpu_seconds_total{mode=user} rate lags 4 by 50% for 1m info message "it computes far less than the others: {value}"
throttled_core: node_cpu_core_throttles_total any rate > 0 for 10s message "processor cores are slowed down for their temperature: {value}"
throttled_package: node_cpu_package_throttles_total any rate > 0 for 10s message "processors are slowed down for their temperature: {value}"
throttled_quota: cgroup_cpu_throttled_seconds_total any rate > 0.2 for 30s message "the step has used up its processor time and has to wait: {value}"
throttled_gpu: gpu_throttled{reason=thermal} any > 0 for 10s message "GPU {gpu} is slowed down for its temperature"
throttled_gpu_hardware: gpu_throttled{reason=hardware} any > 0 for 10s message "GPU {gpu} is slowed down by a protection of its hardware"
throttled_gpu_power: gpu_throttled{reason=power_brake} any > 0 for 10s message "GPU {gpu} is slowed down by its power supply"
missing: sonde_node_missing any > 0 for 10s message "samples are missing or late"
)";

}  // namespace

std::string_view DefaultRulesText() { return kDefaults; }

std::vector<Rule> DefaultRules() {
  std::vector<Rule> rules;
  const Result<std::vector<RuleLine>> lines = ParseRules(kDefaults, "built in");
  if (lines.ok()) Apply(*lines, rules);
  return rules;
}

}  // namespace sonde::alarms
