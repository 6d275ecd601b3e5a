// What a step came to in words, and in the six lines that srun prints.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>
#include <string>
#include <vector>

#include "profiles/model/text.h"
#include "profiles/report/headline.h"
#include "profiles/report/mpi_waiting.h"
#include "profiles/report/short_report.h"
#include "tests/unit/profiles_report_fixture.h"

namespace sonde::profiles_headline_test {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

std::vector<std::string> Headlines(const Profile& p) {
  std::vector<std::string> out;
  for (const HeadlinePart& part : HeadlineOf(p, Summarize(p, {}, 0), 0)) out.push_back(part.text);
  return out;
}

std::vector<std::string> Lines(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

// 4 tasks and 100 s: 400 s of them together.
void AddMpi(Profile& p, double seconds, double waiting) {
  const auto add = [&](std::string_view metric, std::string_view function, double value) {
    p.footprint.push_back(
        Entry(TestSeries(metric, MetricType::kCounter,
                         {{"class", "collective"}, {"function", std::string(function)}}),
              value, value / 4, value / 4));
  };
  add("mpi_calls_total", "MPI_Allreduce", 1000);
  add("mpi_calls_total", "MPI_Barrier", 10);
  add("mpi_seconds_total", "MPI_Allreduce", 0.9 * seconds);
  add("mpi_seconds_total", "MPI_Barrier", 0.1 * seconds);
  add("mpi_wait_seconds_total", "MPI_Barrier", waiting);
}

// Task 3 on n2 computes 25 s longer than the others, which wait for it in the collectives.
void AddUnevenCollectives(Profile& p, double least_calls = 1000) {
  const Tags tags = {{"class", "collective"}};
  FootprintEntry calls =
      Entry(TestSeries("mpi_calls_total", MetricType::kCounter, tags), 4000, least_calls, 1000);
  FootprintEntry seconds =
      Entry(TestSeries("mpi_seconds_total", MetricType::kCounter, tags), 100, 10, 35);
  seconds.min_owner = {1, 3};
  // Barriers are among these.
  FootprintEntry waits =
      Entry(TestSeries("mpi_wait_seconds_total", MetricType::kCounter, tags), 20, 1, 7);
  p.footprint.insert(p.footprint.end(), {calls, seconds, waits});
}

void AddFiles(Profile& p, std::string_view kind, double seconds) {
  const Tags tags = {
      {"api", "posix"}, {"fstype", std::string(kind)}, {"mountpoint", "/x"}, {"operation", "read"}};
  p.footprint.push_back(
      Entry(TestSeries("io_calls_total", MetricType::kCounter, tags), 100, 0, 100));
  p.footprint.push_back(
      Entry(TestSeries("io_seconds_total", MetricType::kCounter, tags), seconds, 0, seconds));
}

TEST(Headlines, OfAStepThatIsNothingSpecialAreNone) {
  Profile p = TestProfile();
  for (FootprintEntry& e : p.footprint) {
    if (e.series.metric.name == "task_cpu_seconds_total") e.min = e.max = e.last / 4;
  }
  EXPECT_THAT(Headlines(p), IsEmpty());
}

TEST(Headlines, SayHowMuchTimeMpiTookAndInWhat) {
  Profile p = TestProfile();
  AddMpi(p, 292, 8);
  EXPECT_THAT(Headlines(p)[0], "in MPI 73 % of the time, most of it in MPI_Allreduce (66 %)");
  Profile waits = TestProfile();
  AddMpi(waits, 200, 160);
  EXPECT_THAT(Headlines(waits)[0], HasSubstr("waited for other ranks in MPI 40 % of the time"));
  Profile little = TestProfile();
  AddMpi(little, 4, 4);
  EXPECT_THAT(HeadlineText(HeadlineOf(little, Summarize(little, {}, 0), 0), 9),
              Not(HasSubstr("MPI")));
}

TEST(Headlines, SayForWhomTheOthersWaitedInCollectives) {
  Profile p = TestProfile();
  AddUnevenCollectives(p);
  const MpiWaiting waiting = WaitingInMpi(p, 4);
  EXPECT_DOUBLE_EQ(waiting.seconds, 100 - 4 * 10);
  EXPECT_EQ(waiting.slowest, (Owner{1, 3}));
  EXPECT_EQ(Headlines(p)[0],
            "waited for other ranks in MPI 15 % of the time, slowest is task 3 on n2");
}

TEST(Headlines, TakeNoRankForSlowWhoseCollectivesAreOthers) {
  Profile p = TestProfile();
  AddUnevenCollectives(p, 970);
  EXPECT_EQ(WaitingInMpi(p, 4).seconds, 20);
  EXPECT_EQ(WaitingInMpi(p, 4).slowest, std::nullopt);
  EXPECT_EQ(Headlines(p)[0], "in MPI 25 % of the time");
  // Nobody knows how many tasks there were.
  AddUnevenCollectives(p = TestProfile());
  EXPECT_EQ(WaitingInMpi(p, std::nan("")).seconds, 20);
  // Waiting in receives is longer than that for the slowest.
  FootprintEntry receives = Entry(
      TestSeries("mpi_wait_seconds_total", MetricType::kCounter, {{"class", "p2p"}}), 61, 0, 61);
  p.footprint.push_back(receives);
  EXPECT_EQ(WaitingInMpi(p, 4).seconds, 121);
  EXPECT_EQ(WaitingInMpi(p, 4).slowest, std::nullopt);
  // Most of these are for a rank that has the least or most of nothing, so its node is not known.
  p.footprint.push_back(Entry(
      TestSeries("mpi_peer_wait_seconds_total", MetricType::kCounter, {{"peer", "2"}}), 61, 0, 61));
  EXPECT_EQ(WaitingInMpi(p, 4).seconds, 121);
  EXPECT_EQ(WaitingInMpi(p, 4).slowest, (Owner{Owner::kNobody, 2}));
  EXPECT_THAT(Headlines(p)[0], testing::EndsWith(", slowest is task 2"));
}

TEST(Headlines, OfFilesLeaveOutTheKernels) {
  Profile p = TestProfile();
  AddFiles(p, "proc", 300);
  EXPECT_THAT(HeadlineText(HeadlineOf(p, Summarize(p, {}, 0), 0), 9), Not(HasSubstr("files")));
  AddFiles(p, "lustre", 120);
  EXPECT_THAT(Headlines(p)[0], "in calls for files 30 % of the time");
}

TEST(Headlines, OfACommandWhoseProcessesNobodyCountedHaveNoShares) {
  Profile p = TestProfile();
  p.job.id.step = "run";
  AddMpi(p, 292, 8);
  EXPECT_THAT(HeadlineText(HeadlineOf(p, Summarize(p, {}, 0), 0), 9), Not(HasSubstr("MPI")));
}

TEST(Headlines, BeginWithABadEnd) {
  Profile p = TestProfile();
  AddMpi(p, 292, 8);
  p.job.state = EndState::kFailed;
  p.job.exit_status = 3 << 8;
  p.job.exits = {{2, 3 << 8}};
  EXPECT_THAT(Headlines(p)[0], "failed: code 3: task 2");
  p.job.state = EndState::kTimeout;
  EXPECT_THAT(Headlines(p)[0], "was ended by its time limit");
  p.job.state = EndState::kOutOfMemory;
  EXPECT_THAT(Headlines(p)[0], "ran out of memory");
  p.job.state = EndState::kLost;
  EXPECT_THAT(Headlines(p)[0], "its record stops before its end");
}

TEST(Headlines, SayWhatWasAskedForAndNotUsed) {
  Profile p = TestProfile();  // 200 s of CPU time in 100 s: 2 CPUs
  p.job.environment["SLURM_JOB_CPUS_PER_NODE"] = "32(x2)";
  p.job.environment["SLURM_MEM_PER_NODE"] = "102400";
  std::vector<NodeRow> rows = {Row("n1", 100, kGiB), Row("n2", 100, 2 * kGiB)};
  for (NodeRow& row : rows) row.memory_total = 256 * kGiB, row.memory_limit = 100 * kGiB;
  const std::string text = HeadlineText(HeadlineOf(p, Summarize(p, rows, 0), 0), 9);
  EXPECT_EQ(text, "2.0 of 64 CPUs busy; 2.0 % of the memory asked for was used");
}

TEST(Headlines, SayWhoDidMoreThanTheOthers) {
  Profile p = TestProfile();
  for (FootprintEntry& e : p.footprint) {
    if (e.series.metric.name == "task_cpu_seconds_total") e.min = 1, e.max = 90;
  }
  EXPECT_THAT(Headlines(p), testing::Contains(testing::StartsWith("uneven: ")));
}

TEST(ShortReports, AreSomeSixLinesWithWhatMatters) {
  Profile p = TestProfile();
  AddMpi(p, 292, 8);
  p.job.environment["SLURM_JOB_CPUS_PER_NODE"] = "4(x2)";
  p.job.figures = {{"speed", "steps/s", 103, 1, 0, 0}};
  p.job.notes = {"n1: something small", "alarm busy (info): it was; raised 2026-11-23T20:59:18Z"};
  ReportOptions options;
  options.hints = {{"a", false, 0.5, "Ask for 2 CPUs.", "why", "change"},
                   {"b", false, 0.4, "Another.", "why", "change"}};
  const std::vector<std::string> lines = Lines(ShortReport(p, options));
  ASSERT_GE(lines.size(), 6u);
  EXPECT_LE(lines.size(), 11u);
  EXPECT_THAT(lines[0], AllOf(HasSubstr("Sonde: 123.0"), HasSubstr("completed in 1 min 40 s"),
                              HasSubstr("2 nodes, 4 tasks")));
  EXPECT_THAT(lines[1], testing::StartsWith("In short in MPI 73 % of the time"));
  const std::string all = ShortReport(p, options);
  EXPECT_THAT(all, HasSubstr("CPU      ###....... 25 % of 8"));
  EXPECT_THAT(all, HasSubstr("MPI #######... 73 %"));
  EXPECT_THAT(all, HasSubstr("\nFigures  speed 103 steps/s\n"));
  EXPECT_THAT(all, HasSubstr("\nHint     Ask for 2 CPUs. (and 1 hint more)\n"));
  EXPECT_THAT(all, HasSubstr("\nNote     alarm busy (info): it was"));
  EXPECT_THAT(all, HasSubstr("(and 1 more)\n"));
  EXPECT_THAT(lines.back(), HasSubstr("sonde show 123.0"));
}

TEST(ShortReports, FitTheTerminal) {
  Profile p = TestProfile();
  AddMpi(p, 292, 8);
  AddFiles(p, "lustre", 120);
  p.job.name = "a name of several words that is longer than most names of jobs are";
  p.job.notes = {std::string(300, 'n'), "b"};
  for (const size_t width : {60, 80, 120, 200}) {
    ReportOptions options;
    options.width = width;
    options.unicode = true;
    for (const std::string& line : Lines(ShortReport(p, options))) {
      EXPECT_LE(text::Width(line), width) << line;
    }
  }
}

TEST(ShortReports, CannotSteerTheTerminal) {
  Profile p = TestProfile();
  p.job.name = p.job.notes.emplace_back("\x1b[2J\x07");
  for (const char c : ShortReport(p, {})) {
    EXPECT_TRUE(static_cast<unsigned char>(c) >= 0x20 || c == '\n') << static_cast<int>(c);
  }
}

TEST(Sparklines, ShowWhatIsMissingAndWhatIsEqual) {
  const double nothing = std::nan("");
  EXPECT_EQ(text::Sparkline(std::vector<double>{0, 1, nothing, 6, 8}, true), "▁▂ ▇█");
  EXPECT_EQ(text::Sparkline(std::vector<double>{3, 3, 3}, true), "");
  EXPECT_EQ(text::Sparkline(std::vector<double>{}, true), "");
  EXPECT_EQ(text::Sparkline(std::vector<double>{-1e308, 1e308}, true), "▁█");
  EXPECT_EQ(text::Sparkline(std::vector<double>{INFINITY, 0, 1}, true), " ▁█");
  EXPECT_EQ(text::Sparkline(std::vector<double>{0, 1, nothing, 6, 8}, false), "_. *#");
}

}  // namespace
}  // namespace sonde::profiles_headline_test
