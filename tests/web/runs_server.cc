// An archive of made runs of one program behind the server of `sonde serve`, for the tests of the
// comparison of many runs and of models in a browser, and for measuring what they take.
//
//   runs_server DIR [N [TICKS [SERIES]]]    N runs (72) in DIR, which must be empty, of TICKS s
//   (60) with SERIES series (9) each
//
// Run i has 2^(i % 6) nodes and the tag grid, 100 times that. Its time grows by 2 s for each node
// and varies by 2 %; every 23rd run takes twice as long and three times the memory. Of all runs,
// bytes are written every 10 s. One run of another program has ended, and one run of this one runs.
//
// Prints its address with the token and ends when its standard input does.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/time.h"
#include "profiles/live/live_archive.h"
#include "series/block/block.h"
#include "series/store/reduced.h"
#include "tests/web/archive_server.h"

namespace {

using namespace sonde;
using web::Need;

constexpr double kMiB = 1024 * 1024;
constexpr size_t kTaskSeries = 7;

// -1 to 1, without a pattern that is easily seen, the same in each run.
double Noise(uint64_t i, uint64_t k) {
  uint64_t x = i * 0x9e3779b97f4a7c15ULL + k * 0xd1b54a32d192ed03ULL + 1;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return static_cast<double>((x ^ (x >> 31)) >> 11) / 4503599627370496.0 - 1;
}

struct Made {
  Series series;
  double rate = 0;  // of a counter, per second; of a gauge its value
};

std::vector<Made> SeriesOf(uint64_t i, double nodes, double slow, size_t count) {
  const auto make = [&](const char* name, const char* unit, MetricType type, Tags tags, double of) {
    Made made;
    made.series.metric.name = name;
    made.series.metric.unit = unit;
    made.series.metric.type = type;
    made.series.metric.reduction = Reduction::kSum;
    made.series.metric.level = 2;
    made.series.tags = std::move(tags);
    made.rate = of;
    return made;
  };
  using enum MetricType;
  const double vary = 1 + 0.02 * Noise(i, 2);
  std::vector<Made> all = {
      make("task_cpu_seconds_total", "seconds", kCounter, {{"mode", "user"}}, 3.6 * nodes * vary),
      make("task_cpu_seconds_total", "seconds", kCounter, {{"mode", "system"}}, 0.2 * nodes),
      make("task_resident_memory_bytes", "bytes", kGauge, {},
           nodes * 800 * kMiB * (slow > 1 ? 3 : 1) * vary),
      make("task_written_bytes_total", "bytes", kCounter, {}, 40 * kMiB),
      make("node_load1", "1", kGauge, {}, 4 * nodes * (1 + 0.3 * Noise(i, 3))),
      make("app_iterations_total", "1", kCounter, {}, 10 / slow),
      make("app_checkpoint_bytes_total", "bytes", kCounter, {}, 30 * kMiB)};
  while (all.size() < count) {
    const std::string device = "d" + std::to_string(all.size());
    all.push_back(
        make("node_disk_io_now", "1", kGauge, {{"device", device}}, 2 + Noise(i, all.size())));
  }
  return all;
}

double ValueAt(const Made& made, uint64_t i, int tick) {
  const auto t = static_cast<double>(tick);
  if (made.series.metric.unit == "bytes" && IsCounting(made.series.metric.type)) {
    // In three of every ten seconds.
    return made.rate * (std::floor(t / 10) * 10 + std::min(std::fmod(t, 10), 3.0) * 10 / 3);
  }
  if (IsCounting(made.series.metric.type)) return made.rate * t;
  return made.rate * (1 + 0.05 * Noise(i * 1000, static_cast<uint64_t>(tick)));
}

// Rows of the whole step, from tick first + 1 on.
void PutBlock(LiveArchive& live, const char* group, std::span<const Made> all, uint64_t i,
              Nanos start, int first, int ticks) {
  std::vector<Series> series;
  for (const Made& made : all) series.push_back(made.series);
  const auto schema = ReducedSchema(series);
  const auto n = static_cast<size_t>(ticks);
  std::vector<double> columns(schema->size() * n);
  std::vector<Nanos> times;
  for (int t = 1; t <= ticks; ++t) {
    times.push_back(start + (first + t) * kSecond);
    for (size_t s = 0; s < all.size(); ++s) {
      Reduced value;
      value.Add(ValueAt(all[s], i, first + t), {0, Owner::kNobody});
      double row[kStatColumns];
      ToColumns(value, row);
      for (size_t k = 0; k < kStatColumns; ++k) {
        columns[(s * kStatColumns + k) * n + static_cast<size_t>(t - 1)] = row[k];
      }
    }
  }
  std::string bytes;
  BlockEncoder encoder;
  Need(encoder.Encode(schema->id(), times, columns.data(), schema->size(), n, bytes));
  Need(live.PutBlock({kReducedNode, group, static_cast<uint64_t>(first + 1)}, *schema, bytes));
}

void PutRows(LiveArchive& live, const std::vector<Made>& all, uint64_t i, Nanos start, int ticks) {
  constexpr int kRows = 256;
  for (int first = 0; first < ticks; first += kRows) {
    const int rows = std::min(kRows, ticks - first);
    PutBlock(live, "task", std::span(all).first(kTaskSeries), i, start, first, rows);
    PutBlock(live, "node", std::span(all).subspan(kTaskSeries), i, start, first, rows);
  }
}

Profile ProfileOf(uint64_t i, Nanos now, int ticks, std::vector<Made>& all, size_t series) {
  Profile profile;
  JobDescription& job = profile.job;
  const double nodes = std::exp2(static_cast<double>(i % 6));
  const double slow = i % 23 == 11 ? 2 : 1;
  job.cluster = "lab";
  job.id = {std::to_string(7000 + i), "0"};
  job.name = "cavity";
  job.command = "./cavity --grid 512";
  job.user = "ada";
  job.partition = "batch";
  job.level = 2;
  job.period = kSecond;
  job.expected_nodes = static_cast<uint32_t>(nodes);
  job.expected_tasks = job.expected_nodes * 4;
  job.start = now - static_cast<Nanos>(i + 2) * 3600 * kSecond;
  job.tags["grid"] = std::to_string(job.expected_nodes * 100);
  if (i % 2 == 0) job.tags["campaign"] = "winter";
  const double seconds = (ticks + 2 * nodes) * slow * (1 + 0.02 * Noise(i, 1));
  job.end = job.start + static_cast<Nanos>(seconds * static_cast<double>(kSecond));
  job.state = EndState::kCompleted;
  job.coverage = {static_cast<uint64_t>(ticks), static_cast<uint64_t>(ticks), 0};
  for (uint32_t n = 0; n < job.expected_nodes; ++n) {
    NodeInfo node;
    node.host = "n" + std::to_string(n);
    node.tasks = 4;
    node.joined = job.start;
    job.nodes.push_back(node);
  }
  all = SeriesOf(i, nodes, slow, series);
  for (const Made& made : all) {
    FootprintEntry entry;
    entry.series = made.series;
    entry.ticks = static_cast<uint64_t>(ticks);
    const bool counts = IsCounting(made.series.metric.type);
    entry.last = counts ? made.rate * seconds : made.rate;
    entry.mean = entry.min = entry.max = made.rate;
    profile.footprint.push_back(std::move(entry));
  }
  job.figures.push_back({"speed", "iterations/s", 10 / slow * (1 + 0.01 * Noise(i, 4)), 1});
  return profile;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "runs_server DIR [N [TICKS [SERIES]]]: expected an empty directory\n");
    return 2;
  }
  const auto number = [&](int at, uint64_t otherwise) {
    return argc > at ? std::strtoull(argv[at], nullptr, 10) : otherwise;
  };
  const std::string root = argv[1];
  const uint64_t count = number(2, 72);
  const auto ticks = static_cast<int>(number(3, 60));
  const size_t series = number(4, 9);
  const Nanos now = Clock::System().Now() / kSecond * kSecond;  // so ticks are at whole seconds
  std::vector<Made> all;
  for (uint64_t i = 0; i <= count; ++i) {
    Profile profile = ProfileOf(i, now, ticks, all, series);
    if (i == count) profile.job.name = profile.job.command = "other";
    const auto live = Need(LiveArchive::Create(root, profile.job));
    const auto rows = static_cast<int>((profile.job.end - profile.job.start) / kSecond);
    PutRows(*live, all, i, profile.job.start, rows);
    Need(live->PutProfile(profile));
    Need(live->Finish());
  }
  Profile running = ProfileOf(count + 1, now, ticks, all, series);
  running.job.start = now - 60 * kSecond;
  running.job.end = 0;
  running.job.state = EndState::kRunning;
  const auto live = Need(LiveArchive::Create(root, running.job));
  Need(live->PutProfile(running));
  web::ServeArchive(root, [](char) {});
  return 0;
}
