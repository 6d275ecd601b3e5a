#include "daemon/collect/registry.h"

#include <fmt/core.h>

#include <utility>

#include "daemon/collect/counters/machine_source.h"
#include "daemon/collect/counters/vocabulary.h"
#include "daemon/collect/filesystems/filesystem_sources.h"
#include "daemon/collect/gpu/gpu_metrics.h"
#include "daemon/collect/job/allocation.h"
#include "daemon/collect/job/cgroup.h"
#include "daemon/collect/job/tasks.h"
#include "daemon/collect/os/os_sources.h"
#include "daemon/collect/self.h"
#include "daemon/collect/sensors/sensor_sources.h"
#include "daemon/collect/sensors/step_energy.h"

namespace sonde::collect {
namespace {

constexpr std::string_view kIntroduction =
    R"(# Metrics

This page is made from the declarations in the program: `list_metrics --markdown`.

A metric of level L is recorded when the step runs with `--telemetry-level` L or higher. A counter
(`counter`) counts from the start of the step; a `gauge` is what was measured at the tick. Units are
base units; `1` is a plain number. The last column but one says how the values of the nodes, or of
the tasks, become the number for the whole step: their sum, their mean, their smallest or their
largest. All other statistics are recorded as well; where it says `spread`, so are percentiles
(5, 50, 95 and 99 %) over the nodes or tasks at every tick, within 1 %: of a gauge's values, of a
counter's rates per second. What could not be read is missing, never zero.

What a sample costs is what the kernel takes to write its files, however little of them is kept. So
level 2 keeps of every file it reads what tells how the step fares or explains why it does not, and
level 4 adds what is many times as much (each processor, every partition) or hardly ever asked for.

Files that are dear to read (paging, TCP and other protocols) are read every 10 s up to level 3, at
the first tick of every 10 s of the clock, so that all nodes read them together; besides when the step
begins and when it ends. In between these metrics have no values, rather than old ones: a counter that
seemed to stand still and then to jump would show rates that never were. Rates and lines join the
values there are. Level 4 reads them at every tick. Where series are downsampled, choose intervals that
divide 10 s or are multiples of it, so that each holds as many values as the next.

Series have tags, such as the network interface; every series also has the tags of its step and of
its node, `host`. A sum over series that count the same thing in two places (a disk and its
partitions at level 4, a bond and its interfaces) counts it twice: choose by tag.

The application's own metrics (level 1) are not listed here: it declares them itself.
)";

// The text of a JSON string; declarations hold neither control characters nor anything but ASCII.
std::string Quoted(std::string_view text) {
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += c;
  }
  return quoted + '"';
}

std::vector<MetricDecl> Joined(const std::vector<std::vector<MetricDecl>>& parts) {
  std::vector<MetricDecl> metrics;
  for (const auto& part : parts) metrics.insert(metrics.end(), part.begin(), part.end());
  return metrics;
}

std::vector<SourceMetrics> SourcesOfTheStep() {
  return {
      {"Tasks", "The step's own tasks with all their descendants. Tag `task`, the rank.",
       TasksMetrics()},
      {"Counters of tasks",
       "Events counted by hardware and kernel for each task with its descendants, and what is "
       "derived from them: of a processor's event set those it has, or what "
       "`--telemetry-events` asks for; docs/counters.md tells which and how. Tag `task`. For the "
       "step a ratio is the mean of the tasks' ratios.",
       CounterMetrics()},
      {"Machine counters",
       "Memory controllers, and energy meters of processors (`node_energy_joules_total`, under "
       "Power), "
       "opened by the plugin for steps with the node to themselves.",
       MachineMetrics()},
      {"Allocation", "What Slurm has allocated to the step, enforced or not.", AllocationMetrics()},
      {"Control group",
       "What the kernel counts for the step's control group on the node and enforces there: all "
       "its "
       "tasks together, pages of the file cache included. From version 1 or 2, whichever has the "
       "controller; a kernel has only some of these. Nothing where the step has no group of its "
       "own. The group is made with the step, so its counters are given as they are.",
       CgroupMetrics()},
  };
}

std::vector<SourceMetrics> SourcesOfTheSystem() {
  return {
      {"Processors", "From `/proc/stat`.", CpuMetrics()},
      {"Kind of processors", "From `/proc/cpuinfo` and cpufreq, once.", ProcessorMetrics()},
      {"Soft interrupts", "From `/proc/softirqs`.", SoftirqsMetrics()},
      {"Interrupts",
       "From `/proc/interrupts`; a kind that has never interrupted is left out, and so is all of "
       "it "
       "where the file is larger than 1 MiB.",
       InterruptsMetrics()},
      {"Scheduler", "From `/proc/schedstat`; missing where the kernel has none.",
       SchedstatMetrics()},
      {"Load", "From `/proc/loadavg`.", LoadavgMetrics()},
      {"Memory", "From `/proc/meminfo`; kernels have only some of these.", MeminfoMetrics()},
      {"Paging", "From `/proc/vmstat`; kernels have only some of these.", VmstatMetrics(), true},
      {"Huge pages", "From `/sys/kernel/mm/hugepages`, by size of page.", HugepagesMetrics()},
      {"NUMA nodes",
       "From `/sys/devices/system/node`, by NUMA node; kernels have only some of these.",
       NumaMetrics()},
      {"Free memory by size", "From `/proc/buddyinfo`.", BuddyinfoMetrics()},
      {"Pressure", "From `/proc/pressure`; missing where the kernel does not record it (`psi=1`).",
       PressureMetrics()},
      {"Network", "From `/proc/net/dev`, by interface; the loopback interface only at level 4.",
       NetdevMetrics()},
      {"Internet protocols", "From `/proc/net/snmp`, all interfaces together.", SnmpMetrics(),
       true},
      {"TCP", "From `/proc/net/netstat`, all interfaces together; kernels have only some of these.",
       NetstatMetrics(), true},
      {"IPv6", "From `/proc/net/snmp6`, all interfaces together.", Snmp6Metrics(), true},
      {"Sockets", "From `/proc/net/sockstat`.", SockstatMetrics(), true},
      {"Packets on processors", "From `/proc/net/softnet_stat`.", SoftnetMetrics(), true},
      {"InfiniBand",
       "From `/sys/class/infiniband`, by device and port, RoCE and the like included; drivers have "
       "only some of these.",
       InfinibandMetrics()},
      {"Slingshot",
       "From `/sys/class/cxi`, by adapter; adapters have only some of these. Of MPI's traffic the "
       "interfaces `hsn*` above know nothing.",
       SlingshotMetrics()},
      {"Disks",
       "From `/sys/block` or `/proc/diskstats`, by device; partitions, volumes and loop devices "
       "only at level 4. Kernels before 4.18 do not count discards, and those before 5.5 no "
       "flushes.",
       DiskMetrics()},
  };
}

std::vector<SourceMetrics> SourcesOfFilesystems() {
  return {
      {"Filesystems",
       "From `statvfs` every 10 s: local disks, tmpfs and NFS, each once however often it is "
       "mounted, 32 at most. One whose server does not answer is missing for that time, and the "
       "profile has a note. Others, such as Lustre, IBM Storage Scale (GPFS), FUSE and overlays, "
       "are asked if the site wants it (`ask_filesystems`): a daemon that hangs in one of these "
       "cannot be killed. For GPFS this is all there is: its own counters are for root.",
       SpaceMetrics()},
      {"NFS",
       "From `/proc/net/rpc/nfs` and `/proc/self/mountstats`, the latter at most once a second; "
       "nothing where no NFS is mounted. All programs of the node together.",
       Joined({NfsMetrics(), NfsMountsMetrics()})},
      {"Lustre",
       "From `llite/*/stats`, by filesystem, all programs of the node together. Since Lustre 2.12 "
       "these files are in debugfs, which only root may read unless the site opens it: then there "
       "is nothing.",
       LustreMetrics()},
  };
}

std::vector<SourceMetrics> SourcesOfSensors() {
  return {
      {"Energy and power",
       "From `/sys/class/powercap` (RAPL), `/sys/cray/pm_counters` and `/sys/class/hwmon`, where "
       "they are and may be read: most systems let only root read RAPL. Domains contain one "
       "another (node its cpu, psys its packages): choose by tag. Parts of a package or of the "
       "node's processors (core, uncore, cpu0) only at level 4. RAPL's counters wrap around "
       "within minutes, so a period longer than that loses energy; a sensor of hwmon that takes "
       "more than 1 ms is left out, and the others are read at most once a second.",
       PowerMetrics()},
      {"Step energy",
       "From the node's energy, and the CPU time of step and node; docs/counters.md has the "
       "formula.",
       StepEnergyMetrics()},
      {"GPUs",
       "By NVML (NVIDIA), ROCm SMI (AMD) and Level Zero Sysman (Intel), whichever is installed, of "
       "the step's own devices. Tag `gpu`, the number that Slurm and nvidia-smi give the device. "
       "Devices have only some of these.",
       GpuMetrics()},
      {"Temperature and frequency",
       "From `/sys/class/hwmon` (or `/sys/class/thermal` where that has no temperatures) and "
       "`/sys/devices/system/cpu`, at most once a second; a chip that takes more than 1 ms to be "
       "read is left out. Frequencies are only for level 4: to read them, some kernels interrupt "
       "every processor.",
       Joined({TemperatureMetrics(), ThrottlingMetrics(), FrequencyMetrics()})},
  };
}

}  // namespace

const std::vector<SourceMetrics>& MetricsBySource() {
  static const std::vector<SourceMetrics> sources = [] {
    std::vector<SourceMetrics> all;
    for (const auto part :
         {SourcesOfTheStep, SourcesOfTheSystem, SourcesOfFilesystems, SourcesOfSensors}) {
      for (SourceMetrics& source : part()) all.push_back(std::move(source));
    }
    all.push_back({"Sonde itself", "What the daemon on each node costs.", SelfMetrics()});
    return all;
  }();
  return sources;
}

const std::vector<MetricDecl>& AllMetrics() {
  static const std::vector<MetricDecl> all = [] {
    std::vector<MetricDecl> metrics;
    for (const SourceMetrics& source : MetricsBySource()) {
      metrics.insert(metrics.end(), source.metrics.begin(), source.metrics.end());
    }
    return metrics;
  }();
  return all;
}

std::string MetricsAsMarkdown() {
  std::string text(kIntroduction);
  for (const SourceMetrics& source : MetricsBySource()) {
    text += fmt::format(
        "\n## {}\n\n{}{}\n\n| name | unit | type | level | for the step | meaning |\n"
        "|---|---|---|---|---|---|\n",
        source.title, source.about, source.dear ? " Up to level 3 sampled every 10 s." : "");
    for (const MetricDecl& m : source.metrics) {
      text += fmt::format("| `{}` | {} | {} | {} | {}{} | {} |\n", m.name, m.unit, ToString(m.type),
                          m.level, ToString(m.reduction), m.spread ? ", spread" : "", m.help);
    }
  }
  return text;
}

std::string MetricAsJsonLine(const MetricDecl& m) {
  return fmt::format(
      R"({{"name":{},"unit":{},"type":"{}","level":{},"reduction":"{}","spread":{},"help":{}}})"
      "\n",
      Quoted(m.name), Quoted(m.unit), ToString(m.type), m.level, ToString(m.reduction), m.spread,
      Quoted(m.help));
}

std::string MetricsAsJsonLines() {
  std::string text;
  for (const MetricDecl& metric : AllMetrics()) text += MetricAsJsonLine(metric);
  return text;
}

}  // namespace sonde::collect
