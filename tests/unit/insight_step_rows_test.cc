// The rows of a step's nodes and ranks: the same whether a profile is read at once or in pieces,
// and as few pieces as what is stored needs.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "insight/steps/read_pieces.h"
#include "insight/steps/step_rows.h"
#include "profiles/archive/open_archive.h"
#include "profiles/live/live_archive.h"
#include "series/block/thin.h"
#include "series/store/past.h"
#include "series/store/task_ranks.h"
#include "tests/unit/profiles_fixture.h"

namespace sonde::insight {
namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

const AskedRows kAskedOfAll[] = {
    {{"task_cpu_seconds_total", "", ""}, RowsBy::kRank},
    {{"task_cpu_seconds_total", "", ""}, RowsBy::kNode},
    {{"task_cpu_seconds_total", "", "", "mode", "user"}, RowsBy::kRank, BeforeFirst::kZeroATickAgo},
    {{"node_load1", "", ""}, RowsBy::kNode},
    {{"work_done_total", "", ""}, RowsBy::kRank, BeforeFirst::kZeroAtItsJoining},
    {{"loss", "", ""}, RowsBy::kNode},
};

// Three hosts, on the second of which a daemon was started anew, two tasks on each, 200 s.
class StepRowsRead : public testing::Test {
 protected:
  StepRowsRead() {
    job_ = TestJob();
    job_.nodes.clear();
    for (const char* host : {"n1", "n2", "n3", "n2"}) {
      NodeInfo& node = job_.nodes.emplace_back();
      node.host = host;
      node.tasks = 2;
      node.joined = job_.start;
    }
    job_.expected_nodes = 3;
    job_.expected_tasks = 6;
    job_.end = job_.start + 200 * kSecond;
    job_.state = EndState::kCompleted;
    auto live = LiveArchive::Create(root_, job_);
    EXPECT_TRUE(live.ok());
    for (const uint32_t node : {0, 1, 2}) {
      for (int part = 0; part < 4; ++part) {
        if (node == 1 && part > 1) continue;
        PutTasks(**live, node, node * 2, part);
        PutNode(**live, node, part);
      }
    }
    for (const int part : {2, 3}) PutTasks(**live, 3, 2, part);  // counts from 0 again
    PutPastOf(**live);
    Profile profile;
    profile.job = job_;
    EXPECT_TRUE((*live)->PutProfile(profile).ok());
    EXPECT_TRUE((*live)->Finish().ok());
    live->reset();
    archive_ = *OpenArchive(root_);
    key_ = archive_.reader->List()->at(0).key;
  }

  static std::vector<Nanos> TimesOf(int first, int rows, int apart) {
    std::vector<Nanos> times;
    for (int i = 1; i <= rows; ++i) times.push_back(kTestStart + (first + i * apart) * kSecond);
    return times;
  }
  static void Put(LiveArchive& live, const BlockKey& key, const Schema& schema,
                  const std::vector<Nanos>& times, const std::vector<double>& columns) {
    EXPECT_TRUE(live.PutBlock(key, schema, MakeBlock(schema, times, columns)).ok());
  }
  // Fifty rows of CPU time in three modes and of work, of two tasks.
  static void PutTasks(LiveArchive& live, uint32_t node, uint32_t rank, int part) {
    std::vector<Series> series;
    for (const char* task : {"0", "1"}) {
      for (const char* mode : {"user", "system", "guest"}) {
        series.push_back(TestSeries("task_cpu_seconds_total", MetricType::kCounter,
                                    {{"mode", mode}, {"task", task}}));
      }
      series.push_back(TestSeries("work_done_total", MetricType::kCounter, {{"task", task}}));
    }
    const auto schema = Schema::Make(series);
    std::vector<double> columns;
    const int begun = node == 3 ? 100 : 0;
    for (size_t s = 0; s < series.size(); ++s) {
      for (int i = 1; i <= 50; ++i) {
        const int tick = part * 50 + i - begun;
        const bool missing = tick % (7 + static_cast<int>(s)) == 3;
        columns.push_back(missing ? kNone : tick * (0.1 + 0.37 * static_cast<double>(s)) / 3);
      }
    }
    Put(live, {node, GroupFrom(rank, "task"), static_cast<uint64_t>(part + 1)}, *schema,
        TimesOf(part * 50, 50, 1), columns);
  }
  // Five rows, each of ten samples.
  static void PutNode(LiveArchive& live, uint32_t node, int part) {
    const auto schema =
        ThinnedSchema(*Schema::Make({TestSeries("node_load1", MetricType::kGauge)}));
    std::vector<double> columns;
    for (const double away : {0.0, -1.0, 1.0}) {
      for (int i = 1; i <= 5; ++i) columns.push_back(node + 0.1 * (part * 5 + i) + away);
    }
    Put(live, {node, "os", static_cast<uint64_t>(part + 1)}, *schema, TimesOf(part * 50, 5, 10),
        columns);
  }
  // What was told later comes first.
  static void PutPastOf(LiveArchive& live) {
    const auto schema = Schema::Make({TestSeries("loss", MetricType::kGauge)});
    const std::string group(kPastGroup);
    Put(live, {0, group, 1}, *schema, TimesOf(120, 3, 1), {4, 5, 6});
    Put(live, {0, group, 2}, *schema, TimesOf(20, 3, 20), {1, 2, 3});
    Put(live, {0, group, 3}, *schema, TimesOf(120, 2, 1), {7, 8});
  }

  std::vector<StepRows> Read(size_t most_points, size_t ticks = 200,
                             const std::set<size_t>& nodes = {}) const {
    const TickGrid grid = GridOf(job_, ticks);
    auto rows = ReadStepRows(*archive_.reader, key_, job_, grid, kAskedOfAll, nodes, most_points);
    EXPECT_TRUE(rows.ok()) << rows.status().message();
    return rows.ok() ? *std::move(rows) : std::vector<StepRows>();
  }
  std::vector<Nanos> Pieces(size_t most, const std::function<bool(const Series&)>& wanted) const {
    const TickGrid grid = GridOf(job_, 200);
    const auto any = [](uint32_t) { return true; };
    const auto pieces = FindPieces(*archive_.reader, key_, grid, most, any, wanted);
    EXPECT_TRUE(pieces.ok());
    return pieces.ok() ? *pieces : std::vector<Nanos>();
  }

  const TempDir dir_{TempDir::Memory()};
  const std::string root_ = dir_.path() + "/archive";
  JobDescription job_;
  OpenedArchive archive_;
  std::string key_;
};

// To the last bit, missing values too.
void ExpectSame(const std::vector<StepRows>& a, const std::vector<StepRows>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) {
    ASSERT_EQ(a[i].who.size(), b[i].who.size()) << i;
    for (size_t r = 0; r < a[i].who.size(); ++r) {
      EXPECT_EQ(a[i].who[r].rank, b[i].who[r].rank);
      EXPECT_EQ(a[i].who[r].host, b[i].who[r].host);
      EXPECT_EQ(a[i].who[r].node, b[i].who[r].node);
      ASSERT_EQ(a[i].rows[r].size(), b[i].rows[r].size());
      for (size_t t = 0; t < a[i].rows[r].size(); ++t) {
        ASSERT_EQ(std::bit_cast<uint64_t>(a[i].rows[r][t]),
                  std::bit_cast<uint64_t>(b[i].rows[r][t]))
            << i << " row " << r << " tick " << t;
      }
    }
  }
}

TEST_F(StepRowsRead, AreTheSameAtOnceAndInPieces) {
  for (const size_t ticks : {200, 40, 7}) {
    const std::vector<StepRows> whole = Read(kMostPointsAtOnce, ticks);
    ASSERT_EQ(whole.size(), std::size(kAskedOfAll));
    EXPECT_EQ(whole[0].rows.size(), 6u) << "ranks";
    EXPECT_EQ(whole[1].rows.size(), 3u) << "hosts";
    EXPECT_EQ(whole[3].rows.size(), 3u);
    EXPECT_EQ(whole[5].rows.size(), 1u) << "values of the past";
    for (const size_t most : {1000, 100, 1}) {
      SCOPED_TRACE(testing::Message() << ticks << " ticks, " << most << " points");
      ExpectSame(Read(most, ticks), whole);
    }
  }
  ExpectSame(Read(1, 200, {0, 2}), Read(kMostPointsAtOnce, 200, {0, 2}));
}

TEST_F(StepRowsRead, HaveTheMeansOfWhatIsThinned) {
  const std::vector<StepRows> rows = Read(kMostPointsAtOnce);
  EXPECT_NEAR(rows[3].rows[2][9], 2.1, 1e-9);
  EXPECT_NEAR(rows[3].rows[2][199], 4, 1e-9);
  EXPECT_TRUE(std::isnan(rows[3].rows[2][100]));
}

TEST_F(StepRowsRead, PiecesAreAsManyAsWhatIsStoredNeeds) {
  const auto of = [](std::string_view metric) {
    return [metric](const Series& series) { return series.metric.name == metric; };
  };
  // Five rows of three nodes in 50 s.
  EXPECT_EQ(Pieces(1000, of("node_load1")), std::vector<Nanos>{0});
  EXPECT_EQ(Pieces(55, of("node_load1")), std::vector<Nanos>{0}) << "extremes are not read";
  EXPECT_LE(Pieces(30, of("node_load1")).size(), 3u);
  // Six series of three hosts at each of 200 ticks.
  const std::vector<Nanos> dense = Pieces(18 * 50, of("task_cpu_seconds_total"));
  EXPECT_GE(dense.size(), 4u);
  EXPECT_LE(dense.size(), 5u);
  for (size_t i = 1; i < dense.size(); ++i) EXPECT_GT(dense[i], dense[i - 1]);
  EXPECT_EQ(Pieces(1, of("nothing")), std::vector<Nanos>{0});
  EXPECT_EQ(Pieces(1, of("task_cpu_seconds_total")).size(), 200u) << "a tick each";
}

}  // namespace
}  // namespace sonde::insight
