// What reading a finished step's profile costs, by node: CPU time and the most memory at a time, of
// steps of 1,000, 10,000 and 32,000 nodes. Reading that scales takes the same for each node, and
// for what nobody has asked for next to nothing.
//
//   one_host    the points of one metric of one host
//   again       the same from a process that has asked before
//   all_hosts   the points of one metric of all hosts
//   counted     the second half of these, with what the counters had come to before
//   names       the names of all metrics, tags and hosts, as suggestions need them
//   lookup      one series of one metric
//   rows        every row of every node, as exports need them
//   table       one metric of all hosts as CSV, of up to 50,000 nodes
//
// The profile is what the head's own code leaves of a large step: 344 series in two groups, thinned
// to four rows a node. joined: blocks of nodes that came in any order, 16 in a record; apart: each
// node's by themselves. Each question is asked three times by new processes, and the least counts.
// usage: bench_reading [QUESTION...] [NODES...]
#include <fmt/core.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <future>
#include <limits>
#include <memory>
#include <numeric>
#include <random>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "bench/growth.h"
#include "core/log.h"
#include "forward/formats/table.h"
#include "profiles/archive/asked_series.h"
#include "profiles/archive/open_archive.h"
#include "profiles/live/live_archive.h"
#include "profiles/records/keys.h"
#include "series/block/joined.h"
#include "series/store/task_ranks.h"
#include "serve/archive_source.h"
#include "tests/unit/temp_dir.h"

namespace sonde {
namespace {

constexpr Nanos kStart = 1'790'000'000 * kSecond;
constexpr size_t kRows = 4;
constexpr Nanos kBetweenRows = 100 * kSecond;
constexpr Nanos kMiddle = kStart + 250 * kSecond;
constexpr size_t kNodesSeries = 300;
constexpr size_t kTasksSeries = 44;
constexpr size_t kOfMetric = 5;   // series
constexpr size_t kInRecord = 16;  // blocks
constexpr size_t kAtOnce = 256;   // blocks that are written
constexpr uint32_t kTasks = 8;    // of a node
constexpr size_t kRuns = 3;
constexpr int kTimes = 20;
constexpr uint32_t kMostInTable = 50'000;
constexpr std::string_view kMetric = "node_bench_10_total";
constexpr std::string_view kHost = "n000005";

void Die(const Status& status) {
  if (status.ok()) return;
  fmt::print(stderr, "bench_reading: {}\n", status.message());
  std::exit(1);
}
void Check(bool right, std::string_view what) {
  if (!right) Die({Code::kCorrupt, fmt::format("{} is not what was stored", what)});
}

Schema::Ptr SchemaOf(std::string_view kind, size_t count) {
  std::vector<Series> all(count);
  for (size_t i = 0; i < count; ++i) {
    Metric& metric = all[i].metric;
    metric.name = fmt::format("{}_bench_{}_total", kind, i / kOfMetric);
    metric.help = fmt::format("What number {} of the things of a {} has come to.", i, kind);
    metric.unit = "seconds";
    metric.type = MetricType::kCounter;
    all[i].tags.Set("part", fmt::format("part{}", i % kOfMetric));
    if (kind == "task") all[i].tags.Set(kTaskTag, "0");
  }
  return Schema::Make(std::move(all));
}

JobDescription DescribeStep(uint32_t nodes) {
  JobDescription job;
  job.cluster = "bench";
  job.id = {"7", "0"};
  job.start = kStart;
  job.expected_nodes = job.job_nodes = nodes;
  job.expected_tasks = nodes * kTasks;
  job.level = 2;
  for (uint32_t i = 0; i < nodes; ++i) {
    NodeInfo node;
    node.host = fmt::format("n{:06}", i);
    node.job = job.id.job;
    node.node_id = i;
    node.tasks = kTasks;
    node.joined = kStart;
    job.nodes.push_back(std::move(node));
  }
  return job;
}

// Stores the step's blocks, of one group after the other.
class Maker {
 public:
  Maker(const std::string& root, uint32_t nodes, bool joined)
      : root_(root), joined_(joined), job_(DescribeStep(nodes)) {
    auto live = LiveArchive::Create(root, job_);
    Die(live.status());
    live_ = *std::move(live);
  }
  void Make() {
    std::vector<uint32_t> nodes(job_.nodes.size());
    std::iota(nodes.begin(), nodes.end(), 0u);
    std::shuffle(nodes.begin(), nodes.end(), std::mt19937(job_.expected_nodes));
    for (const auto& [kind, count] :
         {std::pair("node", kNodesSeries), std::pair("task", kTasksSeries)}) {
      schema_ = SchemaOf(kind, count);
      // Joined blocks need their schema, which comes with a block of its own.
      for (size_t i = 0; i < nodes.size(); ++i) Add(nodes[i], kind, joined_ && i > 0);
      Join();
      Store();
    }
    job_.end = kStart + static_cast<Nanos>(kRows + 1) * kBetweenRows;
    job_.state = EndState::kCompleted;
    for (NodeInfo& node : job_.nodes) node.left = job_.end;
    Profile profile;
    profile.job = job_;
    Die(live_->PutProfile(profile));
    Die(live_->Finish());
    live_.reset();
    Die(OpenArchive(root_).status());
  }

 private:
  struct Waiting {
    BlockKey key;
    std::string bytes;
    bool joined = false;
  };
  void Add(uint32_t node, std::string_view kind, bool join) {
    const bool of_tasks = kind == "task";
    std::vector<Nanos> times;
    std::vector<double> values;
    for (size_t row = 1; row <= kRows; ++row) {
      times.push_back(kStart + static_cast<Nanos>(row) * kBetweenRows);
    }
    for (size_t i = 0; i < schema_->size(); ++i) {
      for (size_t row = 1; row <= kRows; ++row) {
        values.push_back(static_cast<double>(row * (i + node % 251)));
      }
    }
    Waiting block;
    block.key = {node, of_tasks ? GroupFrom(node * kTasks, "task") : "os", 1};
    Die(encoder_.Encode(schema_->id(), times, values.data(), schema_->size(), kRows, block.bytes));
    std::vector<Waiting>& all = join ? to_join_ : to_store_;
    all.push_back(std::move(block));
    if (to_join_.size() == kInRecord) Join();
    if (to_store_.size() == kAtOnce) Store();
  }
  void Join() {
    if (to_join_.empty()) return;
    std::vector<JoinedEntry> entries;
    std::vector<std::string_view> blocks;
    for (const Waiting& block : to_join_) {
      JoinedEntry& entry = entries.emplace_back();
      entry.node = block.key.node;
      entry.group = block.key.group;
      entry.sequence = entry.first = block.key.sequence;
      blocks.push_back(block.bytes);
    }
    auto bytes = JoinBlocks(std::move(entries), blocks, encoder_);
    Die(bytes.status());
    to_join_.clear();
    to_store_.push_back({{}, *std::move(bytes), true});
  }
  void Store() {
    std::vector<LiveArchive::BlockWrite> writes;
    for (const Waiting& block : to_store_) {
      LiveArchive::BlockWrite& write = writes.emplace_back();
      write.key = block.key;
      write.first = block.key.sequence;
      write.schema_id = schema_->id();
      write.schema = schema_.get();
      write.block = block.bytes;
      write.joined = block.joined;
    }
    live_->ReplaceBlocks(writes);
    for (const auto& write : writes) Die(write.status);
    to_store_.clear();
  }

  const std::string root_;
  const bool joined_;
  JobDescription job_;
  std::unique_ptr<LiveArchive> live_;
  Schema::Ptr schema_;
  BlockEncoder encoder_;
  std::vector<Waiting> to_join_, to_store_;
};

// What a process has now, or had at most, in bytes: "VmRSS:", "VmHWM:".
double StatusBytes(std::string_view key) {
  std::ifstream file("/proc/self/status");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with(key)) return std::strtod(line.c_str() + key.size(), nullptr) * 1024;
  }
  return std::nan("");
}

double ProcessCpuMicroseconds() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) * 1e6 + static_cast<double>(time.tv_nsec) / 1e3;
}

struct Cost {
  double microseconds = std::numeric_limits<double>::infinity();
  double bytes = std::numeric_limits<double>::infinity();
};

// Runs `work` in a process of its own, so that each finds the same memory.
Cost InChild(const std::function<void()>& work) {
  int ends[2];
  if (::pipe(ends) != 0) Die({Code::kIo, "make a pipe"});
  const pid_t child = ::fork();
  if (child == 0) {
    const double cpu = ProcessCpuMicroseconds();
    const double memory = StatusBytes("VmRSS:");
    work();
    const Cost cost{ProcessCpuMicroseconds() - cpu, StatusBytes("VmHWM:") - memory};
    const bool told = ::write(ends[1], &cost, sizeof cost) == sizeof cost;
    std::_Exit(told ? 0 : 1);
  }
  Cost cost;
  ::close(ends[1]);
  const bool told = ::read(ends[0], &cost, sizeof cost) == sizeof cost;
  ::close(ends[0]);
  int status = 0;
  ::waitpid(child, &status, 0);
  if (!told || status != 0) Die({Code::kInternal, "a part of the benchmark failed"});
  return cost;
}

std::shared_ptr<const Archive> OpenAt(const std::string& root) {
  auto archive = Archive::Open(root);
  Die(archive.status());
  return *std::move(archive);
}

std::vector<SeriesData> ReadMetric(const Archive& archive, std::string_view host, Nanos from,
                                   Earlier earlier) {
  QuerySpec spec;
  spec.metric = kMetric;
  spec.aggregator = Aggregator::kNone;
  auto read = ReadAsked(
      archive, keys::ProfileKey(DescribeStep(0)), SeriesScope::kNodes, spec,
      [&](const Tags& tags) {
        const std::string* of = tags.Find("host");
        return of != nullptr && (host.empty() || *of == host);
      },
      {from, std::numeric_limits<Nanos>::max()}, earlier);
  Die(read.status());
  return *std::move(read);
}

void CheckPoints(const std::vector<SeriesData>& data, size_t hosts, size_t points) {
  Check(data.size() == hosts * kOfMetric, "the number of series");
  for (const SeriesData& one : data) Check(one.points.size() == points, "the number of points");
}

std::unique_ptr<serve::ArchiveSource> SourceOf(const std::string& root) {
  return std::make_unique<serve::ArchiveSource>(OpenAt(root));
}

void AskNames(const std::string& root, uint32_t nodes) {
  std::promise<Result<web::SeriesNames>> promise;
  const auto source = SourceOf(root);
  source->Names([&](Result<web::SeriesNames> names) { promise.set_value(std::move(names)); });
  const auto names = promise.get_future().get();
  Die(names.status());
  Check(names->metrics.size() == kNodesSeries / kOfMetric + (kTasksSeries + 4) / kOfMetric,
        "the names of metrics");
  Check(names->values.size() >= nodes, "the names of hosts");
}

void LookUp(const std::string& root) {
  std::promise<Result<std::vector<Series>>> promise;
  const auto source = SourceOf(root);
  source->ListSeries(kMetric, 1, [&](Result<std::vector<Series>> series) {
    promise.set_value(std::move(series));
  });
  const auto series = promise.get_future().get();
  Die(series.status());
  Check(series->size() == 1 && series->front().metric.name == kMetric, "a series");
}

void ReadAllRows(const std::string& root, uint32_t nodes) {
  const auto archive = OpenAt(root);
  uint64_t rows = 0;
  double sum = 0;
  Die(archive->ReadRows(keys::ProfileKey(DescribeStep(0)), SeriesScope::kNodes, {},
                        [&](const StoredRow& row) {
                          ++rows;
                          sum += row.block.Column(0)[row.row];
                          return Status();
                        }));
  Check(rows == uint64_t{2} * kRows * nodes && sum >= 0, "the number of rows");
}

void WriteCsv(const std::string& root, uint32_t nodes) {
  const auto archive = OpenAt(root);
  const auto to = forward::ParseDestination(fmt::format("x.csv scope=node metrics={}", kMetric));
  Die(to.status());
  size_t lines = 0;
  const auto sink = forward::MakeCsv([&](std::string_view text) {
    lines += static_cast<size_t>(std::ranges::count(text, '\n'));
    return Status();
  });
  const auto entry = archive->Entry(keys::ProfileKey(DescribeStep(0)));
  Die(entry.status());
  const auto written = forward::WriteTable(*archive, *entry, *to, *sink);
  Die(written.status());
  Check(lines == 1 + kRows && written->samples == uint64_t{kRows} * kOfMetric * nodes, "a table");
}

using Question = std::function<void(const std::string& root, uint32_t nodes)>;
const std::vector<std::pair<std::string_view, Question>>& Questions() {
  static const std::vector<std::pair<std::string_view, Question>> all = {
      {"one_host",
       [](const std::string& root, uint32_t /*nodes*/) {
         CheckPoints(ReadMetric(*OpenAt(root), kHost, 0, Earlier::kNone), 1, kRows);
       }},
      {"again",
       [](const std::string& root, uint32_t /*nodes*/) {
         const auto archive = OpenAt(root);
         for (int i = 0; i < kTimes; ++i) ReadMetric(*archive, kHost, 0, Earlier::kNone);
       }},
      {"all_hosts",
       [](const std::string& root, uint32_t nodes) {
         CheckPoints(ReadMetric(*OpenAt(root), "", 0, Earlier::kNone), nodes, kRows);
       }},
      {"counted",
       [](const std::string& root, uint32_t nodes) {
         CheckPoints(ReadMetric(*OpenAt(root), "", kMiddle, Earlier::kCounted), nodes,
                     kRows / 2 + 1);
       }},
      {"names", AskNames},
      {"lookup", [](const std::string& root, uint32_t /*nodes*/) { LookUp(root); }},
      {"rows", ReadAllRows},
      {"table", WriteCsv}};
  return all;
}

void Run(uint32_t nodes, bool joined, const std::set<std::string_view>& asked) {
  const TempDir directory;
  const std::string root = directory.path() + "/archive";
  InChild([&] { Maker(root, nodes, joined).Make(); });
  for (const auto& [name, ask] : Questions()) {
    if (!asked.empty() && !asked.contains(name)) continue;
    if (name == "table" && nodes > kMostInTable) continue;
    Cost least;
    for (size_t run = 0; run < kRuns; ++run) {
      const Cost cost = InChild([&, &ask = ask] { ask(root, nodes); });
      least.microseconds = std::min(least.microseconds, cost.microseconds);
      least.bytes = std::min(least.bytes, cost.bytes);
    }
    if (name == "again") least.microseconds /= kTimes;
    const std::string what = fmt::format("{}_{}", name, joined ? "joined" : "apart");
    fmt::print("figure {}_{} {:.3f} us\n", what, nodes, least.microseconds / nodes);
    fmt::print("figure {}_memory_{} {:.3f} kB\n", what, nodes, least.bytes / nodes / 1000);
    std::fflush(stdout);
  }
}

}  // namespace
}  // namespace sonde

int main(int argc, char** argv) {
  std::set<std::string_view> asked;
  std::vector<char*> rest = {argv[0]};
  for (int i = 1; i < argc; ++i) {
    const auto is_named = [&](const auto& question) { return question.first == argv[i]; };
    if (std::ranges::any_of(sonde::Questions(), is_named)) {
      asked.insert(argv[i]);
    } else {
      rest.push_back(argv[i]);
    }
  }
  for (const uint32_t nodes : sonde::growth::Sizes(static_cast<int>(rest.size()), rest.data(), 100,
                                                   {1'000, 10'000, 32'000})) {
    for (const bool joined : {true, false}) sonde::Run(nodes, joined, asked);
  }
}
