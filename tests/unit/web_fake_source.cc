#include "tests/unit/web_fake_source.h"

#include <algorithm>
#include <cmath>
#include <mutex>
#include <thread>
#include <utility>

#include "core/histogram_buckets.h"

namespace sonde::web {
namespace {

constexpr int kTasksPerNode = 2;

struct Shape {
  MetricDecl decl;
  std::string_view key;  // "" : no tag of its own
  std::vector<std::string> values;
  bool per_task = false;
};

std::vector<Shape> Shapes() {
  using enum MetricType;
  using Reduction::kMax, Reduction::kMean, Reduction::kMin, Reduction::kSum;
  const std::vector<std::string> modes = {"idle", "iowait", "system", "user"};
  const std::vector<std::string> devices = {"eth0", "ib0"};
  return {
      {{"node_cpu_seconds_total", "seconds", kCounter, 2, kSum, "CPU time by mode."},
       "mode",
       modes},
      {{"node_memory_MemTotal_bytes", "bytes", kGauge, 2, kSum, "Memory of the node."}, "", {}},
      {{"node_memory_MemAvailable_bytes", "bytes", kGauge, 2, kMin, "Memory left for programs."},
       "",
       {}},
      {{"node_load1", "1", kGauge, 2, kMean, "Load average over one minute."}, "", {}},
      {{"node_pressure_cpu_waiting_seconds_total", "seconds", kCounter, 2, kSum,
        "Time in which some task waited for a CPU."},
       "",
       {}},
      {{"node_network_receive_bytes_total", "bytes", kCounter, 2, kSum, "Bytes received."},
       "device",
       devices},
      {{"node_network_transmit_bytes_total", "bytes", kCounter, 2, kSum, "Bytes sent."},
       "device",
       devices},
      {{"node_disk_read_bytes_total", "bytes", kCounter, 2, kSum, "Bytes read from disks."},
       "device",
       {"nvme0n1"}},
      {{"node_disk_written_bytes_total", "bytes", kCounter, 2, kSum, "Bytes written to disks."},
       "device",
       {"nvme0n1"}},
      {{"task_cpu_seconds_total", "seconds", kCounter, 2, kSum, "CPU time of the tasks."},
       "mode",
       {"system", "user"},
       true},
      {{"task_resident_memory_bytes", "bytes", kGauge, 2, kSum, "Resident memory of the tasks.",
        /*spread=*/true},
       "",
       {},
       true},
      {{"task_threads", "1", kGauge, 2, kSum, "Threads of the tasks."}, "", {}, true},
      {{"solver_iterations_total", "1", kCounter, 1, kSum, "Iterations of the solver."}, "", {}},
      {{"solver.residual", "1", kGauge, 1, kMax, "Residual \\ norm,\nrelative."}, "", {}},
  };
}

// A curve between 0 and 1 that differs from node to node.
double Wave(double t, int node, double period) {
  return 0.5 + 0.5 * std::sin(2 * M_PI * (t / period + 0.07 * node));
}

double Value(const Shape& shape, size_t value, int node, int task, double t) {
  constexpr double kGib = 1024.0 * 1024 * 1024;
  const std::string_view name = shape.decl.name;
  const double slow = node == 2 ? 0.8 : 1.0;  // n3 is the slow one
  if (name == "node_cpu_seconds_total") {
    const double rates[] = {4 - 3.4 * slow, 0.2, 0.4, 2.8 * slow};
    return rates[value] * t + (value == 3 ? 3 * std::sin(t / 40 + node) : 0) + 5;
  }
  if (name == "node_memory_MemTotal_bytes") return 64 * kGib;
  if (name == "node_memory_MemAvailable_bytes") {
    return (40 - 20 * Wave(t, node, 900) - 0.5 * node) * kGib;
  }
  if (name == "node_load1") return 4 * slow * (1 - std::exp(-t / 60)) + 0.3 * Wave(t, node, 50);
  if (name.starts_with("node_network")) {
    return (value == 1 ? 250e6 : 20e3) * (t + 8 * Wave(t, node, 60));
  }
  if (name.starts_with("node_disk")) return 5e6 * std::floor(t / 60) * (1 + node);
  if (name.starts_with("node_pressure")) return 0.02 * t * (1 + node);
  if (name == "task_cpu_seconds_total") return (value == 1 ? 1.4 * slow : 0.2) * t;
  if (name == "task_resident_memory_bytes") return (6 + 4 * Wave(t, node + task, 900)) * kGib;
  if (name == "task_threads") return 2;
  if (name == "solver_iterations_total") return std::floor(12 * t);
  return std::exp(-t / 100) * (1 + 0.1 * node);
}

}  // namespace

struct FakeSource::Step {
  Profile profile;
  std::vector<SeriesData> series;

  void Fill(const Shape& shape);
  void AddSeries(const Shape& shape, size_t value, int node, int task);
  void AddFootprint(const Shape& shape, size_t value);
};

void FakeSource::Step::AddSeries(const Shape& shape, size_t value, int node, int task) {
  const JobDescription& job = profile.job;
  SeriesData data;
  data.series.metric = Metric(shape.decl);
  data.series.tags = {{"host", job.nodes[node].host}, {"job", job.id.ToString()}};
  if (!shape.key.empty()) data.series.tags.Set(shape.key, shape.values[value]);
  if (shape.per_task) data.series.tags.Set("task", std::to_string(node * kTasksPerNode + task));
  const int64_t seconds = static_cast<int64_t>(job.coverage.expected / job.nodes.size());
  for (int64_t t = 0; t < seconds; ++t) {
    if (node == 2 && t >= 200 && t < 240) continue;
    data.points.push_back(
        {job.start + t * kSecond, Value(shape, value, node, task, static_cast<double>(t))});
  }
  series.push_back(std::move(data));
}

void FakeSource::Step::AddFootprint(const Shape& shape, size_t value) {
  FootprintEntry entry;
  entry.series.metric = Metric(shape.decl);
  if (!shape.key.empty()) entry.series.tags.Set(shape.key, shape.values[value]);
  Reduced last;
  QuantileSketch spread;
  for (const SeriesData& data : series) {
    const std::string* tag = data.series.tags.Find(shape.key);
    if (data.series.metric.name != shape.decl.name) continue;
    if (tag != nullptr && *tag != shape.values[value]) continue;
    uint32_t node = 0;
    while (profile.job.nodes[node].host != *data.series.tags.Find("host")) ++node;
    last.Add(data.points.back().value, {node, Owner::kNobody});
    spread.Add(data.points.back().value);
    entry.ticks = data.points.size();
  }
  if (shape.decl.spread) entry.spread = {SpreadOf(spread), SpreadOf(spread)};
  entry.last = last.Value(shape.decl.reduction);
  const double duration = static_cast<double>(entry.ticks);
  entry.mean = shape.decl.type == MetricType::kCounter ? entry.last / duration : entry.last;
  entry.min = last.min;
  entry.max = last.max;
  entry.min_owner = last.min_owner;
  entry.max_owner = last.max_owner;
  profile.footprint.push_back(std::move(entry));
}

void FakeSource::Step::Fill(const Shape& shape) {
  const size_t values = shape.values.empty() ? 1 : shape.values.size();
  for (size_t value = 0; value < values; ++value) {
    for (int node = 0; node < static_cast<int>(profile.job.nodes.size()); ++node) {
      const int tasks = shape.per_task ? kTasksPerNode : 1;
      for (int task = 0; task < tasks; ++task) AddSeries(shape, value, node, task);
    }
    AddFootprint(shape, value);
  }
}

struct FakeSource::Held {
  std::mutex mutex;
  std::vector<std::pair<QuerySpec, Callback>> queries;
  std::vector<std::thread> threads;
};

namespace {

JobDescription Describe(std::string_view job, int nodes, Nanos start, int64_t seconds) {
  JobDescription d;
  d.cluster = "balloon";
  d.id = {std::string(job), "0"};
  d.name = "lid-cavity";
  d.user = "ada";
  d.account = "fluids";
  d.partition = "main";
  d.command = "./cavity --grid 512";
  d.workdir = "/home/ada/runs";
  d.launch_host = "login1";
  d.expected_nodes = d.job_nodes = static_cast<uint32_t>(nodes);
  d.expected_tasks = d.expected_nodes * kTasksPerNode;
  d.level = 2;
  d.start = start;
  d.coverage = {static_cast<uint64_t>(seconds * nodes), static_cast<uint64_t>(seconds * nodes)};
  d.presence = {{d.start, d.expected_nodes, d.expected_nodes, 0, 0}};
  for (int i = 0; i < nodes; ++i) {
    NodeInfo node;
    node.host = "n" + std::to_string(i + 1);
    node.node_id = static_cast<uint32_t>(i);
    node.tasks = kTasksPerNode;
    node.joined = start;
    d.nodes.push_back(std::move(node));
  }
  return d;
}

Phase PhaseOf(const JobDescription& job, const std::string& name, double begin, double end) {
  const auto at = [&](double t) { return job.start + static_cast<Nanos>(t * kSecond); };
  const uint64_t tasks = job.expected_tasks;
  return {name, at(begin), end == 0 ? 0 : at(end), 0, tasks, end == 0 ? 0 : tasks, {1, 3}};
}

Remark RemarkOf(const JobDescription& job, const std::string& text, double time, uint64_t count) {
  const Nanos at = job.start + static_cast<Nanos>(time * kSecond);
  return {text, at, at + 2 * kMillisecond, count, {0, 1}};
}

NamedSketch WaitTimes() {
  NamedSketch wait;
  wait.series.metric = Metric({"halo_wait_seconds", "seconds", MetricType::kHistogram, 1,
                               Reduction::kSum, "Time waited for halos."});
  for (int i = 0; i < 20'000; ++i) {
    // Two humps, and a few that are slow.
    const double x = std::fmod(i * 0.618034, 1.0);
    const double value =
        (i % 4 == 0 ? 4e-3 : 5e-4) * std::exp(2.5 * (x - 0.5) * (x - 0.5) * (x - 0.5) * 8);
    wait.sketch.Add(histogram::BucketOf(value), 1);
    wait.sketch.AddSum(value, value, value);
  }
  wait.sketch.Add(histogram::kUnderflow, 40);
  wait.sketch.AddSum(0, 0, 0);
  return wait;
}

// Phases that repeat and lie in each other, remarks, figures of merit, a histogram.
void AddMoments(Profile& profile, double seconds) {
  const JobDescription& job = profile.job;
  StepMoments& moments = profile.moments;
  moments.phases.push_back(PhaseOf(job, "setup", 2, 24));
  moments.phases.push_back(PhaseOf(job, "time loop", 24, job.end == 0 ? 0 : seconds - 30));
  for (double t = 60; t + 45 < seconds - 30; t += 120) {
    moments.phases.push_back(PhaseOf(job, "implicit solve", t, t + 45));
  }
  if (job.end != 0) moments.phases.push_back(PhaseOf(job, "output", seconds - 30, seconds - 4));
  std::stable_sort(moments.phases.begin(), moments.phases.end(),
                   [](const Phase& a, const Phase& b) { return a.begin < b.begin; });
  moments.remarks.push_back(RemarkOf(job, "mesh read: 512 x 512", 11, 1));
  moments.remarks.push_back(RemarkOf(job, "checkpoint 1", 150, job.expected_tasks));
  if (job.end != 0) moments.remarks.push_back(RemarkOf(job, "checkpoint 2", 300, 8));
  moments.distributions.push_back(WaitTimes());
  const auto at = [&](double t) { return job.start + static_cast<Nanos>(t * kSecond); };
  moments.alarms.push_back({"memory_soon",
                            "critical",
                            "memory runs out in 42 s if this goes on: 12 % of the node's is left",
                            {},
                            at(40),
                            at(52),
                            0.12,
                            {2, Owner::kNobody}});
  moments.alarms.push_back({"straggler",
                            "info",
                            "it computes far less than the others: 0.31 s/s",
                            {{"mode", "user"}},
                            at(90),
                            0,
                            0.31,
                            {1, 3}});
}

// As an application might that says whatever comes to its mind.
void Crowd(Profile& profile, double seconds) {
  StepMoments& moments = profile.moments;
  moments.phases.clear();
  moments.remarks.clear();
  for (int i = 0; i < 30; ++i) {
    const double begin = seconds * (i * 0.618034 - std::floor(i * 0.618034)) * 0.9;
    for (int k = 0; k < 1 + i % 4; ++k) {
      const double at = std::min(begin + 20 * k, seconds - 2);
      moments.phases.push_back(PhaseOf(
          profile.job,
          "phase number " + std::to_string(i + 1) + (i % 7 == 0 ? " with quite a long name" : ""),
          at, std::min(at + 3 + i % 17, seconds - 1)));
    }
  }
  std::stable_sort(moments.phases.begin(), moments.phases.end(),
                   [](const Phase& a, const Phase& b) { return a.begin < b.begin; });
  for (int i = 0; i < 200; ++i) {
    moments.remarks.push_back(RemarkOf(
        profile.job, "residual check " + std::to_string(i + 1) + ": still not below the tolerance",
        seconds * (i + 0.5) / 200, 8));
  }
}

}  // namespace

FakeSource::FakeSource(Nanos now, bool crowded) : held_(std::make_unique<Held>()) {
  now -= now % kSecond;
  auto running = std::make_unique<Step>();
  running->profile.job = Describe("4712", 2, now - 300 * kSecond, 300);
  // A node came late; its points are there, as those of counters are.
  std::vector<PresenceRun>& presence = running->profile.job.presence;
  const Nanos begin = presence[0].first;
  presence = {{begin, 1, 1, 0, 0}, {begin + 20 * kSecond, 2, 1, 0, 0}};
  auto finished = std::make_unique<Step>();
  JobDescription& job = finished->profile.job;
  job = Describe("4711", 4, now - 1000 * kSecond, 600);
  job.end = job.start + 600 * kSecond;
  job.state = EndState::kCompleted;
  job.coverage.got -= 40;
  job.notes.push_back("n3: no samples for 40 s: link lost");
  job.nodes[2].note = "link lost for 40 s";
  const auto second = [&](int n) { return job.start + n * kSecond; };
  job.presence.push_back({second(200), 3, 0, 1, 0});
  job.presence.push_back({second(240), 4, 1, 0, second(199)});
  finished->profile.cost = {1.9, 9.5e6, 2.1e6, 310e3};
  job.figures = {{"cell_updates", "Mcells/s", 245.0517, 8, job.end, 0, 0},
                 {"residual", "1", 1.28698e-4, 8, job.end, 0, 0}};
  AddMoments(running->profile, 300);
  AddMoments(finished->profile, 600);
  if (crowded) {
    Crowd(finished->profile, 600);
    damage_.push_back("the summary of lab.4713.0.1 (its checksum is wrong)");
  }
  for (const Shape& shape : Shapes()) {
    running->Fill(shape);
    finished->Fill(shape);
  }
  steps_.push_back(std::move(running));
  steps_.push_back(std::move(finished));
}

FakeSource::~FakeSource() {
  for (std::thread& thread : held_->threads) thread.join();
}

void FakeSource::Jobs(size_t limit, JobsCallback callback) const {
  std::vector<JobDescription> jobs;
  for (const auto& step : steps_) {
    if (jobs.size() < limit) jobs.push_back(step->profile.job);
  }
  callback(std::move(jobs));
}

void FakeSource::Notes(Nanos first, Nanos last, NotesCallback callback) const {
  std::vector<Note> notes;
  for (const auto& step : steps_) {
    for (Note& note : NotesOf(step->profile.job, step->profile.moments, first, last)) {
      notes.push_back(std::move(note));
    }
  }
  callback(std::move(notes));
}

void FakeSource::GetProfile(const JobStep& id, ProfileCallback callback) const {
  callback(ProfileOf(id));
}

Result<Profile> FakeSource::ProfileOf(const JobStep& id) const {
  for (const auto& step : steps_) {
    if (step->profile.job.id != id) continue;
    Profile profile = step->profile;
    const std::lock_guard lock(tags_mutex_);
    if (profile.job.end != 0) profile.job.tags = tags_;
    return profile;
  }
  return Status(Code::kNotFound, "there is no step " + id.ToString());
}

void FakeSource::ListSeries(std::string_view metric, size_t limit, SeriesCallback callback) const {
  std::vector<Series> list;
  for (const auto& step : steps_) {
    for (const SeriesData& data : step->series) {
      if (!metric.empty() && data.series.metric.name != metric) continue;
      Series one = data.series;
      if (step->profile.job.end == 0) {
        // A head knows what is reduced over tasks, whose series lie side by side here.
        one.tags.Erase("task");
        if (!list.empty() && list.back().tags == one.tags) continue;
      }
      if (list.size() < limit) list.push_back(std::move(one));
    }
  }
  callback(std::move(list));
}

Result<Answer> FakeSource::Evaluate(const QuerySpec& spec) const {
  if (mode_ == Mode::kFail) return Status(Code::kUnavailable, "node n2 does not answer");
  std::vector<SeriesData> series;
  for (const auto& step : steps_) {
    for (const SeriesData& data : step->series) {
      if (data.series.metric.name == spec.metric) series.push_back(data);
    }
  }
  Result<std::vector<QueryResult>> results = sonde::Evaluate(spec, series);
  if (!results.ok()) return results.status();
  return Answer{*std::move(results), 4, 4};
}

void FakeSource::Query(const QuerySpec& spec, Callback callback) const {
  const std::lock_guard lock(held_->mutex);
  if (mode_ == Mode::kNever) {
    held_->queries.emplace_back(spec, std::move(callback));
    return;
  }
  held_->threads.emplace_back(
      [this, spec, callback = std::move(callback)] { callback(Evaluate(spec)); });
}

void FakeSource::QueryForPart(const QuerySpec& spec, const QueryGrid& grid,
                              PartCallback callback) const {
  const Result<SeriesFilter> filter = SeriesFilter::Make(spec);
  if (!filter.ok()) return callback(filter.status());
  std::vector<SeriesData> series;
  const TimeRange range = DataRange(spec);
  for (const SeriesData& data : steps_.front()->series) {
    if (!filter->Matches(data.series)) continue;
    series.push_back({data.series, {}});
    for (const Point& p : data.points) {
      if (p.time >= range.first && p.time <= range.last) series.back().points.push_back(p);
    }
  }
  Result<QueryPart> part = EvaluatePart(spec, std::move(series), &grid);
  if (!part.ok()) return callback(part.status());
  const auto nodes = static_cast<uint32_t>(steps_.front()->profile.job.nodes.size());
  callback(PartAnswer{*std::move(part), nodes, nodes});
}

void FakeSource::Release() {
  std::vector<std::pair<QuerySpec, Callback>> queries;
  {
    const std::lock_guard lock(held_->mutex);
    queries.swap(held_->queries);
  }
  for (auto& [spec, callback] : queries) callback(Evaluate(spec));
}

size_t FakeSource::held() const {
  const std::lock_guard lock(held_->mutex);
  return held_->queries.size();
}

void FakeSource::Tick() {
  ++live_rows_;
  ticks_.Tell();
}

void FakeSource::EndLive() {
  live_ended_ = true;
  ticks_.Tell();
}

void FakeSource::ReadLive(const JobStep& id, const IsWanted& wanted, Nanos after, size_t limit,
                          RowsCallback callback) const {
  if (id.ToString() == steps_.front()->profile.job.id.ToString()) {
    return callback(RowsAfter(wanted, after, limit));
  }
  const Result<Profile> profile = ProfileOf(id);
  callback(profile.ok() ? Result<LiveRows>(LiveRows()) : profile.status());
}

// The rows of its first series' ticks, over hosts and tasks.
LiveRows FakeSource::RowsAfter(const IsWanted& wanted, Nanos after, size_t limit) const {
  const Step& step = *steps_.front();
  LiveRows live;
  live.running = !live_ended_;
  if (!live.running) return live;
  const Nanos start = step.profile.job.start;
  live.oldest = limit == 0 ? start : 0;
  live.newest = start + static_cast<Nanos>(live_rows_ - 1) * kSecond;
  for (const FootprintEntry& entry : step.profile.footprint) {
    if (wanted(entry.series.metric)) live.series.push_back(entry.series);
  }
  if (limit == 0 || after >= live.newest) return live;
  std::vector<std::pair<const SeriesData*, size_t>> parts;
  for (const SeriesData& data : step.series) {
    Tags own = data.series.tags;
    for (const char* key : {"host", "job", "task"}) own.Erase(key);
    for (size_t i = 0; i < live.series.size(); ++i) {
      const Series& one = live.series[i];
      if (data.series.metric.name == one.metric.name && own == one.tags)
        parts.emplace_back(&data, i);
    }
  }
  const size_t first = after < start ? 0 : static_cast<size_t>((after - start) / kSecond + 1);
  for (size_t at = first; at < live_rows_ && live.rows.size() < limit; ++at) {
    LiveRows::Row row{start + static_cast<Nanos>(at) * kSecond,
                      std::vector<Reduced>(live.series.size())};
    for (const auto& [data, i] : parts) {
      row.values[i].Add(data->points[at % data->points.size()].value, {});
    }
    live.rows.push_back(std::move(row));
  }
  return live;
}

}  // namespace sonde::web
