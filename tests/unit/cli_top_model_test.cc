// What `sonde top` asks of a step and makes of the answers, without a terminal and without a head.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tests/unit/cli_top_step.h"

namespace sonde::cli::top::cli_top_model_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;
using Kind = Ask::Kind;

constexpr Nanos kNow = kTopStart + 60 * kSecond;

class TopModel : public testing::Test {
 protected:
  std::vector<std::string> Names(const Model& model) const {
    std::vector<std::string> names;
    for (const uint32_t row : model.Order(view)) names.push_back(RowName(model, view, row));
    return names;
  }
  double Of(const Model& model, const std::string& host, Column column) const {
    const Node* node = model.Find(host);
    return node == nullptr ? kNoValue : node->values[IndexOf(column)];
  }
  // CPU of each node, by its number.
  void Cpu(std::map<std::string, double> of) {
    step.value = [of = std::move(of)](std::string_view metric, const std::string& host,
                                      int task) -> std::optional<double> {
      const auto at = of.find(host);
      if (at == of.end()) return TopStep::Usual(metric, task);
      if (std::isnan(at->second)) return std::nullopt;
      return metric == "task_cpu_seconds_total" ? at->second : TopStep::Usual(metric, task);
    };
  }

  TopStep step{4};
  View view;
};

TEST_F(TopModel, AsksForAllNodesTogether) {
  Model model("4711.0", 0);
  step.Run(model, view, kNow);
  EXPECT_EQ(step.Count(Kind::kProfile), 1u);
  EXPECT_EQ(step.Count(Kind::kLimits), 1u);
  EXPECT_EQ(step.Count(Kind::kTotals), 0u) << "it is what the nodes have";
  EXPECT_EQ(step.Count(Kind::kRows), 1u);
  EXPECT_EQ(step.Count(Kind::kAlarms), 1u);
  EXPECT_THAT(step.asked, SizeIs(4));
  EXPECT_THAT(model.Due(view, 0, kNow + kSecond / 2), IsEmpty()) << "not before the next sample";
  EXPECT_THAT(model.Due(view, 0, kNow + kSecond), SizeIs(2)) << "rows and alarms";
}

TEST_F(TopModel, AsksAsOftenAsTheStepSamplesButNotMoreThanOnceASecond) {
  step.profile.job.period = 5 * kSecond;
  Model slow("4711.0", 0);
  step.Run(slow, view, kNow);
  EXPECT_EQ(slow.interval(), 5 * kSecond);
  step.profile.job.period = 100 * kMillisecond;
  Model fast("4711.0", 0);
  step.Run(fast, view, kNow);
  EXPECT_EQ(fast.interval(), kSecond);
  EXPECT_EQ(Model("4711.0", 3 * kSecond).interval(), 3 * kSecond);
}

TEST_F(TopModel, ValuesAreSharesOfWhatTheNodeHas) {
  step.profile.job.environment["SLURM_JOB_CPUS_PER_NODE"] = "2(x3),8";
  Model model("4711.0", 0);
  step.Run(model, view, kNow);
  EXPECT_NEAR(Of(model, "n1", Column::kCpu), 0.97, 1e-9) << "two tasks on two CPUs";
  EXPECT_NEAR(Of(model, "n4", Column::kCpu), 2 * 0.97 / 8, 1e-9);
  EXPECT_NEAR(Of(model, "n1", Column::kMemory), 0.25, 1e-9);
  EXPECT_NEAR(Of(model, "n1", Column::kMpi), 0.05, 1e-9) << "of each task";
  EXPECT_NEAR(Of(model, "n1", Column::kSent), 2.5e6, 1e-3);
  EXPECT_NEAR(model.totals()[IndexOf(Column::kCpu)], 8 * 0.97 / 14, 1e-9);
  EXPECT_NEAR(model.totals()[IndexOf(Column::kMemory)], 0.25, 1e-9);
  EXPECT_NEAR(model.totals()[IndexOf(Column::kSent)], 1e7, 1e-3);
}

TEST_F(TopModel, AGroupsCpusComeBeforeWhatWasAskedFor) {
  step.Has("cgroup_cpuset_cpus");
  step.value = [](std::string_view metric, const std::string&, int task) {
    return metric == "cgroup_cpuset_cpus" ? 4.0 : TopStep::Usual(metric, task);
  };
  step.profile.job.environment["SLURM_JOB_CPUS_PER_NODE"] = "2(x4)";
  Model model("4711.0", 0);
  step.Run(model, view, kNow);
  EXPECT_NEAR(Of(model, "n2", Column::kCpu), 2 * 0.97 / 4, 1e-9);
}

TEST_F(TopModel, WhatIsNotMeasuredIsMissingAndNever0) {
  step.value = [](std::string_view metric, const std::string& host,
                  int task) -> std::optional<double> {
    if (metric == "mpi_wait_seconds_total" && host == "n2") return std::nullopt;
    return TopStep::Usual(metric, task);
  };
  Model model("4711.0", 0);
  step.Run(model, view, kNow);
  EXPECT_TRUE(std::isnan(Of(model, "n2", Column::kMpi)));
  EXPECT_FALSE(std::isnan(Of(model, "n1", Column::kMpi)));
  EXPECT_EQ(Of(model, "n1", Column::kRead), 0) << "measured, and nothing was read";
  EXPECT_EQ(ValueOf(Column::kMpi, kNoValue), "-");
  EXPECT_EQ(ValueOf(Column::kRead, 0), "0");
  for (const Column column : model.columns()) {
    EXPECT_NE(column, Column::kGpu) << "the step has none";
  }
}

TEST_F(TopModel, TheWholeIsThatOfTheNodesThatGaveValues) {
  Cpu({{"n3", kNoValue}});
  Model model("4711.0", 0);
  step.Run(model, view, kNow);
  EXPECT_NEAR(model.totals()[IndexOf(Column::kCpu)], 0.97, 1e-9) << "not three of four";
  EXPECT_NEAR(model.totals()[IndexOf(Column::kMpi)], 0.05, 1e-9);
  EXPECT_NEAR(model.totals()[IndexOf(Column::kSent)], 7.5e6, 1e-3);
}

TEST_F(TopModel, ANodeWithoutValuesIsMarkedWithTheTimeOfItsLastOne) {
  Model model("4711.0", 0);
  step.Run(model, view, kNow);
  Cpu({{"n3", kNoValue}});
  step.Run(model, view, kNow + kSecond);
  const Node* node = model.Find("n3");
  ASSERT_NE(node, nullptr);
  EXPECT_TRUE(node->silent);
  EXPECT_EQ(node->newest, kNow);
  EXPECT_TRUE(std::isnan(Of(model, "n3", Column::kCpu)));
  EXPECT_EQ(step.Count(Kind::kSilent), 0u) << "its last value is known";
  EXPECT_EQ(Names(model).front(), "n3") << "worse than any that gives values";
  Cpu({});
  step.Run(model, view, kNow + 2 * kSecond);
  EXPECT_FALSE(model.Find("n3")->silent);
}

TEST_F(TopModel, WhenANodeFellSilentBeforeIsAskedOnce) {
  step.value = [](std::string_view metric, const std::string& host,
                  int task) -> std::optional<double> {
    if (host == "n3" && metric != "sonde_samples_total") return std::nullopt;
    return TopStep::Usual(metric, task);
  };
  Model model("4711.0", 0);
  step.Run(model, view, kNow);
  step.Run(model, view, kNow + kSecond);
  EXPECT_EQ(step.Count(Kind::kSilent), 1u);
  EXPECT_TRUE(model.Find("n3")->silent);
  EXPECT_EQ(model.Find("n3")->newest, kNow);
}

TEST_F(TopModel, SortsTheWorstFirst) {
  Cpu({{"n1", 0.5}, {"n2", 0.9}, {"n3", 0.1}, {"n4", 0.7}});
  Model model("4711.0", 0);
  step.Run(model, view, kNow);
  EXPECT_THAT(Names(model), ElementsAre("n3", "n1", "n4", "n2"));
  view.reversed = true;
  EXPECT_THAT(Names(model), ElementsAre("n2", "n4", "n1", "n3"));
  view.reversed = false;
  view.by_name = true;
  EXPECT_THAT(Names(model), ElementsAre("n1", "n2", "n3", "n4"));
  view.by_name = false;
  view.sort = Column::kMemory;
  EXPECT_THAT(Names(model), ElementsAre("n1", "n2", "n3", "n4")) << "equal ones keep their order";
}

TEST_F(TopModel, WhatDiffersInNoDigitShownKeepsItsPlace) {
  Cpu({{"n1", 0.9702}, {"n2", 0.9701}, {"n3", 0.9703}, {"n4", 0.9704}});
  Model model("4711.0", 0);
  step.Run(model, view, kNow);
  EXPECT_THAT(Names(model), ElementsAre("n1", "n2", "n3", "n4"));
}

TEST_F(TopModel, ShowsNodesWhoseNamesContainATextAndTakesItBack) {
  Model model("4711.0", 0);
  step.Run(model, view, kNow);
  Press(Pressed('/'), model, view);
  Press(Pressed('n'), model, view);
  Press(Pressed('3'), model, view);
  EXPECT_THAT(Names(model), ElementsAre("n3"));
  Press(Pressed(Key::Kind::kEnter), model, view);
  EXPECT_FALSE(view.typing);
  EXPECT_TRUE(Press(Pressed('q'), model, view) == false) << "q is a key again";
  Press(Pressed(Key::Kind::kBack), model, view);
  EXPECT_THAT(Names(model), SizeIs(4));
}

TEST_F(TopModel, GoesDownToRanksAndCoresAndBack) {
  Model model("4711.0", 0);
  step.Run(model, view, kNow);
  Press(Pressed(Key::Kind::kDown), model, view);
  Press(Pressed(Key::Kind::kDown), model, view);
  EXPECT_EQ(view.cursor, "n2");
  Press(Pressed(Key::Kind::kEnter), model, view);
  EXPECT_EQ(view.level, Level::kRanks);
  step.Run(model, view, kNow);
  EXPECT_EQ(step.Count(Kind::kRanks), 1u) << "at once, not at the next sample";
  EXPECT_THAT(Names(model), ElementsAre("2", "3"));
  EXPECT_NEAR(model.ranks()[0].values[IndexOf(Column::kCpu)], 0.97, 1e-9);
  EXPECT_EQ(model.ranks()[1].core, 3);

  Press(Pressed(Key::Kind::kDown), model, view);
  Press(Pressed(Key::Kind::kEnter), model, view);
  EXPECT_EQ(view.level, Level::kCores);
  EXPECT_EQ(view.rank, "2");
  step.Run(model, view, kNow);
  EXPECT_THAT(Names(model), ElementsAre("2", "3")) << "cores that ranks were on";
  EXPECT_TRUE(std::isnan(model.cores()[0].busy)) << "below level 4 nobody measured it";

  Press(Pressed(Key::Kind::kBack), model, view);
  EXPECT_EQ(view.cursor, "2");
  Press(Pressed(Key::Kind::kBack), model, view);
  EXPECT_EQ(view.level, Level::kNodes);
  EXPECT_EQ(view.cursor, "n2");
}

TEST_F(TopModel, CoresAreMeasuredAtLevel4) {
  step.profile.job.level = 4;
  step.Has("node_cpu_core_seconds_total");
  step.value = [](std::string_view metric, const std::string&, int task) {
    if (metric == "task_processor") return std::optional<double>(1.0);
    return metric == "node_cpu_core_seconds_total" ? 1.0 : TopStep::Usual(metric, task);
  };
  Model model("4711.0", 0);
  view.level = Level::kCores;
  view.host = "n1";
  view.rank = "0";
  step.Run(model, view, kNow);
  ASSERT_THAT(model.cores(), SizeIs(2));
  EXPECT_NEAR(model.cores()[0].busy, 0.25, 1e-9);
  EXPECT_THAT(model.cores()[0].ranks, IsEmpty());
  EXPECT_NEAR(model.cores()[1].busy, 1, 1e-9);
  EXPECT_THAT(model.cores()[1].ranks, SizeIs(2)) << "both ranks share it";
}

TEST_F(TopModel, OfALargeStepOnlyWhatIsShownIsAsked) {
  TopStep large(10'000);
  Model model("4711.0", 0);
  view.page = 30;
  large.Run(model, view, kNow);
  large.asked.clear();
  for (int second = 1; second <= 10; ++second) large.Run(model, view, kNow + second * kSecond);
  EXPECT_EQ(large.Count(Kind::kTotals), 10u);
  EXPECT_EQ(large.Count(Kind::kRows), 10u);
  EXPECT_LE(large.Count(Kind::kOrder), 1u) << "all nodes, once in eleven seconds";
  EXPECT_LE(large.asked.size(), 10u * 3 + 2);
  for (const Ask& ask : large.asked) {
    if (ask.kind == Kind::kRows) {
      EXPECT_THAT(ask.hosts, SizeIs(34)) << "a page and four more";
    }
  }
}

// "n777 CPU 1 % (median 97 %)", or that nobody does.
std::string Verdict(const Model& model, const View& view, Nanos now) {
  std::string text;
  for (const Parts& line : HeadLines(model, view, {200, 24, true, now, false})) {
    for (const Part& part : line) text += part.text;
    text += "\n";
  }
  return text;
}

TEST_F(TopModel, WhoStandsOutInALargeStepIsFoundInColumnsThatDoNotSort) {
  TopStep large(200);
  large.value = [](std::string_view metric, const std::string& host, int task) {
    if (host == "n150" && metric == "task_resident_memory_bytes") return std::optional(1e9);
    if (host == "n151" && metric == "mpi_wait_seconds_total") return std::optional(0.9);
    return TopStep::Usual(metric, task);
  };
  Model model("4711.0", 0);
  Nanos now = kNow;
  large.Run(model, view, now);
  for (int tick = 0; tick < 3; ++tick) large.Run(model, view, now += kSecond);
  const std::string verdict = Verdict(model, view, now);
  EXPECT_THAT(verdict, HasSubstr("n150 memory 93 %"));
  EXPECT_THAT(verdict, HasSubstr("n151 MPI wait 90 %"));
}

TEST_F(TopModel, ALargeStepsVerdictNamesTheColumnsItIsAbout) {
  TopStep large(200);
  Model model("4711.0", 0);
  std::vector<std::string> verdicts;
  for (int tick = 0; tick < 6; ++tick) {
    const Nanos now = kNow + tick * kSecond;
    large.Run(model, view, now);
    verdicts.push_back(Verdict(model, view, now));
  }
  EXPECT_THAT(verdicts[0], HasSubstr("no node stands out by CPU and memory\n"));
  for (size_t i = 1; i < verdicts.size(); ++i) {
    EXPECT_THAT(verdicts[i], HasSubstr("no node stands out\n")) << i;
  }
}

TEST_F(TopModel, ALargeStepIsJudgedByThePresentHoweverItsRowsAreShown) {
  TopStep large(200);
  Model model("4711.0", 0);
  Nanos now = kNow;
  for (const char* how : {"by name", "a filter that matches nothing", "by what is received"}) {
    view = {};
    view.by_name = how == std::string_view("by name");
    view.filter = how == std::string_view("a filter that matches nothing") ? "x" : "";
    if (how == std::string_view("by what is received")) view.sort = Column::kReceived;
    large.value = [](std::string_view metric, const std::string&, int task) {
      return TopStep::Usual(metric, task);
    };
    for (int tick = 0; tick < 9; ++tick) large.Run(model, view, now += kSecond);
    EXPECT_THAT(Verdict(model, view, now), HasSubstr("no node stands out\n")) << how;
    large.value = [](std::string_view metric, const std::string& host,
                     int task) -> std::optional<double> {
      if (host == "n140") return std::nullopt;
      if (host == "n150" && metric == "task_cpu_seconds_total") return 0.05;
      return TopStep::Usual(metric, task);
    };
    for (int tick = 0; tick < 9; ++tick) large.Run(model, view, now += kSecond);
    EXPECT_THAT(Verdict(model, view, now), HasSubstr("n150 CPU 5 %")) << how;
    EXPECT_THAT(Verdict(model, view, now), HasSubstr("1 node without values")) << how;
  }
}

TEST_F(TopModel, ALargeStepsVerdictLapsesWhileItsNodesAreNotAsked) {
  TopStep large(200);
  Model model("4711.0", 0);
  Nanos now = kNow;
  for (int tick = 0; tick < 6; ++tick) large.Run(model, view, now += kSecond);
  EXPECT_THAT(Verdict(model, view, now), HasSubstr("no node stands out\n"));
  View opened = view;
  opened.level = Level::kRanks;
  opened.host = "n1";
  for (int tick = 0; tick < 60; ++tick) large.Run(model, opened, now += kSecond);
  EXPECT_THAT(Verdict(model, view, now), Not(HasSubstr("stands out")));
  large.Run(model, view, now += kSecond);
  EXPECT_THAT(Verdict(model, view, now), HasSubstr("no node stands out by CPU"));
}

TEST_F(TopModel, TheWorstOfALargeStepIsShownFirst) {
  TopStep large(1000);
  large.value = [](std::string_view metric, const std::string& host, int task) {
    return metric == "task_cpu_seconds_total" && host == "n777" ? 0.01
                                                                : TopStep::Usual(metric, task);
  };
  Model model("4711.0", 0);
  large.Run(model, view, kNow);
  EXPECT_EQ(Names(model).front(), "n777");
  large.asked.clear();
  large.Run(model, view, kNow + 5 * kSecond);
  bool asked = false;
  for (const Ask& ask : large.asked) {
    if (ask.kind != Kind::kRows) continue;
    asked = std::find(ask.hosts.begin(), ask.hosts.end(), "n777") != ask.hosts.end();
  }
  EXPECT_TRUE(asked);
}

TEST_F(TopModel, ScrollingALargeStepAsksBeforeTheNextSample) {
  TopStep large(1000);
  Model model("4711.0", 0);
  large.Run(model, view, kNow);
  view.top = 500;
  EXPECT_THAT(model.Due(view, 0, kNow + 100 * kMillisecond), IsEmpty());
  EXPECT_THAT(model.Due(view, 0, kNow + 300 * kMillisecond), Not(IsEmpty()));
}

TEST_F(TopModel, SaysSinceWhenTheHeadIsSilentAndKeepsWhatIsKnown) {
  Model model("4711.0", 0);
  step.Run(model, view, kNow);
  step.failure = Status(Code::kUnavailable, "ask the head at n1:4242: refused");
  step.Run(model, view, kNow + kSecond);
  step.Run(model, view, kNow + 2 * kSecond);
  EXPECT_EQ(model.silent_since(), kNow + kSecond);
  EXPECT_THAT(model.problem(), HasSubstr("refused"));
  EXPECT_FALSE(std::isnan(Of(model, "n1", Column::kCpu)));
  step.failure = {};
  step.Run(model, view, kNow + 3 * kSecond);
  EXPECT_EQ(model.silent_since(), 0);
}

TEST_F(TopModel, AsksNothingMoreOfAStepThatHasEnded) {
  Model model("4711.0", 0);
  step.Run(model, view, kNow);
  JobDescription job = step.profile.job;
  job.state = EndState::kFailed;
  job.end = kNow + kSecond;
  model.End(job, kNow + 2 * kSecond);
  EXPECT_TRUE(model.ended());
  EXPECT_THAT(model.Due(view, 100, kNow + 100 * kSecond), IsEmpty());
  EXPECT_FALSE(std::isnan(Of(model, "n1", Column::kCpu))) << "the last values stay";
}

TEST_F(TopModel, WhatAHeadSaysWronglyIsAProblemAndNoCrash) {
  for (const std::string_view text :
       {"", "nonsense", "{}", "[1]", "[{\"metric\":1}]", "[{\"dps\":{}}]",
        "[{\"metric\":\"task_cpu_seconds_total\",\"tags\":7,\"dps\":[[1],[\"a\",2],[1e300,3],[-5,1]"
        "]}]",
        "[{\"metric\":\"task_cpu_seconds_total\",\"tags\":{\"host\":\"nobody\",\"task\":"
        "\"99999999999\"},"
        "\"dps\":[[1799999999000,null],[1799999999000,0.5]]}]"}) {
    Model model("4711.0", 0);
    step.Run(model, view, kNow);
    for (size_t kind = 0; kind < Ask::kKinds; ++kind) {
      Ask ask;
      ask.kind = static_cast<Kind>(kind);
      ask.hosts = {"n1"};
      model.Take(ask, std::string(text), kNow);
      EXPECT_FALSE(std::isinf(model.totals()[0]));
    }
  }
}

TEST_F(TopModel, ANameThatWouldAskForOtherNodesIsNotAsked) {
  TopStep large(200);
  large.profile.job.nodes[0].host = "n2|n3";
  Model model("4711.0", 0);
  view.by_name = true;
  large.Run(model, view, kNow);
  for (const Ask& ask : large.asked) {
    for (const std::string& host : ask.hosts) EXPECT_THAT(host, Not(HasSubstr("|")));
  }
}

TEST_F(TopModel, OfSamplesCloserThanASecondTheRunningSecondDoesNotCount) {
  step.profile.job.period = 100 * kMillisecond;
  Model model("4711.0", 0);
  step.Run(model, view, kNow);
  Ask rows;
  rows.kind = Kind::kRows;
  rows.hosts = {"n1"};
  model.Take(rows,
             std::string("[{\"metric\":\"task_cpu_seconds_total\",\"tags\":{\"host\":\"n1\"},"
                         "\"dps\":[[1800000058000,1.0],[1800000059000,0.2]]}]"),
             kNow);
  EXPECT_NEAR(Of(model, "n1", Column::kCpu), 0.5, 1e-9) << "1.0 of two CPUs";
}

TEST_F(TopModel, ASeriesIsAskedForWhatIsUnderTheCursor) {
  Model model("4711.0", 0);
  step.Run(model, view, kNow);
  step.over_time = [](Nanos) { return 1.0; };
  view.plot = true;
  step.Run(model, view, kNow, 100);
  EXPECT_EQ(model.series().host, "");
  EXPECT_THAT(model.series().points, Not(IsEmpty()));
  Press(Pressed(Key::Kind::kDown), model, view);
  step.Run(model, view, kNow, 100);
  EXPECT_EQ(model.series().host, "n1");
  EXPECT_NEAR(model.series().points.back().second, 0.5, 1e-9) << "1.0 of two CPUs";
  const size_t count = step.Count(Kind::kSeries);
  step.Run(model, view, kNow + kSecond / 2, 100);
  EXPECT_EQ(step.Count(Kind::kSeries), count) << "not before there can be a new point";
}

TEST_F(TopModel, AlarmsAreThoseThatAreRaised) {
  step.alarms =
      R"({"main":[{"name":"hog","active":true,"severity":"critical","text":"too much",)"
      R"("node":"n2","rank":3,"since":1800000030000000000},{"name":"calm","active":false}]})";
  Model model("4711.0", 0);
  step.Run(model, view, kNow);
  ASSERT_THAT(model.alarms(), SizeIs(1));
  EXPECT_EQ(model.alarms()[0].node, "n2");
  EXPECT_EQ(model.alarms()[0].rank, "3");
}

}  // namespace
}  // namespace sonde::cli::top::cli_top_model_test
