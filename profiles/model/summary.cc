#include "profiles/model/summary.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <string_view>

namespace sonde {
namespace {

// Names that Sonde itself collects; other names are the application's.
constexpr std::array<std::string_view, 7> kHouse = {"node_", "task_", "sonde_", "cgroup_",
                                                    "perf_", "gpu_",  "power_"};

// The source of a row.
constexpr std::string_view kTaskCpu = "task_cpu_seconds_total";
constexpr std::string_view kNodeCpu = "node_cpu_seconds_total";
constexpr std::string_view kResident = "task_resident_memory_bytes";
constexpr std::string_view kResidentPeak = "task_resident_memory_peak_bytes";
constexpr std::string_view kMemTotal = "node_memory_MemTotal_bytes";

struct CounterField {
  std::string_view metric;
  double NodeRow::*row;
  double Summary::*summary;
};
constexpr std::array<CounterField, 6> kCounters = {{
    {"node_network_receive_bytes_total", &NodeRow::network_received, &Summary::network_received},
    {"node_network_transmit_bytes_total", &NodeRow::network_sent, &Summary::network_sent},
    {"node_disk_read_bytes_total", &NodeRow::disk_read, &Summary::disk_read},
    {"node_disk_written_bytes_total", &NodeRow::disk_written, &Summary::disk_written},
    {"task_read_bytes_total", &NodeRow::task_read, &Summary::task_read},
    {"task_written_bytes_total", &NodeRow::task_written, &Summary::task_written},
}};

// The loopback device and single processors (level 4) would be counted twice.
bool Doubles(const Series& series) {
  const std::string* device = series.tags.Find("device");
  return (device != nullptr && *device == "lo") || series.tags.Find("cpu") != nullptr;
}

void AddTo(double& sum, double value) {
  if (std::isnan(value)) return;
  sum = std::isnan(sum) ? value : sum + value;
}

double MaxOf(double a, double b) { return std::isnan(a) ? b : std::isnan(b) ? a : std::max(a, b); }

// The sum over a metric's series of each one's last value; NaN if there is none.
double Total(const Profile& profile, std::string_view metric, std::string_view mode = "") {
  double sum = kMissing;
  for (const FootprintEntry& e : profile.footprint) {
    if (e.series.metric.name != metric || Doubles(e.series)) continue;
    const std::string* m = e.series.tags.Find("mode");
    if (!mode.empty() && (m == nullptr || *m != mode)) continue;
    AddTo(sum, e.last);
  }
  return sum;
}

const FootprintEntry* FindEntry(const Profile& profile, std::string_view metric,
                                std::string_view mode = "") {
  for (const FootprintEntry& e : profile.footprint) {
    if (e.series.metric.name != metric || Doubles(e.series)) continue;
    const std::string* m = e.series.tags.Find("mode");
    if (mode.empty() || (m != nullptr && *m == mode)) return &e;
  }
  return nullptr;
}

double MaxPoint(const SeriesData& data) {
  double most = kMissing;
  for (const Point& point : data.points) most = MaxOf(most, point.value);
  return most;
}

void AddSeries(NodeRow& row, std::map<Nanos, double>& resident, const SeriesData& data) {
  if (data.points.empty()) return;
  const std::string& name = data.series.metric.name;
  const double last = data.points.back().value;
  if (name == kTaskCpu) AddTo(row.cpu_seconds, last);
  if (name == kNodeCpu) AddTo(row.node_cpu_seconds, last);
  if (name == kMemTotal) row.memory_total = last;
  if (name == kResidentPeak) row.memory_peak = MaxOf(row.memory_peak, MaxPoint(data));
  if (name == kResident) {
    for (const Point& point : data.points) resident[point.time] += point.value;
  }
  for (const CounterField& field : kCounters) {
    if (field.metric == name) AddTo(row.*field.row, last);
  }
}

NodeRow EmptyRow(const NodeInfo& node) {
  NodeRow row;
  row.host = node.host;
  row.tasks = node.tasks;
  row.lost = node.lost;
  row.note = node.note;
  row.cpu_seconds = row.node_cpu_seconds = row.memory_peak = row.memory_total = kMissing;
  for (const CounterField& field : kCounters) row.*field.row = kMissing;
  return row;
}

void HeldFromRows(Summary& s, const std::vector<NodeRow>& rows) {
  for (const NodeRow& row : rows) {
    if (!std::isnan(row.cpu_seconds)) {
      if (!(row.cpu_seconds >= s.least_cpu.value)) s.least_cpu = {row.cpu_seconds, row.host};
      if (!(row.cpu_seconds <= s.most_cpu.value)) s.most_cpu = {row.cpu_seconds, row.host};
    }
    if (!std::isnan(row.memory_peak) && !(row.memory_peak <= s.memory_peak.value)) {
      s.memory_peak = {row.memory_peak, row.host};
      s.memory_total = row.memory_total;
    }
  }
}

void HeldFromFootprint(Summary& s, const Profile& profile) {
  if (const FootprintEntry* cpu = FindEntry(profile, kTaskCpu, "user")) {
    s.least_cpu = {cpu->min, OwnerName(cpu->min_owner, profile.job)};
    s.most_cpu = {cpu->max, OwnerName(cpu->max_owner, profile.job)};
  }
  const FootprintEntry* memory = FindEntry(profile, kResidentPeak);
  if (memory == nullptr) memory = FindEntry(profile, kResident);
  if (memory != nullptr) s.memory_peak = {memory->max, OwnerName(memory->max_owner, profile.job)};
  if (const FootprintEntry* total = FindEntry(profile, kMemTotal)) s.memory_total = total->max;
}

}  // namespace

std::string OwnerName(const Owner& owner, const JobDescription& job) {
  if (owner.node == Owner::kNobody) return "";
  std::string host = owner.node < job.nodes.size() && !job.nodes[owner.node].host.empty()
                         ? job.nodes[owner.node].host
                         : "node" + std::to_string(owner.node);
  return owner.rank == Owner::kNobody ? host : "task " + std::to_string(owner.rank) + " on " + host;
}

bool IsOfNodeRows(const Series& series) {
  const std::string& name = series.metric.name;
  const auto is = [&](const CounterField& field) { return field.metric == name; };
  return !Doubles(series) &&
         (name == kTaskCpu || name == kNodeCpu || name == kResident || name == kResidentPeak ||
          name == kMemTotal || std::any_of(kCounters.begin(), kCounters.end(), is));
}

std::vector<NodeRow> NodeRowsOf(const std::vector<SeriesData>& data, const JobDescription& job) {
  std::vector<NodeRow> rows;
  std::map<std::string, size_t> index;
  for (const NodeInfo& node : job.nodes) {
    index.emplace(node.host, rows.size());
    rows.push_back(EmptyRow(node));
  }
  std::vector<std::map<Nanos, double>> resident(rows.size());
  for (const SeriesData& series : data) {
    const std::string* host = series.series.tags.Find("host");
    const auto it = host == nullptr ? index.end() : index.find(*host);
    if (it != index.end()) AddSeries(rows[it->second], resident[it->second], series);
  }
  for (size_t i = 0; i < rows.size(); ++i) {
    for (const auto& [time, sum] : resident[i]) {
      rows[i].memory_peak = MaxOf(rows[i].memory_peak, sum);
    }
  }
  return rows;
}

double OutOfMemoryKills(const Profile& profile) { return Total(profile, "cgroup_oom_kills_total"); }

Summary Summarize(const Profile& profile, const std::vector<NodeRow>& rows, Nanos now) {
  const JobDescription& job = profile.job;
  Summary s;
  const Nanos end = job.end != 0 ? job.end : now;
  s.duration = end > job.start ? static_cast<double>(end - job.start) / kSecond : kMissing;
  s.cpu_seconds = Total(profile, kTaskCpu);
  s.cpu_user = Total(profile, kTaskCpu, "user");
  s.cpu_system = Total(profile, kTaskCpu, "system");
  const double node_cpu = Total(profile, kNodeCpu);
  s.cpu_of_tasks =
      job.expected_tasks == 0 ? kMissing : s.cpu_seconds / (s.duration * job.expected_tasks);
  // The kernel counts the nodes' time in steps of 10 ms per processor and mode: over less than a
  // second that says nothing.
  const bool long_enough = s.duration >= 1 && node_cpu > 0;
  s.cpu_of_nodes = long_enough ? s.cpu_seconds / node_cpu : kMissing;
  s.node_cpus = long_enough ? std::round(node_cpu / s.duration) : kMissing;
  for (const CounterField& field : kCounters) s.*field.summary = Total(profile, field.metric);
  s.least_cpu.value = s.most_cpu.value = s.memory_peak.value = s.memory_total = kMissing;
  if (rows.empty()) {
    HeldFromFootprint(s, profile);
  } else {
    HeldFromRows(s, rows);
  }
  s.memory_of_node = s.memory_total > 0 ? s.memory_peak.value / s.memory_total : kMissing;
  return s;
}

std::vector<const FootprintEntry*> ApplicationEntries(const Profile& profile) {
  std::vector<const FootprintEntry*> entries;
  for (const FootprintEntry& e : profile.footprint) {
    const std::string_view name = e.series.metric.name;
    const auto is_prefix = [&](std::string_view prefix) { return name.starts_with(prefix); };
    if (std::none_of(kHouse.begin(), kHouse.end(), is_prefix)) entries.push_back(&e);
  }
  return entries;
}

}  // namespace sonde
