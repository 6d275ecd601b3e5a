// Writes a finished step of two nodes into an archive, for the tests of forwarding:
//
//   make_archive DIRECTORY JOB START ROWS
//
// START in seconds since 1970, a row a second from START + 1 on, in blocks of 50. At tick t node n
// has task_cpu_seconds_total = t * (n + 1), task_resident_memory_bytes = 1000 * (n + 1) and, by its
// mean, app_heat = t / 8 + n, which is missing at every seventh tick.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "profiles/archive/archive.h"
#include "profiles/live/live_archive.h"
#include "series/block/block.h"
#include "series/store/reduced.h"

namespace sonde {
namespace {

constexpr int kBlockRows = 50;
constexpr uint32_t kNodes = 2;

Series Make(const char* name, const char* unit, MetricType type, Reduction reduction, Tags tags) {
  Series series;
  series.metric.name = name;
  series.metric.unit = unit;
  series.metric.help = std::string("What is \"measured\" as ") + name;
  series.metric.type = type;
  series.metric.reduction = reduction;
  series.tags = std::move(tags);
  return series;
}

std::vector<Series> TestSeries() {
  return {Make("task_cpu_seconds_total", "seconds", MetricType::kCounter, Reduction::kSum,
               {{"mode", "user, =\"1\""}}),
          Make("task_resident_memory_bytes", "bytes", MetricType::kGauge, Reduction::kSum, {}),
          Make("app_heat", "1", MetricType::kGauge, Reduction::kMean, {})};
}

double ValueOf(size_t series, int tick, uint32_t node) {
  if (series == 0) return tick * (node + 1.0);
  if (series == 1) return 1000 * (node + 1.0);
  return tick % 7 == 0 ? std::nan("") : tick / 8.0 + node;
}

bool Good(const Status& status) {
  if (!status.ok()) std::fprintf(stderr, "%s\n", std::string(status.message()).c_str());
  return status.ok();
}

// Column after column: `column(i, row)`.
template <typename F>
bool Put(LiveArchive& live, const BlockKey& key, const Schema& schema,
         const std::vector<Nanos>& times, F column) {
  std::vector<double> columns;
  for (size_t c = 0; c < schema.size(); ++c) {
    for (size_t r = 0; r < times.size(); ++r) columns.push_back(column(c, r));
  }
  std::string bytes;
  BlockEncoder encoder;
  return Good(encoder.Encode(schema.id(), times, columns.data(), schema.size(), times.size(),
                             bytes)) &&
         Good(live.PutBlock(key, schema, bytes));
}

bool PutBlocks(LiveArchive& live, Nanos start, int first, int rows, uint64_t sequence) {
  std::vector<Nanos> times;
  for (int i = 1; i <= rows; ++i) times.push_back(start + (first + i) * kSecond);
  const auto series = TestSeries();
  const auto schema = Schema::Make(series);
  for (uint32_t node = 0; node < kNodes; ++node) {
    const auto value = [&](size_t c, size_t r) {
      return ValueOf(c, first + static_cast<int>(r) + 1, node);
    };
    if (!Put(live, {node, "task", sequence}, *schema, times, value)) return false;
  }
  const auto reduced = ReducedSchema(series);
  return Put(live, {kReducedNode, "task", sequence}, *reduced, times, [&](size_t c, size_t r) {
    Reduced value;
    for (uint32_t node = 0; node < kNodes; ++node) {
      value.Add(ValueOf(c / kStatColumns, first + static_cast<int>(r) + 1, node), {node, 0});
    }
    double columns[kStatColumns];
    ToColumns(value, columns);
    return columns[c % kStatColumns];
  });
}

int Main(const std::string& archive, const std::string& id, Nanos start, int rows) {
  JobDescription job;
  job.cluster = "frost";
  job.id = {id, "0"};
  job.user = "ada";
  job.expected_nodes = kNodes;
  job.expected_tasks = kNodes;
  job.level = 2;
  job.start = start;
  for (const char* host : {"n1", "n2"}) {
    NodeInfo node;
    node.host = host;
    node.tasks = 1;
    job.nodes.push_back(node);
  }
  auto live = LiveArchive::Create(archive, job);
  if (!Good(live.status()) && !live.ok()) return 1;
  uint64_t sequence = 0;
  for (int first = 0; first < rows; first += kBlockRows) {
    const int count = std::min(kBlockRows, rows - first);
    if (!PutBlocks(**live, start, first, count, ++sequence)) return 1;
  }
  Profile profile;
  profile.job = job;
  profile.job.state = EndState::kCompleted;
  profile.job.end = start + rows * kSecond;
  return Good((*live)->PutProfile(profile)) && Good((*live)->Finish()) ? 0 : 1;
}

}  // namespace
}  // namespace sonde

int main(int argc, char** argv) {
  if (argc != 5) return 2;
  return sonde::Main(argv[1], argv[2], std::atoll(argv[3]) * sonde::kSecond, std::atoi(argv[4]));
}
