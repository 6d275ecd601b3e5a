#include "tests/web/made_step.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "tests/web/made_conclusions.h"

namespace sonde::web {
namespace {

constexpr double kGib = 1024.0 * 1024 * 1024;
constexpr int kAwayFrom = 1200, kAwayTo = 1500, kLate = 600;

std::vector<std::string> Devices() {
  std::vector<std::string> all = {"nvme0n1"};
  for (int i = 0; i < 8; ++i) all.push_back("loop" + std::to_string(i));
  return all;
}

std::vector<std::string> Cores() {
  std::vector<std::string> all(12);
  for (size_t i = 0; i < all.size(); ++i) all[i] = std::to_string(i);
  return all;
}

Tags Lustre() { return {{"api", "posix"}, {"fstype", "lustre"}, {"mountpoint", "/scratch"}}; }

}  // namespace

struct MadeStep::Shape {
  MetricDecl decl;
  std::string key = {};
  std::vector<std::string> values = {};
  bool of_ranks = false;
  Tags tags = {};  // of all of its series
};

const std::vector<MadeStep::Shape>& MadeStep::Shapes() {
  using enum MetricType;
  using Reduction::kMean, Reduction::kMin, Reduction::kSum;
  static const std::vector<Shape> shapes = {
      {{"node_cpu_seconds_total", "seconds", kCounter, 2, kSum, "CPU time by mode. Tag mode."},
       "mode",
       {"idle", "iowait", "steal", "system", "user"}},
      {{"node_cpu_core_seconds_total", "seconds", kCounter, 4, kSum,
        "Time one processor spent in a mode. Tags cpu, mode."},
       "cpu",
       Cores()},
      {{"node_memory_MemAvailable_bytes", "bytes", kGauge, 2, kMin,
        "Memory that programs can still get without swapping."}},
      {{"node_memory_MemTotal_bytes", "bytes", kGauge, 2, kSum, "Memory the kernel manages."}},
      {{"node_memory_Dirty_bytes", "bytes", kGauge, 2, kSum, "Memory to be written to storage."}},
      {{"node_load1", "1", kGauge, 2, kMean, "Load average over 1 minute."}},
      {{"node_network_receive_bytes_total", "bytes", kCounter, 2, kSum,
        "Bytes received. Tag device."},
       "device",
       {"ib0", "ifb0", "ifb1"}},
      {{"node_network_transmit_bytes_total", "bytes", kCounter, 2, kSum, "Bytes sent. Tag device."},
       "device",
       {"ib0", "ifb0", "ifb1"}},
      {{"node_disk_written_bytes_total", "bytes", kCounter, 2, kSum, "Bytes written. Tag device."},
       "device",
       Devices()},
      {{"node_vmstat_thp_split_page_total", "1", kCounter, 4, kSum,
        "Huge pages that were split into small ones."}},
      {{"node_netstat_Tcp_AttemptFails_total", "1", kCounter, 4, kSum,
        "TCP connections that could not be opened."}},
      {{"node_netstat_Tcp_InErrs_total", "1", kCounter, 4, kSum,
        "Those of them that arrived damaged."}},
      {{"task_cpu_seconds_total", "seconds", kCounter, 2, kSum,
        "Processor time of the task and its descendants. Tags task, mode (user, system).", true},
       "mode",
       {"system", "user"},
       true},
      {{"task_resident_memory_bytes", "bytes", kGauge, 2, kSum,
        "Resident memory of all its processes; pages that they share count for each.", true},
       "",
       {},
       true},
      {{"task_written_bytes_total", "bytes", kCounter, 2, kSum,
        "Bytes the task caused to be written to storage, when it dirtied their pages."},
       "",
       {},
       true},
      {{"gpu_utilization_ratio", "1", kGauge, 3, kMean,
        "Share of time in which anything ran on the GPU, however few of its units it used."},
       "gpu",
       {"0"}},
      {{"mpi_seconds_total", "seconds", kCounter, 1, kSum, "Time in MPI. Tags class, function."},
       "class",
       {"collective"},
       true},
      {{"mpi_wait_seconds_total", "seconds", kCounter, 1, kSum,
        "Time in MPI in which other ranks are waited for. Tags class, function."},
       "class",
       {"collective"},
       true},
      {{"mpi_calls_total", "1", kCounter, 1, kSum, "Calls of MPI. Tags class, function."},
       "class",
       {"collective"},
       true},
      {{"mpi_sent_bytes_total", "bytes", kCounter, 1, kSum, "Bytes sent. Tags class, function."},
       "class",
       {"collective"},
       true},
      {{"io_calls_total", "1", kCounter, 1, kSum, "Calls for files. Tags api, fstype, operation."},
       "operation",
       {"metadata", "open", "read", "seek", "sync", "write"},
       true,
       Lustre()},
      {{"io_seconds_total", "seconds", kCounter, 1, kSum, "Time in calls for files."},
       "operation",
       {"metadata", "open", "read", "seek", "sync", "write"},
       true,
       Lustre()},
      {{"io_written_bytes_total", "bytes", kCounter, 1, kSum, "Bytes written by calls for files."},
       "",
       {},
       true,
       Lustre()},
  };
  return shapes;
}

// How much of a node's time is spent computing; a counter is its integral.
double MadeStep::ValueOf(const Shape& shape, size_t value, int node, double t) const {
  const std::string_view name = shape.decl.name;
  const double middle = kSeconds / 2.0;
  const double lost = node == Slow() ? 0.5 * std::max(0.0, t - middle) : 0;
  const double own = 1 + 0.05 * std::sin(node * 1.7);
  const double swing = 4 * std::sin(t / 60 + node * 0.02);
  const double computed = 0.7 * own * t + swing - lost;  // seconds
  if (name == "node_cpu_seconds_total") {
    const double rates[] = {8 * t - 2 * computed, 0.01 * t, 0, 0.05 * t, 2 * computed};
    return rates[value] + (value == 2 ? 0 : 10);
  }
  if (name == "node_cpu_core_seconds_total")
    return 0.08 * static_cast<double>(12 - value) * own * t;
  if (name == "task_cpu_seconds_total") return value == 1 ? computed + 5 : 0.03 * t;
  // The others wait for the slow node from the middle on.
  const double waits = node == Slow() ? 0 : 0.15 * std::max(0.0, t - middle);
  if (name == "mpi_seconds_total") return 0.22 * t * own + waits + 6;
  if (name == "mpi_calls_total") return std::floor(20 * t);
  if (name == "mpi_sent_bytes_total") return 20 * t * (1 << 20);
  if (name == "io_calls_total") return (static_cast<double>(value) + 1) * std::floor(t / 10);
  if (name == "io_seconds_total") return 1e-4 * static_cast<double>(value) * t;
  if (name == "io_written_bytes_total") return 2e9 * std::floor(t / 600);
  if (name == "mpi_wait_seconds_total") {
    return 0.02 * t + waits;
  }
  if (name == "node_memory_MemTotal_bytes") return 256 * kGib;
  if (name == "node_memory_MemAvailable_bytes") return (220 - 60 * t / kSeconds - node % 7) * kGib;
  if (name == "task_resident_memory_bytes") return (10 + 30 * t / kSeconds + node % 7 * 0.4) * kGib;
  if (name == "node_memory_Dirty_bytes") return std::fmod(t, 600) * 1e6;
  if (name == "node_load1") return 2 * (1 - std::exp(-t / 60)) + 0.2 * std::sin(t / 40 + node);
  if (name == "gpu_utilization_ratio") return 0.6 + 0.3 * std::sin(t / 90 + node * 0.03);
  if (name.starts_with("node_network")) return value == 0 ? 180e6 * own * t : 0;
  if (name == "node_disk_written_bytes_total") return value == 0 ? 4e9 * std::floor(t / 600) : 0;
  if (name == "task_written_bytes_total") return 2e9 * std::floor(t / 600);
  return 0;
}

bool MadeStep::IsThere(int node, int64_t second) const {
  if (node % 20 == 19 && second < kLate) return false;
  return node != Away() || nodes_ < 2 || second < kAwayFrom || second >= kAwayTo;
}

void MadeStep::AddPoints(const Shape& shape, size_t value, int node, const TimeRange& range,
                         SeriesData& data) const {
  const Nanos start = profile_.job.start;
  const Nanos first = std::max<Nanos>((range.first - start + kSecond - 1) / kSecond, 0);
  const Nanos last = std::min<Nanos>((range.last - start) / kSecond, kSeconds - 1);
  for (Nanos second = (first + period_ - 1) / period_ * period_; second <= last;
       second += period_) {
    if (!IsThere(node, second)) continue;
    data.points.push_back(
        {start + second * kSecond, ValueOf(shape, value, node, static_cast<double>(second))});
  }
}

void MadeStep::AddFootprint(const Shape& shape) {
  const size_t values = std::max<size_t>(shape.values.size(), 1);
  for (size_t value = 0; value < values; ++value) {
    FootprintEntry entry;
    entry.series.metric = Metric(shape.decl);
    entry.series.tags = shape.tags;
    if (!shape.key.empty()) entry.series.tags.Set(shape.key, shape.values[value]);
    Reduced last;
    for (int node = 0; node < nodes_; ++node) {
      for (int rank = 0; rank < (shape.of_ranks ? ranks_ : 1); ++rank) {
        const uint32_t who =
            shape.of_ranks ? static_cast<uint32_t>(node * ranks_ + rank) : Owner::kNobody;
        const bool gauge = shape.decl.type == MetricType::kGauge;
        for (const int t : {kSeconds / 4, kSeconds - 1}) {
          if (!gauge && t != kSeconds - 1) continue;
          last.Add(ValueOf(shape, value, node, t), {static_cast<uint32_t>(node), who});
        }
      }
    }
    entry.ticks = kSeconds;
    entry.last = last.Value(shape.decl.reduction);
    const bool counts = shape.decl.type == MetricType::kCounter;
    entry.mean = counts ? entry.last / kSeconds : last.Mean();
    entry.min = last.min;
    entry.max = last.max;
    entry.min_owner = last.min_owner;
    entry.max_owner = last.max_owner;
    profile_.footprint.push_back(std::move(entry));
  }
}

MadeStep::MadeStep(int nodes, Nanos now, bool running, int of_node)
    : nodes_(nodes), ranks_(of_node), period_(nodes * of_node > kMany * kUsualRanks ? 30 : 1) {
  now -= now % (10 * kSecond);
  JobDescription& job = profile_.job;
  job.cluster = "balloon";
  job.id = {"4713", "0"};
  job.name = "ocean";
  job.user = "ada";
  job.account = "fluids";
  job.partition = "main";
  job.command = "./ocean --resolution 10km";
  job.expected_nodes = job.job_nodes = static_cast<uint32_t>(nodes);
  job.expected_tasks = job.expected_nodes * static_cast<uint32_t>(ranks_);
  job.level = 4;
  job.period = period_ * kSecond;
  job.start = now - (kSeconds + (running ? 0 : 60)) * kSecond;
  job.end = running ? 0 : job.start + kSeconds * kSecond;
  job.state = running ? EndState::kRunning : EndState::kCompleted;
  job.coverage.expected = job.coverage.got = uint64_t{job.expected_nodes} * kSeconds / period_;
  for (int i = 0; i < nodes; ++i) {
    NodeInfo& node = job.nodes.emplace_back();
    node.host = "node" + std::to_string(10000 + i).substr(1);
    node.node_id = static_cast<uint32_t>(i);
    node.tasks = static_cast<uint32_t>(ranks_);
    node.joined = job.start + (i % 20 == 19 ? kLate : 0) * kSecond;
    for (int second = 0; second < kSeconds; second += period_) {
      if (!IsThere(i, second)) --job.coverage.got;
    }
  }
  const auto at = [&](int second) { return job.start + second * kSecond; };
  const uint64_t ranks = job.expected_tasks;
  profile_.moments.phases.push_back({"read mesh", at(5), at(180), 0, ranks, ranks, {0, 0}});
  profile_.moments.phases.push_back({"time steps", at(180), at(3500), 0, ranks, ranks, {0, 0}});
  for (int t = 600; t < kSeconds; t += 600) {
    profile_.moments.remarks.push_back(
        {"checkpoint " + std::to_string(t / 600), at(t), at(t) + kMillisecond, ranks, {0, 0}});
  }
  profile_.moments.alarms.push_back({"straggler",
                                     "warning",
                                     "it computes far less than the others: 0.21 s/s",
                                     {},
                                     at(1900),
                                     at(2600),
                                     0.21,
                                     {static_cast<uint32_t>(Slow()), Owner::kNobody}});
  for (const Shape& shape : Shapes()) AddFootprint(shape);
}

void MadeStep::Jobs(size_t limit, JobsCallback callback) const {
  callback(limit == 0 ? std::vector<JobDescription>() : std::vector<JobDescription>{profile_.job});
}

void MadeStep::GetProfile(const JobStep& id, ProfileCallback callback) const {
  if (id != profile_.job.id) {
    return callback(Status(Code::kNotFound, "there is no step " + id.ToString()));
  }
  callback(profile_);
}

void MadeStep::Conclude(const JobStep& /*id*/, const std::string& of,
                        ConcludeCallback callback) const {
  callback(ConclusionOf(profile_, of, Slow(), ranks_));
}

void MadeStep::ListSeries(std::string_view /*metric*/, size_t /*limit*/,
                          SeriesCallback callback) const {
  callback(std::vector<Series>());
}

Series MadeStep::SeriesOf(const Shape& shape, size_t value, int node, int rank) const {
  Series series;
  series.metric = Metric(shape.decl);
  series.tags = {{"host", profile_.job.nodes[static_cast<size_t>(node)].host},
                 {"job", profile_.job.id.ToString()}};
  for (const auto& [key, text] : shape.tags.pairs()) series.tags.Set(key, text);
  if (!shape.key.empty()) series.tags.Set(shape.key, shape.values[value]);
  if (shape.of_ranks) series.tags.Set("task", std::to_string(node * ranks_ + rank));
  return series;
}

std::vector<SeriesData> MadeStep::Make(const QuerySpec& spec, const SeriesFilter& filter) const {
  std::vector<SeriesData> all;
  const TimeRange range = DataRange(spec);
  for (const Shape& shape : Shapes()) {
    if (shape.decl.name != spec.metric) continue;
    for (int node = 0; node < nodes_; ++node) {
      for (int rank = 0; rank < (shape.of_ranks ? ranks_ : 1); ++rank) {
        for (size_t value = 0; value < std::max<size_t>(shape.values.size(), 1); ++value) {
          SeriesData data;
          data.series = SeriesOf(shape, value, node, rank);
          if (!filter.Matches(data.series)) continue;
          AddPoints(shape, value, node, range, data);
          all.push_back(std::move(data));
        }
      }
    }
  }
  return all;
}

void MadeStep::Query(const QuerySpec& spec, Callback callback) const {
  const Result<SeriesFilter> filter = SeriesFilter::Make(spec);
  if (!filter.ok()) return callback(filter.status());
  Result<std::vector<QueryResult>> results = sonde::Evaluate(spec, Make(spec, *filter));
  if (!results.ok()) return callback(results.status());
  const auto nodes = static_cast<uint32_t>(nodes_);
  callback(Answer{*std::move(results), nodes, nodes});
}

}  // namespace sonde::web
