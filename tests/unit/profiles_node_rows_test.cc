// The totals of each node, as the report shows them.
#include <gtest/gtest.h>

#include <cmath>

#include "profiles/model/summary.h"
#include "tests/unit/profiles_fixture.h"

namespace sonde::profiles_node_rows_test {
namespace {

SeriesData Of(const std::string& host, std::string_view metric, const std::vector<double>& values) {
  SeriesData data;
  data.series = TestSeries(metric, MetricType::kCounter, {{"host", host}});
  Nanos time = kTestStart;
  for (const double value : values) data.points.push_back({time += kSecond, value});
  return data;
}

// The second daemon of n1 counts from 0, the one of n2 goes on from where the first was.
TEST(NodeRows, AddUpWhatAllDaemonsOfANodeCounted) {
  const std::vector<NodeRow> rows =
      NodeRowsOf({Of("n1", "task_cpu_seconds_total", {10, 40, 1, 7}),
                  Of("n2", "task_cpu_seconds_total", {10, 40, 41, 47}),
                  Of("n1", "node_cpu_seconds_total", {100, 400, 20}),
                  Of("n1", "node_network_receive_bytes_total", {1000, 500, 200})},
                 TestJob());
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0].cpu_seconds, 47);
  EXPECT_EQ(rows[1].cpu_seconds, 47);
  EXPECT_EQ(rows[0].node_cpu_seconds, 420);
  EXPECT_EQ(rows[0].network_received, 1700);
}

// Node n2, whose daemon was started anew after 100 s, and n1 for 400 s: 4 processors each.
class StartedAnew : public testing::Test {
 protected:
  StartedAnew() {
    job_ = profile_.job = TestJob();
    job_.end = kTestStart + 400 * kSecond;
    job_.nodes.push_back(job_.nodes[1]);
    job_.nodes[1].left = kTestStart + 100 * kSecond;
    job_.nodes[1].lost = true;
    job_.nodes[2].joined = kTestStart + 101 * kSecond;
    profile_.job = job_;
    FootprintEntry& cpu = profile_.footprint.emplace_back();
    cpu.series = TestSeries("node_cpu_seconds_total", MetricType::kCounter);
    cpu.last = 4 * (400 + 399);
  }
  // What n2's two daemons counted, one after the other.
  std::vector<NodeRow> Rows() const {
    return NodeRowsOf({Of("n1", "node_cpu_seconds_total", {1600}),
                       Of("n2", "node_cpu_seconds_total", {400, 100, 1196}),
                       Of("n2", "task_cpu_seconds_total", {100, 50, 299})},
                      job_);
  }
  JobDescription job_;
  Profile profile_;
};

TEST_F(StartedAnew, AHostsNumbersAreInTheRowOfItsNewestDaemon) {
  const std::vector<NodeRow> rows = Rows();
  ASSERT_EQ(rows.size(), 3u);
  EXPECT_TRUE(std::isnan(rows[1].cpu_seconds)) << "the row of the daemon that is gone";
  EXPECT_TRUE(std::isnan(rows[1].node_cpu_seconds));
  EXPECT_EQ(rows[2].cpu_seconds, 100 + 299);
}

TEST_F(StartedAnew, ItsProcessorsCount) {
  EXPECT_EQ(Summarize(profile_, Rows(), job_.end).node_cpus, 8);
  EXPECT_EQ(Summarize(profile_, {}, job_.end).node_cpus, 8) << "without rows";
}

TEST_F(StartedAnew, AHostWasMeasuredForTheTimeOfAllItsDaemons) {
  EXPECT_EQ(MeasuredSeconds(job_, job_.end, /*of_tasks=*/true),
            (std::vector<double>{400, 100, 100 + 299}));
}

// It left in the moment in which it came, and nobody came for it.
TEST(LostNodes, AreNotReplacedByThemselves) {
  Profile profile;
  profile.job = TestJob();
  profile.job.end = kTestStart + 400 * kSecond;
  profile.job.nodes[1].left = profile.job.nodes[1].joined = kTestStart + 10 * kSecond;
  profile.job.nodes[1].lost = true;
  EXPECT_EQ(Summarize(profile, {}, profile.job.end).measured_tasks, 4);
}

}  // namespace
}  // namespace sonde::profiles_node_rows_test
