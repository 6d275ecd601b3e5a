#include "profiles/compare/weight.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace sonde {
namespace {

// What a node can be thought to move in a second: less than one disk or a network of 1 Gbit/s.
constexpr double kOrdinaryRate = 100.0 * 1024 * 1024;

constexpr std::array<std::string_view, 22> kPseudoTypes = {
    "autofs",  "binfmt_misc", "bpf",      "cgroup",     "cgroup2",    "configfs",
    "debugfs", "devpts",      "devtmpfs", "efivarfs",   "fusectl",    "mqueue",
    "nsfs",    "proc",        "pstore",   "rpc_pipefs", "securityfs", "selinuxfs",
    "smackfs", "sysfs",       "tracefs",  "pipefs"};

bool IsBelow(std::string_view path, std::string_view folder) {
  return path.starts_with(folder) && (path.size() == folder.size() || path[folder.size()] == '/');
}

double Mean(const ComparedGroup& group, double (*number)(const ComparedRun&)) {
  double sum = 0;
  size_t count = 0;
  for (const ComparedRun& run : group) {
    const double value = number(run);
    if (std::isnan(value)) continue;
    sum += value;
    ++count;
  }
  return count == 0 ? kMissing : sum / static_cast<double>(count);
}

double MovedBytes(const ComparedRun& run) {
  const Summary& s = run.summary;
  double sum = 0;
  for (const double bytes : {s.task_read, s.task_written, s.disk_read, s.disk_written,
                             s.network_received, s.network_sent}) {
    if (!std::isnan(bytes)) sum += bytes;
  }
  return sum;
}

StepSize Larger(const StepSize& a, const StepSize& b) {
  StepSize out;
  for (const auto member :
       {&StepSize::seconds, &StepSize::nodes, &StepSize::tasks, &StepSize::processors,
        &StepSize::cpu_seconds, &StepSize::node_memory, &StepSize::moved_bytes}) {
    out.*member = std::fmax(a.*member, b.*member);
  }
  return out;
}

double WholeSeconds(const Weighed& what, const StepSize& size) {
  if (what.reduction != Reduction::kSum) return size.seconds;
  if (what.metric.starts_with("node_cpu_") || what.metric.starts_with("node_schedstat_")) {
    return size.seconds * size.processors;
  }
  if (what.metric.starts_with("node_")) return size.seconds * size.nodes;
  return std::fmax(size.seconds * size.tasks, size.cpu_seconds);
}

// What the number is a part of.
double WholeOf(const Weighed& what, const StepSize& size) {
  if (what.section == CompareSection::kTime || what.section == CompareSection::kPhases) {
    return size.seconds;
  }
  if (what.unit == "ratio") return 1;
  if (what.unit == "seconds" && what.counts) return WholeSeconds(what, size);
  // Pages that a node's kernel handled are no part of what the step moved.
  if (what.unit != "bytes" || what.metric.starts_with("node_vmstat_")) return kMissing;
  if (what.counts) {
    return std::fmax(size.moved_bytes, size.seconds * size.nodes * kOrdinaryRate);
  }
  const bool memory = what.section == CompareSection::kMemory ||
                      what.metric.find("memory") != std::string_view::npos;
  if (!memory || what.section == CompareSection::kGpu) return kMissing;
  return what.reduction == Reduction::kSum ? size.node_memory * size.nodes : size.node_memory;
}

}  // namespace

StepSize SizeOf(const ComparedGroup& group) {
  StepSize size;
  size.seconds = Mean(group, [](const ComparedRun& r) { return r.summary.duration; });
  size.nodes = Mean(group, [](const ComparedRun& r) {
    return static_cast<double>(r.profile.job.expected_nodes);
  });
  size.tasks = Mean(group, [](const ComparedRun& r) {
    return static_cast<double>(r.profile.job.expected_tasks);
  });
  size.processors = Mean(group, [](const ComparedRun& r) { return r.summary.node_cpus; });
  size.cpu_seconds = Mean(group, [](const ComparedRun& r) { return r.summary.cpu_seconds; });
  size.node_memory = Mean(group, [](const ComparedRun& r) { return r.summary.memory_total; });
  size.moved_bytes = Mean(group, MovedBytes);
  return size;
}

double WeightOf(const Weighed& what, double base, double other, const StepSize& of_base,
                const StepSize& of_other) {
  const double a = std::isnan(base) ? 0 : base;
  const double b = std::isnan(other) ? 0 : other;
  const double whole = what.section == CompareSection::kFigures
                           ? std::fmax(std::abs(a), std::abs(b))
                           : WholeOf(what, Larger(of_base, of_other));
  if (!(whole > 0)) return kMissing;
  return std::min(std::abs(b - a) / whole, 1.0);
}

bool IsOfPseudoFilesystem(const Tags& tags) {
  const std::string* type = tags.Find("fstype");
  if (type != nullptr &&
      std::find(kPseudoTypes.begin(), kPseudoTypes.end(), *type) != kPseudoTypes.end()) {
    return true;
  }
  const std::string* place = tags.Find("mountpoint");
  if (place == nullptr || IsBelow(*place, "/dev/shm")) return false;
  return IsBelow(*place, "/proc") || IsBelow(*place, "/sys") || IsBelow(*place, "/dev");
}

}  // namespace sonde
