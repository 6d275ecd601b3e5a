// The totals of each node, as the report shows them.
#include <gtest/gtest.h>

#include "profiles/model/summary.h"
#include "tests/unit/profiles_fixture.h"

namespace sonde {
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

}  // namespace
}  // namespace sonde
