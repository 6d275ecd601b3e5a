// sonde roofline, as its users run it: over steps whose numbers are known.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <cmath>
#include <sstream>

#include "cli/roofline/plot.h"
#include "core/text/names.h"
#include "insight/steps/peaks_file.h"
#include "profiles/model/text.h"
#include "tests/unit/insight_noise.h"
#include "tests/unit/insight_step.h"
#include "tests/unit/sonde_command.h"

namespace sonde::insight::cli_roofline_test {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

const Tags kAType = {
    {"model", "Some CPU"}, {"cpus", "64"}, {"sockets", "2"}, {"megahertz", "3000"}};

class CliRoofline : public testing::Test {
 protected:
  CliRoofline() {
    NodePeaks peaks;
    peaks.type = {"Some CPU", 64, 2, 3000};
    peaks.allowed = 64;
    peaks.all = {200e9, 2e12, 4e12};
    peaks.one = {20e9, 40e9, 80e9};
    peaks.host = "n0";
    EXPECT_TRUE(KeepPeaks(file(), peaks, false).ok());
  }
  std::string file() const { return dir_.path() + "/peaks.json"; }
  std::string root() const { return dir_.path() + "/archive"; }
  Outcome Sonde(const std::string& arguments) {
    return RunSonde(dir_.path(), "roofline " + arguments + " 123", "COLUMNS=120");
  }
  boost::json::value Json(const std::string& arguments) {
    const Outcome outcome = Sonde("--json " + arguments);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return boost::json::parse(outcome.out);
  }
  // Two nodes of 64 CPUs, all of them the step's, half of the time in each of two phases: one that
  // streams (per node 10 GFLOP/s, 120 GB/s), one that multiplies (1 TFLOP/s, 20 GB/s).
  static StepOf TwoPhases() {
    StepOf step(2);
    for (const char* name : {"stream", "multiply"}) {
      Phase& phase = step.moments.phases.emplace_back();
      phase.name = name;
      phase.begin = step.job.start + (*name == 'm' ? 60 : 0) * kSecond;
      phase.end = phase.begin + 60 * kSecond;
    }
    step.job.level = 3;
    step.Gauge("os", "node_processor_info", kAType, [](uint32_t, int) { return 1; });
    step.Gauge("os", "cgroup_cpuset_cpus", {}, [](uint32_t, int) { return 64; });
    step.Counter("task", "task_cpu_seconds_total", {{"mode", "user"}, {"task", "0"}},
                 [](uint32_t, int) { return 60; });
    return step;
  }
  static bool Streams(int tick) { return tick <= 60; }
  static void Count(StepOf& step) {
    step.Gauge("task", "task_flops_per_second", {{"task", "0"}},
               [](uint32_t, int tick) { return Streams(tick) ? 10e9 : 1e12; });
    step.Gauge("task", "task_memory_bytes_per_second", {{"task", "0"}},
               [](uint32_t, int tick) { return Streams(tick) ? 120e9 : 20e9; });
  }

  TempDir dir_{TempDir::Memory()};
};

TEST_F(CliRoofline, PhasesStandUnderTheRoofOfTheStepsNodes) {
  StepOf step = TwoPhases();
  Count(step);
  step.Write(root());
  const auto json = Json("--peaks " + file());
  EXPECT_TRUE(json.at("counted").as_bool());
  EXPECT_FALSE(json.at("with_writes").as_bool());
  EXPECT_DOUBLE_EQ(json.at("roof").at("flops_per_second").to_number<double>(), 4e12);
  EXPECT_DOUBLE_EQ(json.at("roof").at("bytes_per_second").to_number<double>(), 400e9);
  const auto& phases = json.at("phases").as_array();
  ASSERT_EQ(phases.size(), 2u);
  EXPECT_EQ(phases[0].at("bound").as_string(), "memory");
  EXPECT_NEAR(phases[0].at("intensity").to_number<double>(), 1.0 / 12, 1e-9);
  EXPECT_NEAR(phases[0].at("share").to_number<double>(), 0.6, 1e-9);
  EXPECT_EQ(phases[1].at("bound").as_string(), "compute");
  EXPECT_NEAR(phases[1].at("intensity").to_number<double>(), 50, 1e-9);
  EXPECT_NEAR(phases[1].at("share").to_number<double>(), 0.5, 1e-9);
  EXPECT_NEAR(json.at("whole").at("flops_per_second").to_number<double>(), 2 * 505e9, 1e6);
  const Outcome text = Sonde("--peaks " + file());
  EXPECT_THAT(text.out, AllOf(HasSubstr("Some CPU, 64 CPUs, 2 sockets"), HasSubstr("4 TFLOP/s"),
                              HasSubstr("A  stream"), HasSubstr("B  multiply"), HasSubstr("60 %"),
                              HasSubstr("FLOP per byte"), HasSubstr("without what was written")));
}

TEST_F(CliRoofline, TheMemoryControllersCountBeforeTheTasks) {
  StepOf step = TwoPhases();
  Count(step);
  for (const char* direction : {"read", "write"}) {
    step.Counter("os", "node_memory_traffic_bytes_total",
                 {{"direction", direction}, {"socket", "0"}}, [](uint32_t, int) { return 80e9; });
  }
  step.Write(root());
  const auto json = Json("--peaks " + file());
  EXPECT_TRUE(json.at("with_writes").as_bool());
  EXPECT_NEAR(json.at("phases").at(0).at("bytes_per_second").to_number<double>(), 320e9, 1e3);
  EXPECT_THAT(Sonde("--peaks " + file()).out, Not(HasSubstr("without what was written")));
}

TEST_F(CliRoofline, AStepWithAFewCpusHasALowerRoof) {
  StepOf step(1);
  step.job.level = 3;
  step.Gauge("os", "node_processor_info", kAType, [](uint32_t, int) { return 1; });
  step.Gauge("os", "cgroup_cpuset_cpus", {}, [](uint32_t, int) { return 4; });
  Count(step);
  step.Write(root());
  const auto json = Json("--peaks " + file());
  EXPECT_DOUBLE_EQ(json.at("roof").at("flops_per_second").to_number<double>(), 125e9);
  EXPECT_DOUBLE_EQ(json.at("roof").at("bytes_per_second").to_number<double>(), 80e9);
}

TEST_F(CliRoofline, WithoutPeaksItSaysWhereToMeasureThem) {
  StepOf step = TwoPhases();
  Count(step);
  step.Write(root());
  const Outcome text = Sonde("");
  EXPECT_EQ(text.code, 0) << text.err;
  EXPECT_THAT(text.out, AllOf(HasSubstr("run `sonde peaks` on such a node"), HasSubstr("Some CPU"),
                              HasSubstr("0.08333"), Not(HasSubstr("60 %"))));
  EXPECT_TRUE(Json("").at("roof").is_null());
}

TEST_F(CliRoofline, AProfileThatDoesNotKnowItsProcessorsIsPlacedByItsHosts) {
  StepOf step(1);
  step.job.level = 3;
  step.Gauge("os", "cgroup_cpuset_cpus", {}, [](uint32_t, int) { return 64; });
  Count(step);
  step.Write(root());
  EXPECT_DOUBLE_EQ(Json("--peaks " + file()).at("roof").at("flops_per_second").to_number<double>(),
                   2e12);
}

TEST_F(CliRoofline, WithoutCountersItSaysSoAndJudgesByTheRest) {
  StepOf step = TwoPhases();
  step.Gauge(
      "task", "task_memory_stall_ratio", {{"task", "0"}},
      [](uint32_t, int tick) { return Streams(tick) ? 0.6 : 0.02; }, Reduction::kMean);
  step.Write(root());
  const Outcome text = Sonde("--peaks " + file());
  EXPECT_THAT(text.out,
              AllOf(HasSubstr("No FLOP, or no bytes from memory, were counted"),
                    HasSubstr("By what was measured instead"), HasSubstr("60 % of the cycles"),
                    HasSubstr("only 2 %"), Not(HasSubstr("of the roof"))));
  const auto json = Json("--peaks " + file());
  EXPECT_FALSE(json.at("counted").as_bool());
  EXPECT_EQ(json.at("phases").at(0).at("bottleneck").as_string(), "memory");
  EXPECT_EQ(json.at("phases").at(1).at("bottleneck").as_string(), "compute");
  EXPECT_EQ(json.at("phases").at(0).at("bound").as_string(), "unknown");
}

TEST_F(CliRoofline, WhereItsCpusAreNotKnownTheRoofIsThatOfTheNodeAndItSaysSo) {
  StepOf step(1);
  step.job.level = 3;
  step.Gauge("os", "node_processor_info", kAType, [](uint32_t, int) { return 1; });
  for (const char* mode : {"user", "idle"}) {
    step.Counter("os", "node_cpu_seconds_total", {{"mode", mode}},
                 [](uint32_t, int) { return 32; });
  }
  Count(step);
  step.Write(root());
  EXPECT_DOUBLE_EQ(Json("--peaks " + file()).at("roof").at("flops_per_second").to_number<double>(),
                   2e12);
  EXPECT_THAT(Sonde("--peaks " + file()).out, HasSubstr("the roof is that of whole nodes"));
}

TEST_F(CliRoofline, BusyCpusAloneTellNothing) {
  TwoPhases().Write(root());
  EXPECT_THAT(Sonde("").out, HasSubstr("cannot be told apart without hardware counters"));
}

// Where a letter stands: the line and the character in it.
std::pair<size_t, size_t> PlaceOf(const std::string& plot, char letter) {
  size_t line = 0, column = 0;
  for (size_t i = 0; i < plot.size();) {
    if (plot[i] == letter) return {line, column};
    column = plot[i] == '\n' ? 0 : column + 1;
    line += plot[i] == '\n' ? 1 : 0;
    i += names::Utf8Length(plot, i);
  }
  return {0, 0};
}

TEST(RooflinePlots, LettersStandWhereTheirNumbersAre) {
  const Roof roof{1e12, 1e11};
  const cli::PlottedPhase phases[] = {{'A', 0.1, 1e9}, {'B', 100, 1e12}, {'C', 1, 1e10}};
  for (const bool unicode : {false, true}) {
    const std::string plot = cli::RooflinePlot(phases, roof, {80, 16}, unicode);
    std::istringstream lines(plot);
    for (std::string line; std::getline(lines, line);) {
      EXPECT_LE(text::Width(line), 80u) << line;
    }
    const auto a = PlaceOf(plot, 'A'), b = PlaceOf(plot, 'B'), c = PlaceOf(plot, 'C');
    EXPECT_GT(a.first, c.first) << plot;
    EXPECT_GT(c.first, b.first) << plot;
    EXPECT_LT(a.second, c.second) << plot;
    EXPECT_LT(c.second, b.second) << plot;
    // Both axes are logarithmic: a decade is as long everywhere.
    EXPECT_NEAR(2.0 * static_cast<double>(c.second - a.second),
                static_cast<double>(b.second - c.second), 2.5)
        << plot;
  }
}

TEST(RooflinePlots, AnyNumbersMakeAPlotThatFits) {
  SeededNoise noise(5);
  for (int trial = 0; trial < 500; ++trial) {
    const Roof roof{std::pow(10, 6 + 8 * noise.Normal()), std::pow(10, 6 + 8 * noise.Normal())};
    std::vector<cli::PlottedPhase> phases;
    for (size_t i = 0; i < noise.Below(30); ++i) {
      phases.push_back({static_cast<char>('A' + i % 26), std::pow(10, 20 * noise.Normal()),
                        std::pow(10, 20 * noise.Normal())});
    }
    phases.push_back({'X', std::nan(""), 1});
    phases.push_back({'Y', HUGE_VAL, 1});
    phases.push_back({'Z', 0, 0});
    const std::string plot = cli::RooflinePlot(phases, roof, {80, 16}, trial % 2 == 0);
    std::istringstream lines(plot);
    for (std::string line; std::getline(lines, line);) {
      ASSERT_LE(text::Width(line), 80u) << line;
    }
  }
  EXPECT_EQ(cli::RooflinePlot({}, Roof(), {80, 16}, true), "");
}

}  // namespace
}  // namespace sonde::insight::cli_roofline_test
