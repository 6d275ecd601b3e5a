#include "profiles/model/summary.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <map>
#include <string_view>
#include <utility>

#include "series/query/steps.h"

namespace sonde {
namespace {

// Names that Sonde itself collects; other names are the application's.
constexpr std::array<std::string_view, 7> kHouse = {"node_", "task_", "sonde_", "cgroup_",
                                                    "perf_", "gpu_",  "power_"};

constexpr double kMebibyte = 1 << 20;

// The source of a row.
constexpr std::string_view kTaskCpu = "task_cpu_seconds_total";
constexpr std::string_view kNodeCpu = "node_cpu_seconds_total";
constexpr std::string_view kResident = "task_resident_memory_bytes";
constexpr std::string_view kResidentPeak = "task_resident_memory_peak_bytes";
constexpr std::string_view kGroupAnon = "cgroup_memory_anon_bytes";
constexpr std::string_view kMemTotal = "node_memory_MemTotal_bytes";
constexpr std::string_view kMemLimit = "cgroup_memory_limit_bytes";
// Slurm may not enforce it.
constexpr std::string_view kMemAllocated = "node_memory_allocated_bytes";

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

double MinOf(double a, double b) { return std::isnan(a) ? b : std::isnan(b) ? a : std::min(a, b); }

double MaxPoint(const SeriesData& data) {
  double most = kMissing;
  for (const Point& point : data.points) most = MaxOf(most, point.value);
  return most;
}

void AddSeries(NodeRow& row, std::map<Nanos, double>& resident, const SeriesData& data) {
  if (data.points.empty()) return;
  const std::string& name = data.series.metric.name;
  const double last = data.points.back().value;
  const auto counted = [&] {  // by all daemons that the node had, one after another
    std::vector<Point> points = data.points;
    query_steps::GoOnAfterResets(points);
    return points.back().value;
  };
  if (name == kTaskCpu) AddTo(row.cpu_seconds, counted());
  if (name == kNodeCpu) AddTo(row.node_cpu_seconds, counted());
  if (name == kMemTotal) row.memory_total = last;
  if (name == kMemLimit || name == kMemAllocated) row.memory_limit = MinOf(row.memory_limit, last);
  if (name == kResidentPeak) row.memory_peak = MaxOf(row.memory_peak, MaxPoint(data));
  if (name == kResident) {
    for (const Point& point : data.points) resident[point.time] += point.value;
  }
  for (const CounterField& field : kCounters) {
    if (field.metric == name) AddTo(row.*field.row, counted());
  }
}

NodeRow EmptyRow(const NodeInfo& node) {
  NodeRow row;
  row.host = node.host;
  row.tasks = node.tasks;
  row.lost = node.lost;
  row.note = node.note;
  row.cpu_seconds = row.node_cpu_seconds = kMissing;
  row.memory_peak = row.memory_total = row.memory_limit = kMissing;
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
      s.memory_limit = row.memory_limit;
    }
  }
}

// Whether it has a node to itself, so that its memory is that of the node's tasks.
bool IsAlone(const Owner& owner, const JobDescription& job) {
  return owner.rank == Owner::kNobody || owner.node >= job.nodes.size() ||
         job.nodes[owner.node].tasks <= 1;
}

// The peak of a node. The footprint has extremes of tasks, and of control groups, which have all
// tasks of a node. False: it is that of one task of several, and of no use beside a node's memory.
bool HeldMemory(Summary& s, const Profile& profile) {
  const FootprintEntry* memory = FindEntry(profile, kResidentPeak);
  if (memory == nullptr) memory = FindEntry(profile, kResident);
  const bool alone = memory == nullptr || IsAlone(memory->max_owner, profile.job);
  const FootprintEntry* const group = FindEntry(profile, kGroupAnon);
  if (group != nullptr && (memory == nullptr || !alone)) memory = group;
  if (memory != nullptr) s.memory_peak = {memory->max, OwnerName(memory->max_owner, profile.job)};
  return alone || memory == group;
}

// As HeldMemory.
bool HeldFromFootprint(Summary& s, const Profile& profile) {
  if (const FootprintEntry* cpu = FindEntry(profile, kTaskCpu, "user")) {
    s.least_cpu = {cpu->min, OwnerName(cpu->min_owner, profile.job)};
    s.most_cpu = {cpu->max, OwnerName(cpu->max_owner, profile.job)};
  }
  const bool of_node = HeldMemory(s, profile);
  if (const FootprintEntry* total = FindEntry(profile, kMemTotal)) s.memory_total = total->max;
  for (const std::string_view name : {kMemLimit, kMemAllocated}) {
    const FootprintEntry* const limit = FindEntry(profile, name);
    if (limit != nullptr) s.memory_limit = MinOf(s.memory_limit, limit->min);
  }
  return of_node;
}

// A host within a component of the job.
using HostOfJob = std::pair<std::string_view, std::string_view>;

// For each node, whether its daemon was started anew later and is another node from then on, which
// comes behind it.
std::vector<bool> ReplacedNodes(const JobDescription& job) {
  std::map<HostOfJob, Nanos> last_joined;  // of the nodes behind
  std::vector<bool> replaced(job.nodes.size());
  for (size_t i = job.nodes.size(); i-- > 0;) {
    const NodeInfo& node = job.nodes[i];
    const auto [behind, is_last] = last_joined.try_emplace({node.host, node.job}, node.joined);
    replaced[i] = !is_last && node.left != 0 && behind->second >= node.left;
    behind->second = std::max(behind->second, node.joined);
  }
  return replaced;
}

// The end of the tasks on the nodes that were not lost, if all these nodes have said goodbye.
Nanos EndOfTasks(const JobDescription& job, Nanos end) {
  Nanos last = 0;
  for (const NodeInfo& node : job.nodes) {
    if (node.left == 0) return end;
    if (!node.lost) last = std::max(last, node.left);
  }
  return last == 0 ? end : std::min(last, end);
}

std::vector<double> SecondsOf(const JobDescription& job, Nanos now, bool of_tasks,
                              const std::vector<bool>& replaced) {
  const Nanos end = job.end != 0 ? job.end : now;
  const Nanos tasks_end = EndOfTasks(job, end);
  std::vector<double> seconds;
  for (size_t i = 0; i < job.nodes.size(); ++i) {
    const NodeInfo& node = job.nodes[i];
    const bool ended = node.left != 0 && !node.lost && !replaced[i];
    Nanos until = node.left == 0 ? end : std::min(node.left, end);
    if (of_tasks && ended) until = tasks_end;
    const Nanos time = until - std::max(job.start, node.joined);
    seconds.push_back(static_cast<double>(std::max<Nanos>(time, 0)) / kSecond);
  }
  return seconds;
}

// The same where the newest daemon of a host stands for all that the host had.
std::vector<double> SecondsOfHosts(const JobDescription& job, std::vector<double> seconds,
                                   const std::vector<bool>& replaced) {
  std::map<HostOfJob, double> before;
  for (size_t i = 0; i < seconds.size(); ++i) {
    const HostOfJob host{job.nodes[i].host, job.nodes[i].job};
    if (replaced[i]) {
      before[host] += seconds[i];
    } else if (const auto earlier = before.find(host); earlier != before.end()) {
      seconds[i] += std::exchange(earlier->second, 0);
    }
  }
  return seconds;
}

// How many tasks were measured, and for how long together.
void AddMeasured(Summary& s, const JobDescription& job, Nanos now,
                 const std::vector<bool>& replaced) {
  const std::vector<double> seconds = SecondsOf(job, now, /*of_tasks=*/true, replaced);
  double tasks = 0;
  double together = 0;
  for (size_t i = 0; i < seconds.size(); ++i) {
    if (!replaced[i]) tasks += job.nodes[i].tasks;
    together += seconds[i] * job.nodes[i].tasks;
  }
  // A step of `sonde run` or of a script has more processes than tasks that Slurm counts.
  const bool known = tasks > 0 && together > 0 && job.expected_tasks > 0;
  s.measured_tasks = known ? std::min<double>(tasks, job.expected_tasks) : kMissing;
  s.measured = known ? std::min(together / tasks, s.duration) : s.duration;
  if (known) {
    s.cpu_of_tasks = s.cpu_seconds / (s.measured * s.measured_tasks);
  } else {
    s.cpu_of_tasks =
        job.expected_tasks == 0 ? kMissing : s.cpu_seconds / (s.duration * job.expected_tasks);
  }
}

// Processors of all nodes that were measured: the time they had by the time they were measured.
double CpusOf(const JobDescription& job, const std::vector<NodeRow>& rows, double node_cpu,
              double duration, Nanos now, const std::vector<bool>& replaced) {
  const std::vector<double> seconds =
      SecondsOfHosts(job, SecondsOf(job, now, /*of_tasks=*/false, replaced), replaced);
  double together = 0;
  double nodes = 0;
  double cpus = 0;
  for (size_t i = 0; i < seconds.size(); ++i) {
    if (replaced[i]) continue;
    together += seconds[i];
    ++nodes;
    if (rows.size() != seconds.size()) continue;
    const double one = rows[i].node_cpu_seconds / seconds[i];
    if (std::isfinite(one)) cpus += std::round(one);
  }
  if (cpus > 0) return cpus;
  return std::round(together > 0 ? nodes * node_cpu / together : node_cpu / duration);
}

// "2(x4)": the same on four nodes; 0 if nodes differ.
uint64_t SameOnAll(std::string_view text) {
  const size_t end = std::min(text.find_first_not_of("0123456789"), text.size());
  uint64_t number = 0;
  const char* stop = text.data() + end;
  if (std::from_chars(text.data(), stop, number).ptr != stop) return 0;
  return text.find(',') == std::string_view::npos ? number : 0;
}

}  // namespace

std::string OwnerName(const Owner& owner, const JobDescription& job) {
  if (owner.node == Owner::kNobody) {
    return owner.rank == Owner::kNobody ? "" : "task " + std::to_string(owner.rank);
  }
  std::string host = owner.node < job.nodes.size() && !job.nodes[owner.node].host.empty()
                         ? job.nodes[owner.node].host
                         : "node" + std::to_string(owner.node);
  return owner.rank == Owner::kNobody ? host : "task " + std::to_string(owner.rank) + " on " + host;
}

bool HasNodeRows(const Metric& metric) {
  const std::string& name = metric.name;
  const auto is = [&](const CounterField& field) { return field.metric == name; };
  return name == kTaskCpu || name == kNodeCpu || name == kResident || name == kResidentPeak ||
         name == kMemTotal || name == kMemLimit || name == kMemAllocated ||
         std::any_of(kCounters.begin(), kCounters.end(), is);
}

bool IsOfNodeRows(const Series& series) { return !Doubles(series) && HasNodeRows(series.metric); }

std::vector<NodeRow> NodeRowsOf(const std::vector<SeriesData>& data, const JobDescription& job) {
  std::vector<NodeRow> rows;
  std::map<std::string_view, size_t> index;
  for (const NodeInfo& node : job.nodes) {
    index[node.host] = rows.size();
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

std::vector<double> MeasuredSeconds(const JobDescription& job, Nanos now, bool of_tasks) {
  const std::vector<bool> replaced = ReplacedNodes(job);
  return SecondsOfHosts(job, SecondsOf(job, now, of_tasks, replaced), replaced);
}

double AskedMemory(const JobDescription& job) {
  const auto number = [&](const std::string& name) {
    const auto at = job.environment.find(name);
    return at == job.environment.end() ? uint64_t{0} : SameOnAll(at->second);
  };
  const uint64_t of_node = number("SLURM_MEM_PER_NODE");
  const uint64_t of_cpu = number("SLURM_MEM_PER_CPU") * number("SLURM_JOB_CPUS_PER_NODE");
  const uint64_t asked = of_node != 0 ? of_node : of_cpu;
  return asked == 0 ? kMissing : static_cast<double>(asked) * kMebibyte;
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
  const std::vector<bool> replaced = ReplacedNodes(job);
  AddMeasured(s, job, end, replaced);
  // The kernel counts the nodes' time in steps of 10 ms per processor and mode: over less than a
  // second that says nothing.
  const bool long_enough = s.measured >= 1 && node_cpu > 0;
  s.cpu_of_nodes = long_enough ? s.cpu_seconds / node_cpu : kMissing;
  s.node_cpus = long_enough ? CpusOf(job, rows, node_cpu, s.duration, end, replaced) : kMissing;
  for (const CounterField& field : kCounters) s.*field.summary = Total(profile, field.metric);
  s.least_cpu.value = s.most_cpu.value = s.memory_peak.value = kMissing;
  s.memory_total = s.memory_limit = kMissing;
  bool of_node = true;
  if (rows.empty()) {
    of_node = HeldFromFootprint(s, profile);
  } else {
    HeldFromRows(s, rows);
  }
  s.memory_of_node = s.memory_total > 0 ? s.memory_peak.value / s.memory_total : kMissing;
  s.memory_limit = MinOf(s.memory_limit, AskedMemory(job));
  // Such a limit limits nothing; Slurm counts in MiB.
  if (s.memory_limit + kMebibyte > s.memory_total) s.memory_limit = kMissing;
  if (!of_node) s.memory_total = s.memory_of_node = s.memory_limit = kMissing;
  s.memory_of_limit = s.memory_limit > 0 ? s.memory_peak.value / s.memory_limit : kMissing;
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
