// The time budget of steps in an archive, and the command that shows it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <cmath>
#include <limits>
#include <tuple>

#include "insight/steps/step_budget.h"
#include "profiles/archive/open_archive.h"
#include "tests/unit/insight_step.h"
#include "tests/unit/sonde_command.h"

namespace sonde::insight {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

constexpr double kNothing = std::numeric_limits<double>::quiet_NaN();

Tags WithClass(const char* name) { return {{"class", name}, {"task", "0"}}; }

class StepBudgets : public testing::Test {
 protected:
  Outcome Sonde(const std::string& arguments, const std::string& environment = "") {
    return RunSonde(dir_.path(), arguments, environment);
  }
  // Words, however they are broken into lines.
  static std::string Words(const Outcome& outcome) {
    std::string words;
    for (const char c : outcome.out) {
      const char next = c == '\n' ? ' ' : c;
      if (next != ' ' || (!words.empty() && words.back() != ' ')) words += next;
    }
    return words;
  }
  boost::json::value Json() {
    const Outcome outcome = Sonde("budget --json 123.0");
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return boost::json::parse(outcome.out);
  }
  std::string root() const { return dir_.path() + "/archive"; }

  TempDir dir_{TempDir::Memory()};
};

double Share(const boost::json::value& of, const char* kind) {
  const auto& share = of.at("shares").at(kind);
  return share.is_null() ? kNothing : share.to_number<double>();
}

// Rank 3 computes for the first 90 ticks and the others for 60; then they wait for rank 3 in one
// receive that lasts until tick 90, in which they poll. Then all write for 12 ticks, half of it in
// the kernel, move data in an allreduce for 12 ticks, and sleep for the last 6.
void AddTasks(StepOf& step) {
  const auto waits = [](uint32_t rank, int tick) { return rank != 3 && tick > 60 && tick <= 90; };
  const auto writes = [](int tick) { return tick > 90 && tick <= 102; };
  const auto reduces = [](int tick) { return tick > 102 && tick <= 114; };
  step.Counter("task", "task_cpu_seconds_total", kUserTask, [=](uint32_t rank, int tick) {
    return tick <= 90 || reduces(tick) ? (waits(rank, tick) ? 0.8 : 1) : 0;
  });
  step.Counter("task", "task_cpu_seconds_total", {{"mode", "system"}, {"task", "0"}},
               [=](uint32_t rank, int tick) {
                 return writes(tick) ? 0.5 : waits(rank, tick) ? 0.2 : 0;
               });
  const auto receive = [](uint32_t rank, int tick) {
    if (rank == 3 || tick < 90) return kNothing;  // no call was counted yet
    return tick == 90 ? 30.0 : 0;
  };
  step.Counter("app", "mpi_seconds_total", WithClass("p2p"), receive);
  step.Counter("app", "mpi_wait_seconds_total", WithClass("p2p"), receive);
  step.Counter("app", "mpi_seconds_total", WithClass("collective"),
               [=](uint32_t, int tick) { return reduces(tick) ? 1.0 : 0; });
  step.Counter("app", "mpi_calls_total", WithClass("collective"),
               [=](uint32_t, int tick) { return reduces(tick) ? 100.0 : 0; });
  step.Counter("app", "io_seconds_total", {{"operation", "write"}, {"task", "0"}},
               [=](uint32_t, int tick) { return writes(tick) ? 1.0 : 0; });
}

TEST_F(StepBudgets, EachPartIsWhatTheTasksDid) {
  StepOf step(4);
  AddTasks(step);
  step.Write(root());
  const auto json = Json();
  const auto& ranks = json.at("ranks").as_array();
  ASSERT_EQ(ranks.size(), 4u);
  // The first tick has no rate.
  for (const auto& rank : ranks) {
    const bool late = rank.at("rank").to_number<int>() == 3;
    EXPECT_NEAR(rank.at("cpu_seconds").to_number<double>(), 119, 0.01);
    EXPECT_NEAR(Share(rank, "computing"), (late ? 89 : 59) / 119.0, 0.003);
    EXPECT_NEAR(Share(rank, "mpi_waiting"), (late ? 0 : 30) / 119.0, 0.003);
    EXPECT_NEAR(Share(rank, "mpi_moving"), 12 / 119.0, 0.003);
    EXPECT_NEAR(Share(rank, "io"), 12 / 119.0, 0.003);
    EXPECT_NEAR(Share(rank, "idle"), 6 / 119.0, 0.003);
    EXPECT_TRUE(rank.at("mpi_polls").as_bool());
  }
  const auto& whole = json.at("whole");
  EXPECT_NEAR(Share(whole, "mpi_waiting"), 90 / (4 * 119.0), 0.003);
  EXPECT_TRUE(std::isnan(Share(whole, "gpu_waiting")));
  EXPECT_TRUE(std::isnan(Share(whole, "stolen")));
  EXPECT_NEAR(whole.at("efficiency").at("load_balance").to_number<double>(),
              (3 * 59 + 89) / (4 * 89.0), 0.003);
  EXPECT_NEAR(whole.at("efficiency").at("communication").to_number<double>(), 89 / 119.0, 0.003);
  EXPECT_EQ(json.at("nodes").as_array().size(), 4u);
  EXPECT_TRUE(json.at("collectives_split").as_bool());
  // Found phases: the end of the work, and the wait where the time in MPI shows.
  EXPECT_FALSE(json.at("phases_told").as_bool());
}

TEST_F(StepBudgets, TheTextHasABarPhasesAndWhoStandsOut) {
  StepOf step(4);
  AddTasks(step);
  for (const auto& [name, begin, end] :
       {std::tuple{"solve", 0, 90}, std::tuple{"write", 90, 102}, std::tuple{"reduce", 102, 114}}) {
    Phase& phase = step.moments.phases.emplace_back();
    phase.name = name;
    phase.begin = step.job.start + begin * kSecond;
    phase.end = step.job.start + end * kSecond;
  }
  step.Write(root());
  const Outcome text = Sonde("budget 123");
  EXPECT_EQ(text.code, 0) << text.err;
  EXPECT_THAT(text.out,
              AllOf(HasSubstr("\u2588\u2588\u2588"), HasSubstr("waiting in MPI"),
                    HasSubstr("calls of MPI counted by libsonde-mpi"),
                    HasSubstr("Phases that the application told"),
                    HasSubstr("most computing: rank 3 on n3 75 %"),
                    HasSubstr("parallel efficiency"), Not(HasSubstr("is not known: run with"))));
  // 80 columns, in ASCII too.
  const Outcome ascii = Sonde("budget 123", "LC_ALL=C");
  const size_t bar = ascii.out.find("####");
  ASSERT_NE(bar, std::string::npos) << ascii.out;
  EXPECT_EQ(ascii.out.find('\n', bar) - bar, 80u) << ascii.out;
  EXPECT_EQ(ascii.out.find("\u2588"), std::string::npos);
  EXPECT_THAT(Sonde("budget --by node 123").out, AllOf(HasSubstr("node"), HasSubstr("n3")));
  EXPECT_THAT(Sonde("budget --by rank 123").out, AllOf(HasSubstr("MPI polls"), HasSubstr("yes")));
  EXPECT_EQ(Sonde("budget --by job 123").code, 2);
  const auto json = Json();
  const auto& phases = json.at("phases").as_array();
  ASSERT_EQ(phases.size(), 3u);
  EXPECT_TRUE(json.at("phases_told").as_bool());
  EXPECT_NEAR(Share(phases[0], "mpi_waiting"), 90 / (4 * 89.0), 0.003);
  EXPECT_NEAR(Share(phases[1], "io"), 1, 0.003);
  EXPECT_NEAR(Share(phases[2], "mpi_moving"), 1, 0.003);
  EXPECT_NEAR(phases[1].at("seconds").to_number<double>(), 12, 1e-9);
}

TEST_F(StepBudgets, WithoutCountedCallsItSaysHowToKnow) {
  StepOf step(2);
  step.job.environment["SLURM_CPUS_PER_TASK"] = "4";
  step.Counter("task", "task_cpu_seconds_total", kUserTask, [](uint32_t, int) { return 2; });
  step.Gauge("task", "task_processes_blocked", kTask,
             [](uint32_t, int tick) { return tick % 4 == 0 ? 1 : 0; });
  step.Write(root());
  const auto json = Json();
  const auto& whole = json.at("whole");
  EXPECT_NEAR(Share(whole, "computing"), 0.5, 1e-6);
  EXPECT_NEAR(Share(whole, "io"), 0.25 / 4, 0.002);
  EXPECT_TRUE(std::isnan(Share(whole, "mpi_waiting")));
  EXPECT_TRUE(whole.at("efficiency").at("parallel").is_null());
  EXPECT_EQ(json.at("cpus_of_task").to_number<double>(), 4);
  EXPECT_EQ(json.at("kinds").as_array().at(1).at("certainty").as_string(), "unknown");
  EXPECT_THAT(Words(Sonde("budget 123")),
              AllOf(HasSubstr("time in MPI is not known: run with --telemetry-mpi"),
                    HasSubstr("samples of process states"), HasSubstr("4 CPUs a task"),
                    Not(HasSubstr("parallel efficiency"))));
}

TEST_F(StepBudgets, WhatIsKnownOfNodesIsDividedAmongTheirTasks) {
  StepOf step(2);
  step.Counter("task", "task_cpu_seconds_total", kUserTask, [](uint32_t, int) { return 0.5; });
  // Half of what the node's CPUs do is the task's, and so is half of what the host took.
  step.Counter("os", "node_cpu_seconds_total", {{"mode", "user"}}, [](uint32_t, int) { return 1; });
  step.Counter("os", "node_cpu_seconds_total", {{"mode", "steal"}},
               [](uint32_t node, int) { return node == 0 ? 0.2 : 0; });
  // The limit is part of the pressure.
  step.Counter("cgroup", "cgroup_cpu_throttled_seconds_total", {},
               [](uint32_t, int) { return 0.04; });
  step.Counter("cgroup", "cgroup_pressure_cpu_waiting_seconds_total", {},
               [](uint32_t, int) { return 0.06; });
  // One of two GPUs of the node is busy.
  step.Gauge("gpu", "gpu_utilization_ratio", {{"gpu", "0"}}, [](uint32_t, int) { return 0.4; });
  step.Gauge("gpu", "gpu_utilization_ratio", {{"gpu", "1"}}, [](uint32_t, int) { return 0; });
  // Of the step itself it is known how long it waited.
  step.Counter("os", "node_pressure_cpu_waiting_seconds_total", {},
               [](uint32_t, int) { return 0.9; });
  step.Write(root());
  const auto json = Json();
  const auto& ranks = json.at("ranks").as_array();
  EXPECT_NEAR(Share(ranks[0], "stolen"), 0.1 + 0.06, 1e-6);
  EXPECT_NEAR(Share(ranks[1], "stolen"), 0.06, 1e-6);
  EXPECT_NEAR(Share(ranks[1], "gpu_waiting"), 0.2, 1e-6);
  EXPECT_NEAR(Share(ranks[1], "idle"), 1 - 0.5 - 0.06 - 0.2, 1e-6);
}

TEST_F(StepBudgets, PressureOfTheNodeIsTheTasksByItsPartOfTheWork) {
  StepOf step(2);
  step.Counter("task", "task_cpu_seconds_total", kUserTask, [](uint32_t, int) { return 0.5; });
  step.Counter("os", "node_cpu_seconds_total", {{"mode", "user"}}, [](uint32_t, int) { return 2; });
  step.Counter("os", "node_pressure_cpu_waiting_seconds_total", {},
               [](uint32_t, int) { return 0.4; });
  step.Write(root());
  EXPECT_NEAR(Share(Json().at("whole"), "stolen"), 0.1, 1e-6);
  EXPECT_THAT(Words(Sonde("budget 123")), HasSubstr("pressure of the whole node"));
}

TEST_F(StepBudgets, WhoComesLastToCollectivesDoesNotWait) {
  StepOf step(2);
  step.Counter("task", "task_cpu_seconds_total", kUserTask, [](uint32_t, int) { return 1; });
  // A barrier, of which rank 0 waits 0.2 s each second, and others, of which both move for 0.2 s.
  step.Counter("app", "mpi_seconds_total", WithClass("collective"),
               [](uint32_t rank, int) { return rank == 0 ? 0.8 : 0.2; });
  step.Counter("app", "mpi_seconds_total", WithClass("p2p"), [](uint32_t, int) { return 0.1; });
  step.Counter("app", "mpi_wait_seconds_total", WithClass("collective"),
               [](uint32_t rank, int) { return rank == 0 ? 0.2 : 0; });
  step.Counter("app", "mpi_calls_total", WithClass("collective"), [](uint32_t, int) { return 20; });
  step.Write(root());
  const auto json = Json();
  const auto& ranks = json.at("ranks").as_array();
  EXPECT_NEAR(Share(ranks[0], "mpi_waiting"), 0.6, 1e-6);
  EXPECT_NEAR(Share(ranks[0], "mpi_moving"), 0.3, 1e-6);
  EXPECT_NEAR(Share(ranks[1], "mpi_waiting"), 0, 1e-6);
  EXPECT_NEAR(Share(ranks[1], "mpi_moving"), 0.3, 1e-6);
  // Rank 0 waits for it, in barriers and others; the first tick has no rate.
  EXPECT_EQ(ranks[0].at("awaited_seconds").to_number<double>(), 0);
  EXPECT_NEAR(ranks[1].at("awaited_seconds").to_number<double>(), 0.6 * kStepTicks, 6.1);
  EXPECT_THAT(Words(Sonde("budget 123")),
              HasSubstr("awaited by the others in collectives: rank 1 on n1 "));
  EXPECT_THAT(Sonde("budget --by rank 123").out,
              AllOf(HasSubstr("awaited"), Not(HasSubstr("in receives"))));
  EXPECT_TRUE(ranks[1].at("awaited_in_receives_seconds").is_null());
}

TEST_F(StepBudgets, ReceivesThatNameWhomTheyWaitForTellIt) {
  StepOf step(4);
  AddTasks(step);
  step.Counter("app", "mpi_peer_wait_seconds_total", {{"peer", "3"}, {"task", "0"}},
               [](uint32_t rank, int tick) {
                 if (rank == 3 || tick < 90) return kNothing;
                 return tick == 90 ? 30.0 : 0;
               });
  step.Write(root());
  const auto json = Json();
  const auto& ranks = json.at("ranks").as_array();
  EXPECT_EQ(ranks[0].at("awaited_in_receives_seconds").to_number<double>(), 0);
  EXPECT_NEAR(ranks[3].at("awaited_in_receives_seconds").to_number<double>(), 3 * 30, 1e-6);
  EXPECT_THAT(Words(Sonde("budget 123")),
              HasSubstr("awaited by the others in receives: rank 3 on n3 1 min 30 s"));
  EXPECT_THAT(Sonde("budget --by rank 123").out, HasSubstr("in receives"));
}

TEST_F(StepBudgets, WhoIsAwaitedChangesWithTheWindow) {
  // 1 s ticks: for 60 s rank 0 comes last, then rank 2, each 0.3 s a second later than the others.
  StepOf step(3);
  step.Counter("task", "task_cpu_seconds_total", kUserTask, [](uint32_t, int) { return 1; });
  step.Counter("app", "mpi_seconds_total", WithClass("collective"),
               [](uint32_t rank, int tick) { return rank == (tick <= 60 ? 0U : 2U) ? 0.1 : 0.4; });
  step.Counter("app", "mpi_calls_total", WithClass("collective"), [](uint32_t, int) { return 20; });
  step.Write(root());
  const auto json = Json();
  const auto& ranks = json.at("ranks").as_array();
  const auto awaited = [&](size_t rank) {
    return ranks[rank].at("awaited_seconds").to_number<double>();
  };
  EXPECT_NEAR(awaited(0), 0.6 * 60, 6.1);
  EXPECT_EQ(awaited(1), 0);
  EXPECT_NEAR(awaited(2), 0.6 * (kStepTicks - 60), 6.1);
}

TEST_F(StepBudgets, CollectivesOfSomeRanksAreNotToldApart) {
  StepOf step(2);
  step.Counter("task", "task_cpu_seconds_total", kUserTask, [](uint32_t, int) { return 1; });
  step.Counter("app", "mpi_seconds_total", WithClass("collective"),
               [](uint32_t rank, int) { return rank == 0 ? 0.5 : 0.1; });
  step.Counter("app", "mpi_calls_total", WithClass("collective"),
               [](uint32_t rank, int) { return rank == 0 ? 50 : 10; });
  step.Write(root());
  const auto json = Json();
  EXPECT_FALSE(json.at("collectives_split").as_bool());
  EXPECT_TRUE(json.at("ranks").as_array()[1].at("awaited_seconds").is_null());
  EXPECT_NEAR(Share(json.at("ranks").as_array()[0], "mpi_moving"), 0.5, 1e-3);
  EXPECT_NEAR(Share(json.at("ranks").as_array()[0], "mpi_waiting"), 0, 1e-9);
  EXPECT_THAT(Words(Sonde("budget 123")), HasSubstr("not all ranks take part in all collectives"));
}

TEST_F(StepBudgets, RanksWhoseCallsWereNotCountedAreNamed) {
  StepOf step(3);
  step.Counter("task", "task_cpu_seconds_total", kUserTask, [](uint32_t, int) { return 1; });
  step.Counter("app", "mpi_seconds_total", WithClass("p2p"),
               [](uint32_t rank, int) { return rank == 1 ? kNothing : 0.25; });
  step.Write(root());
  const auto json = Json();
  EXPECT_EQ(json.at("ranks_without_mpi").to_number<int>(), 1);
  EXPECT_NEAR(Share(json.at("ranks").as_array()[1], "computing"), 1, 1e-6);
  EXPECT_TRUE(std::isnan(Share(json.at("ranks").as_array()[1], "mpi_moving")));
  EXPECT_TRUE(json.at("whole").at("efficiency").at("parallel").is_null());
  EXPECT_THAT(Words(Sonde("budget 123")), HasSubstr("(of 2 of 3 ranks)"));
}

TEST_F(StepBudgets, MissingTicksAndCountersBegunAnewAreLeftOut) {
  StepOf step(2);
  step.Counter("task", "task_cpu_seconds_total", kUserTask, [](uint32_t rank, int tick) {
    if (rank == 0 && tick > 40 && tick <= 50) return kNothing;  // joined by a line, as a rate
    return tick == 80 ? -60.0 : tick <= 60 ? 1.0 : 0;
  });
  step.Write(root());
  const auto json = Json();
  // Of 119 ticks tick 80 is not known; of rank 0 the 10 missing ones are part of a rate of 1 / 11.
  EXPECT_NEAR(json.at("whole").at("cpu_seconds").to_number<double>(), 2 * 118, 0.01);
  const auto& ranks = json.at("ranks").as_array();
  EXPECT_NEAR(Share(ranks[1], "computing"), 59 / 118.0, 1e-6);
  EXPECT_NEAR(Share(ranks[0], "computing"), 49 / 118.0, 1e-6);
}

TEST_F(StepBudgets, ReadPieceByPieceItIsTheSame) {
  StepOf step(9);
  AddTasks(step);
  step.Write(root());
  const auto archive = OpenArchive(root());
  ASSERT_TRUE(archive.ok()) << archive.status().message();
  const auto found = archive->reader->Find({"123", "0"});
  ASSERT_TRUE(found.ok() && found->size() == 1u);
  const auto profile = archive->reader->Load(found->front().key);
  ASSERT_TRUE(profile.ok());
  const auto at_once = BudgetOf(*archive->reader, found->front().key, *profile);
  // Seven series of 120 ticks, with three numbers each: two nodes at a time.
  const auto pieces = BudgetOf(*archive->reader, found->front().key, *profile, 7 * 120 * 3 * 2);
  ASSERT_TRUE(at_once.ok() && pieces.ok());
  EXPECT_TRUE(pieces->collectives_split);
  EXPECT_EQ(pieces->ranks.size(), 9u);
  EXPECT_EQ(BudgetToJson(*pieces, *profile), BudgetToJson(*at_once, *profile));
}

TEST_F(StepBudgets, OfALargeStepSomeNodesCount) {
  StepOf step(40);
  AddTasks(step);
  step.Write(root());
  const auto archive = OpenArchive(root());
  ASSERT_TRUE(archive.ok()) << archive.status().message();
  const auto found = archive->reader->Find({"123", "0"});
  ASSERT_TRUE(found.ok() && found->size() == 1u);
  const auto profile = archive->reader->Load(found->front().key);
  ASSERT_TRUE(profile.ok());
  const auto some = BudgetOf(*archive->reader, found->front().key, *profile, 7 * 120 * 3 * 2);
  ASSERT_TRUE(some.ok());
  EXPECT_EQ(some->nodes_read, 2 * kMostBudgetGroups);
  EXPECT_EQ(some->ranks.size(), some->nodes_read);
  EXPECT_EQ(some->ranks.front().who.rank, 0u);
  EXPECT_GE(some->ranks.back().who.rank, 37u);  // spread over the step
  const auto all = BudgetOf(*archive->reader, found->front().key, *profile);
  ASSERT_TRUE(all.ok());
  EXPECT_EQ(all->nodes_read, 40u);
}

TEST_F(StepBudgets, WhatIsNotThereIsSaid) {
  EXPECT_EQ(Sonde("budget 77").code, 3);
  EXPECT_EQ(Sonde("budget").code, 2);
  StepOf step(2);
  step.Write(root());
  EXPECT_THAT(Words(Sonde("budget 123")), HasSubstr("no CPU time of tasks"));
}

}  // namespace
}  // namespace sonde::insight
