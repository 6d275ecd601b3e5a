#include "insight/hints/profile_facts.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <functional>
#include <string>

#include "profiles/model/hardware.h"
#include "profiles/report/calls.h"
#include "profiles/report/used.h"

namespace sonde::insight {
namespace {

using Wanted = std::function<bool(const FootprintEntry&)>;

std::string_view TagOf(const FootprintEntry& entry, std::string_view key) {
  const std::string* const value = entry.series.tags.Find(key);
  return value == nullptr ? std::string_view() : *value;
}

bool IsReal(double value) { return !std::isnan(value); }

class FromProfile {
 public:
  FromProfile(const Profile& profile, const Summary& summary)
      : profile_(profile), job_(profile.job), summary_(summary) {}

  Facts Take() {
    SetStep();
    SetAsked();
    SetCpu();
    SetNodes();
    SetCounters();
    SetMpi();
    SetFiles();
    SetCalls();
    SetMemory();
    SetGpus();
    return std::move(facts_);
  }

 private:
  // Sums over series; NaN if there are none.
  double Total(std::string_view metric, const Wanted& wanted = nullptr) const {
    return Sum(metric, &FootprintEntry::last, wanted);
  }
  double Mean(std::string_view metric, const Wanted& wanted = nullptr) const {
    return Sum(metric, &FootprintEntry::mean, wanted);
  }
  double Sum(std::string_view metric, double FootprintEntry::*of, const Wanted& wanted) const {
    double sum = kMissing;
    for (const FootprintEntry& entry : profile_.footprint) {
      if (entry.series.metric.name != metric || !IsReal(entry.*of)) continue;
      if (wanted && !wanted(entry)) continue;
      sum = IsReal(sum) ? sum + entry.*of : entry.*of;
    }
    return sum;
  }
  // The series of it with the largest total.
  const FootprintEntry* Largest(std::string_view metric, const Wanted& wanted = nullptr) const {
    const FootprintEntry* largest = nullptr;
    for (const FootprintEntry& entry : profile_.footprint) {
      if (entry.series.metric.name != metric || (wanted && !wanted(entry))) continue;
      if (largest == nullptr || entry.last > largest->last) largest = &entry;
    }
    return largest;
  }
  static Wanted With(std::string_view tag, std::string_view value) {
    return [tag, value](const FootprintEntry& entry) { return TagOf(entry, tag) == value; };
  }
  void Set(std::string_view name, double value) { facts_.Set(name, value); }

  void SetStep() {
    duration_ = summary_.duration;
    tasks_ = summary_.measured_tasks > 0 ? summary_.measured_tasks : job_.expected_tasks;
    nodes_ = job_.expected_nodes;
    // A command of `sonde run` may start others, whose number is not known.
    if (job_.id.step == "run" || !(tasks_ > 0)) tasks_ = kMissing;
    Set("duration", duration_);
    Set("nodes", nodes_);
    Set("tasks", tasks_);
    Set("tasks_per_node", tasks_ / nodes_);
    if (job_.state == EndState::kRunning) return;
    Set("completed", job_.state == EndState::kCompleted ? 1 : 0);
    Set("timed_out", job_.state == EndState::kTimeout ? 1 : 0);
  }

  std::string Variable(const char* name) const {
    const auto at = job_.environment.find(name);
    return at == job_.environment.end() ? "" : at->second;
  }

  void SetAsked() {
    if (job_.request && job_.request->time_limit > 0 &&
        job_.request->time_limit != JobRequest::kNoLimit) {
      Set("time_limit", static_cast<double>(job_.request->time_limit) / kSecond);
    }
    cpus_ = StepCpus(profile_, tasks_);
    Set("cpus", cpus_);
    Set("cpus_per_task", cpus_ / tasks_);
    uint32_t threads = 0;
    const std::string said = Variable("SLURM_THREADS_PER_CORE");
    std::from_chars(said.data(), said.data() + said.size(), threads);
    if (threads > 0) Set("threads_per_core", threads);
    Set("has_gpus", HasGpus() ? 1 : 0);
    SetMemoryAsked();
    if (job_.request && job_.request->begun > 0 && job_.request->submitted > 0) {
      Set("queue_wait",
          static_cast<double>(job_.request->begun - job_.request->submitted) / kSecond);
    }
  }
  bool HasGpus() const {
    constexpr const char* kOfGpus[] = {"SLURM_JOB_GPUS", "SLURM_STEP_GPUS", "SLURM_GPUS",
                                       "SLURM_GPUS_ON_NODE", "SLURM_GPUS_PER_NODE"};
    const bool told = std::any_of(std::begin(kOfGpus), std::end(kOfGpus),
                                  [this](const char* name) { return !Variable(name).empty(); });
    const bool asked = job_.request && job_.request->gres.find("gpu") != std::string::npos;
    return told || asked || SummarizeHardware(profile_).gpus > 0;
  }
  // Slurm takes one of both options, and not the other one.
  void SetMemoryAsked() {
    Set("memory_asked", AskedMemory(job_));
    if (!Variable("SLURM_MEM_PER_GPU").empty()) return;
    const bool each = !Variable("SLURM_MEM_PER_CPU").empty();
    const double parts = each ? AskedCpus(job_) / nodes_ : 1;
    facts_.SetText("mem_option", each ? "--mem-per-cpu" : "--mem");
    if (parts > 0) Set("mem_parts", parts);
  }

  void SetCpu() {
    measured_ = summary_.measured > 0 ? summary_.measured : kMissing;
    task_seconds_ = tasks_ * measured_;
    const double cpu = summary_.cpu_seconds;
    Set("cpus_busy", cpu / measured_);
    Set("cpu_of_task", cpu / task_seconds_);
    // Tasks that have more threads than CPUs cannot use more than the CPUs.
    Set("cpu_share", cpu / measured_ / cpus_);
    if (cpu > 0) Set("system_share", summary_.cpu_system / cpu);
    Set("threads_per_task", Mean("task_threads") / tasks_);
    processes_ = Mean("task_processes") / tasks_;
    Set("processes_per_task", processes_);
    const FootprintEntry* const user = Largest("task_cpu_seconds_total");
    if (user == nullptr || !(tasks_ >= 2) || !(user->last > 0)) return;
    Set("cpu_imbalance", user->max / (user->last / tasks_) - 1);
    Set("cpu_most_share", user->max / measured_);
    Set("cpu_least_share", user->min / measured_);
    facts_.SetText("cpu_most_by", OwnerName(user->max_owner, job_));
    facts_.SetText("cpu_least_by", OwnerName(user->min_owner, job_));
  }

  void SetNodes() {
    const double cpu = summary_.cpu_seconds;
    const double throttled = Total("cgroup_cpu_throttled_seconds_total");
    Set("throttled_share", throttled / (cpu + throttled));
    const double steal = Total("node_cpu_seconds_total", With("mode", "steal"));
    const double all = Total("node_cpu_seconds_total");
    if (all > 0) Set("stolen_share", steal / all);
    Set("cpu_pressure", Mean("cgroup_pressure_cpu_waiting_seconds_total"));
    double pressure = Mean("cgroup_pressure_cpu_waiting_seconds_total");
    if (!IsReal(pressure)) pressure = Mean("node_pressure_cpu_waiting_seconds_total");
    const double of_task = cpu / task_seconds_;
    // The host takes processors from those that want them.
    double held = std::max(0.0, IsReal(pressure) ? pressure : 0);
    if (IsReal(steal)) held += steal / duration_ / nodes_;
    Set("cpu_wanted", std::min(std::max(1.0, of_task), of_task + held));
    const double busy = Total("node_cpu_seconds_total", [](const FootprintEntry& entry) {
      const std::string_view mode = TagOf(entry, "mode");
      return mode != "idle" && mode != "iowait" && mode != "steal";
    });
    Set("others_cpus", std::max(0.0, busy - cpu) / duration_ / nodes_);
    const double resident = Mean("task_resident_memory_bytes");
    if (resident > 0) {
      Set("huge_page_share", std::min(1.0, Mean("node_memory_AnonHugePages_bytes") / resident));
    }
  }

  void SetCounters() {
    const HardwareSummary hardware = SummarizeHardware(profile_);
    Set("instructions_per_cycle", hardware.instructions_per_cycle);
    Set("flops", hardware.flops_per_second);
    Set("memory_bandwidth", hardware.memory_bytes_per_second);
    Set("vector_share", hardware.vector_ratio);
    Set("memory_stalls", Mean("task_memory_stall_ratio"));
    Set("cache_miss_ratio", Mean("task_cache_miss_ratio"));
    Set("branch_miss_ratio", Mean("task_branch_miss_ratio"));
  }

  void SetMpi() {
    const double all = Total("mpi_seconds_total");
    if (!IsReal(all)) return;
    const double collective = Total("mpi_seconds_total", With("class", "collective"));
    Set("mpi_share", all / task_seconds_);
    Set("mpi_wait_share", Total("mpi_wait_seconds_total") / task_seconds_);
    Set("mpi_collective_share", collective / task_seconds_);
    const double sent = Total("mpi_sent_bytes_total");
    const double calls = Total("mpi_calls_total", With("class", "p2p"));
    if (calls > 0) Set("mpi_message", sent / calls);
  }

  // What calls of the kernel tell; these include pipes and caches.
  void SetFiles() {
    const double reads = Total("task_read_calls_total");
    const double writes = Total("task_write_calls_total");
    const double read = Total("task_read_call_bytes_total");
    const double written = Total("task_write_call_bytes_total");
    if (reads > 0) Set("read_size", read / reads);
    if (writes > 0) Set("write_size", written / writes);
    Set("reads_per_second", reads / task_seconds_);
    Set("writes_per_second", writes / task_seconds_);
    Set("read_bytes", read);
    Set("written_bytes", written);
    Set("stored_bytes", Total("task_written_bytes_total"));
    Set("io_blocked", Mean("task_processes_blocked") / Mean("task_processes"));
  }

  void SetCalls() {
    const auto file = [](const FootprintEntry& entry) {
      return !IsPseudoFilesystem(TagOf(entry, "fstype"));
    };
    const double all = Total("io_seconds_total", file);
    if (!IsReal(all)) return;
    Set("io_share", std::min(1.0, all / task_seconds_ / std::max(1.0, processes_)));
    const auto share = [&](std::initializer_list<std::string_view> operations) {
      return Total("io_seconds_total", [&](const FootprintEntry& entry) {
        return file(entry) && std::find(operations.begin(), operations.end(),
                                        TagOf(entry, "operation")) != operations.end();
      });
    };
    if (!(all > 0)) return;
    Set("sync_share", share({"sync"}) / all);
    Set("metadata_share", share({"open", "close", "metadata"}) / all);
  }

  void SetMemory() {
    Set("memory_limit", summary_.memory_limit > 0 ? summary_.memory_limit : kMissing);
    // Without the rows of nodes it is that of one task.
    if (!summary_.memory_peak.by.starts_with("task ") || tasks_ <= nodes_) {
      Set("memory_peak", summary_.memory_peak.value);
      facts_.SetText("memory_peak_by", summary_.memory_peak.by);
    }
    Set("memory_of_task", Mean("task_resident_memory_bytes") / tasks_);
    Set("swapped_bytes",
        Total("node_vmstat_pswpin_bytes_total") + Total("node_vmstat_pswpout_bytes_total"));
    Set("major_faults_per_second", Total("task_major_faults_total") / task_seconds_);
    Set("oom_kills", OutOfMemoryKills(profile_));
  }

  void SetGpus() {
    const HardwareSummary hardware = SummarizeHardware(profile_);
    if (hardware.gpus == 0) return;
    Set("gpu_busy", hardware.gpu_utilization);
    Set("gpu_memory_peak", hardware.gpu_memory_peak);
    double throttled = 0, gpus = 0;
    for (const FootprintEntry& entry : profile_.footprint) {
      if (entry.series.metric.name != "gpu_throttled" || !IsReal(entry.mean)) continue;
      throttled = std::max(throttled, entry.mean);
      ++gpus;
    }
    if (gpus > 0) Set("gpu_throttled", throttled);
  }

  const Profile& profile_;
  const JobDescription& job_;
  const Summary& summary_;
  Facts facts_;
  double duration_ = kMissing;
  double measured_ = kMissing;  // seconds for which tasks were measured, in the mean
  double tasks_ = kMissing;
  double nodes_ = kMissing;
  double cpus_ = kMissing;
  double task_seconds_ = kMissing;
  double processes_ = kMissing;  // of a task
};

}  // namespace

Facts FactsOfProfile(const Profile& profile, const Summary& summary) {
  return FromProfile(profile, summary).Take();
}

}  // namespace sonde::insight
