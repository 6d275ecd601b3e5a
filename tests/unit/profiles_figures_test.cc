// What the report's figures are shares of: of the time that was measured, of the memory allowed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "profiles/model/summary.h"
#include "profiles/records/card.h"
#include "tests/unit/profiles_report_fixture.h"

namespace sonde::profiles_figures_test {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

// The 100 s of TestProfile, of which both nodes were measured from 20 s to 80 s.
Profile PartlyMeasured() {
  Profile p = TestProfile();
  for (NodeInfo& node : p.job.nodes) {
    node.joined = p.job.start + 20 * kSecond;
    node.left = p.job.start + 80 * kSecond;
  }
  for (FootprintEntry& e : p.footprint) {
    if (e.series.metric.name == "node_cpu_seconds_total") e.last *= 0.6;
  }
  return p;
}

TEST(Figures, DividesByTheTimeThatWasMeasured) {
  EXPECT_THAT(Render(PartlyMeasured()), AllOf(HasSubstr("83 % of 4 tasks x 1 min 0 s"),
                                              HasSubstr("measured for 1 min 0 s of 1 min 40 s"),
                                              HasSubstr("42 % of all 8 CPUs")));
  EXPECT_THAT(Render(TestProfile()), Not(HasSubstr("measured for")));
}

TEST(Figures, ATaskThatEndedEarlyIsKnownToUseNothing) {
  Profile p = TestProfile();
  p.job.nodes[0].left = p.job.start + 40 * kSecond;
  p.job.nodes[1].left = p.job.start + 100 * kSecond;
  EXPECT_THAT(Render(p),
              AllOf(HasSubstr("50 % of 4 tasks x 1 min 40 s"), Not(HasSubstr("measured for"))));
  p.job.nodes[0].lost = true;
  EXPECT_THAT(Render(p), AllOf(HasSubstr("71 % of 4 tasks x 1 min 10 s"),
                               HasSubstr("measured for 1 min 10 s of 1 min 40 s")));
}

TEST(Figures, TasksOfANodeThatNeverCameAreNotMeasured) {
  Profile p = TestProfile();
  p.job.nodes.pop_back();
  EXPECT_THAT(Render(p), HasSubstr("100 % of 2 of 4 tasks x 1 min 40 s"));
}

TEST(Figures, ANodesShareIsOfItsOwnTime) {
  Profile p = PartlyMeasured();
  p.job.nodes[1].lost = true;
  p.job.nodes[1].left = p.job.start + 40 * kSecond;
  ReportOptions options;
  options.nodes = {Row("n1", 60, kGiB), Row("n2", 40, kGiB)};
  options.nodes[0].node_cpu_seconds = 240;
  options.nodes[1].node_cpu_seconds = 160;
  EXPECT_THAT(Render(p, options),
              AllOf(HasSubstr("n1        2   50 %"), HasSubstr("n2        2  100 %"),
                    HasSubstr("of all 12 CPUs")));
}

TEST(Figures, MemoryIsOfWhatTheStepMayUse) {
  Profile p = TestProfile();
  for (NodeInfo& node : p.job.nodes) node.tasks = 1;  // its memory is that of its node
  p.footprint.push_back(Entry(TestSeries("cgroup_memory_limit_bytes", MetricType::kGauge), 4 * kGiB,
                              2 * kGiB, 2 * kGiB));
  EXPECT_THAT(Render(p), HasSubstr("50 %: 1.0 GiB of 2.0 GiB allowed"));
  // Slurm may not enforce what the job has asked for.
  p.job.environment = {{"SLURM_MEM_PER_NODE", "1536"}};
  EXPECT_THAT(Render(p), HasSubstr("67 %: 1.0 GiB of 1.5 GiB allowed"));
  p.job.environment = {{"SLURM_MEM_PER_CPU", "640"}, {"SLURM_JOB_CPUS_PER_NODE", "2(x2)"}};
  EXPECT_THAT(Render(p), HasSubstr("1.0 GiB of 1.2 GiB allowed"));
  p.job.environment = {{"SLURM_MEM_PER_NODE", "0"}};  // all there is
  EXPECT_THAT(Render(p), HasSubstr("1.0 GiB of 2.0 GiB allowed"));
  p.footprint.push_back(Entry(TestSeries("node_memory_allocated_bytes", MetricType::kGauge),
                              3 * kGiB, 1.5 * kGiB, 1.5 * kGiB));
  EXPECT_THAT(Render(p), HasSubstr("67 %: 1.0 GiB of 1.5 GiB allowed"));
  p.footprint.pop_back();
  p.footprint.pop_back();
  EXPECT_THAT(Render(p), HasSubstr("25 %: 1.0 GiB of 4.0 GiB"));
  ReportOptions options;
  options.nodes = {Row("n1", 150, kGiB), Row("n2", 50, 3 * kGiB)};
  options.nodes[1].memory_limit = 3 * kGiB;
  EXPECT_THAT(Render(p, options), HasSubstr("100 %: 3.0 GiB of 3.0 GiB allowed on n2"));
}

TEST(Figures, TheCardOfAProfileSaysTheSame) {
  Profile p = PartlyMeasured();
  p.job.environment = {{"SLURM_MEM_PER_NODE", "1536"}};
  const std::string bytes = MakeCard(p, 7);
  Card card;
  ASSERT_TRUE(DecodeCard(bytes, card).ok());
  EXPECT_EQ(SummaryToJson(SummaryOfCard(card, p.job.start, 0)), SummaryToJson(Summarize(p, {}, 0)));
}

}  // namespace
}  // namespace sonde::profiles_figures_test
