// sonde model and sonde predict, as their users run them: over an archive of runs whose numbers are
// known.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <boost/json.hpp>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <sstream>

#include "cli/model/queued_job.h"
#include "profiles/live/live_archive.h"
#include "tests/unit/profiles_fixture.h"
#include "tests/unit/sonde_command.h"

namespace sonde::cli_model_test {
namespace {

using boost::json::value;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

struct Recorded {
  uint32_t nodes = 1;
  uint32_t tasks = 1;
  double seconds = 0;
  std::string command = "./heat -t 8";
  UserTags tags = {};
  std::string threads = "";
  EndState state = EndState::kCompleted;
  std::string step = "0";
};

class CliModel : public testing::Test {
 protected:
  Outcome Sonde(const std::string& arguments, const std::string& environment = "") {
    return RunSonde(dir_.path(), arguments, environment);
  }
  value Json(const std::string& arguments, const std::string& environment = "") {
    const Outcome o = Sonde(arguments + " --json", environment);
    EXPECT_EQ(o.code, 0) << o.err;
    return o.code == 0 ? boost::json::parse(o.out) : value();
  }

  // A step of that many nodes; its solver phase takes half of the time, its output none, and each
  // node's memory is 1 GiB and 64 MiB for each node of the step.
  void Record(const Recorded& run) {
    ++job_;
    JobDescription job = TestJob(std::to_string(job_), kTestStart + job_ * 3600 * kSecond);
    job.id.step = run.step;
    job.command = run.command;
    job.name = run.command.substr(2, run.command.find(' ') - 2);
    job.expected_nodes = run.nodes;
    job.expected_tasks = run.tasks;
    job.tags = run.tags;
    if (!run.threads.empty()) job.environment["OMP_NUM_THREADS"] = run.threads;
    auto live = LiveArchive::Create(dir_.path() + "/archive", job);
    ASSERT_TRUE(live.ok()) << live.status().message();
    Profile profile;
    profile.job = job;
    profile.job.state = run.state;
    profile.job.end = job.start + static_cast<Nanos>(run.seconds * kSecond);
    profile.job.figures = {{"speed", "cells/s", 1000.0 * run.nodes, 1, job.start, 0, 0, {}}};
    Phase phase;
    phase.name = "solve";
    phase.begin = job.start;
    phase.end = job.start + static_cast<Nanos>(run.seconds / 2 * kSecond);
    phase.began = phase.ended = 1;
    profile.moments.phases = {phase};
    const auto schema = Schema::Make(TaskSeries());
    const double memory = 1073741824.0 + 67108864.0 * run.nodes;
    ASSERT_TRUE((*live)
                    ->PutBlock({0, "task", 1}, *schema,
                               MakeBlock(*schema, {job.start + kSecond}, {1, memory}))
                    .ok());
    ASSERT_TRUE((*live)->PutProfile(profile).ok());
    ASSERT_TRUE((*live)->Finish().ok());
  }
  // 10 s and 2 s for each node.
  void RecordHeat() {
    for (const uint32_t nodes : {2u, 4u, 8u, 16u, 32u}) {
      for (const double factor : {0.99, 1.0, 1.01}) {
        Record({nodes, 4 * nodes, (10.0 + 2.0 * nodes) * factor});
      }
    }
  }
  // A scontrol that knows one job.
  std::string WithQueue(const std::string& job) {
    const std::string folder = dir_.path() + "/bin";
    ::mkdir(folder.c_str(), 0700);
    std::ofstream(folder + "/scontrol")
        << "#!/bin/sh\n[ \"$3\" = 77 ] || { echo 'slurm_load_jobs error: Invalid job id specified' "
           ">&2; exit 1; }\ncat <<'END'\n"
        << job << "\nEND\n";
    ::chmod((folder + "/scontrol").c_str(), 0700);
    return "PATH='" + folder + "':\"$PATH\"";
  }
  static const value& ModelOf(const value& answer, std::string_view metric) {
    for (const value& one : answer.at("models").as_array()) {
      if (one.at("metric").as_string() == metric) return one;
    }
    static const value none;
    ADD_FAILURE() << "no model of " << metric;
    return none;
  }

  TempDir dir_{TempDir::Memory()};
  int job_ = 100;
};

TEST_F(CliModel, SaysHowTheMetricsOfACommandGrowTheWorstFirst) {
  RecordHeat();
  Record({64, 256, 1, "./heat -t 8", {}, "", EndState::kFailed});
  Record({64, 256, 1, "./other"});
  const value answer = Json("model heat");
  EXPECT_EQ(answer.at("parameters").as_array().size(), 1u);
  EXPECT_EQ(answer.at("runs").as_array().size(), 15u) << "completed ones alone";
  const value& time = ModelOf(answer, "duration");
  EXPECT_EQ(time.at("model").as_string(), "10 + 2 * nodes^(1)");
  EXPECT_NEAR(time.at("growth").to_number<double>(), 266.0 / 74, 1e-6);
  EXPECT_GT(time.at("adjusted_r2").to_number<double>(), 0.99);
  EXPECT_NEAR(time.at("noise").to_number<double>(), 0.01, 1e-3);
  // What a plot needs: the runs' values, and the curve with its band up to 4 times the largest
  // size.
  EXPECT_EQ(time.at("values").as_array().size(), 15u);
  const auto& curve = time.at("curve").as_array();
  const auto number = [](const value& point, size_t i) { return point.at(i).to_number<double>(); };
  EXPECT_NEAR(number(curve.front(), 0), 2, 1e-9);
  EXPECT_NEAR(number(curve.back(), 0), 128, 1e-9);
  EXPECT_NEAR(number(curve.back(), 1), 266, 1);
  EXPECT_LT(number(curve.back(), 2), 266);
  EXPECT_GT(number(curve.back(), 3), 266);
  EXPECT_EQ(ModelOf(answer, "solve").at("model").as_string(), "5 + 1 * nodes^(1)");
  EXPECT_EQ(ModelOf(answer, "speed").at("model").as_string(), "0 + 1000 * nodes^(1)");
  EXPECT_EQ(ModelOf(answer, "speed").at("growth").to_number<double>(), 4.0);
  // The speed grows most.
  EXPECT_EQ(answer.at("models").at(0).at("metric").as_string(), "speed");
  const Outcome text = Sonde("model heat");
  EXPECT_EQ(text.code, 0) << text.err;
  EXPECT_THAT(text.out,
              AllOf(HasSubstr("15 runs on 2 to 32 nodes"), HasSubstr("at nodes 128"),
                    HasSubstr("10 + 2 * nodes^(1)"), HasSubstr("x3.595"), HasSubstr("4 min 26 s")));
  EXPECT_LT(text.out.find("speed"), text.out.find("solve"));
  const Outcome some = Sonde("model heat --metric dur,sol");
  EXPECT_THAT(some.out, AllOf(HasSubstr("duration"), HasSubstr("solve"), Not(HasSubstr("speed"))));
  EXPECT_THAT(Sonde("model heat --metric nothing").out, HasSubstr("No metric has that name"));
}

TEST_F(CliModel, AnyParameterCanBeTheSize) {
  for (const uint32_t size : {1u, 2u, 4u, 8u, 16u}) {
    Record({2,
            2 * size,
            3.0 * size,
            "./a",
            {{"cells", std::to_string(100 * size)}},
            std::to_string(size)});
  }
  const auto model = [&](const std::string& by) {
    return std::string(
        ModelOf(Json("model ./a --metric duration" + by), "duration").at("model").as_string());
  };
  // All have as many nodes.
  EXPECT_THAT(model(""), HasSubstr("1.5 * tasks^(1)"));
  EXPECT_THAT(model(" --by threads"), HasSubstr("3 * threads^(1)"));
  EXPECT_THAT(model(" --by tag:cells"), HasSubstr("0.03 * cells^(1)"));
  Record({2, 8, 5, "./a"});
  EXPECT_THAT(Sonde("model ./a --by tag:cells").out,
              HasSubstr("1 run left out: no cells that is a number of 1 or more"));
}

TEST_F(CliModel, TwoParametersAreModelledTogether) {
  for (const uint32_t nodes : {1u, 2u, 4u, 8u, 16u}) {
    for (const uint32_t cells : {10u, 20u, 40u, 80u, 160u}) {
      Record({nodes, nodes, 2.0 + 0.5 * nodes * cells, "./a", {{"cells", std::to_string(cells)}}});
    }
  }
  const value answer = Json("model ./a --by nodes,tag:cells --metric duration");
  EXPECT_EQ(ModelOf(answer, "duration").at("model").as_string(), "2 + 0.5 * nodes^(1) * cells^(1)");
  const value predicted = Json("predict ./a --nodes 32 --tag cells=320");
  EXPECT_NEAR(predicted.at("predictions").at(0).at("value").to_number<double>(), 5122, 1);
  EXPECT_EQ(predicted.at("beyond").to_number<double>(), 2);
}

TEST_F(CliModel, JobsAndStepsCanBeNamed) {
  for (const uint32_t nodes : {1u, 2u, 4u, 8u, 16u}) Record({nodes, nodes, 7.0 * nodes});
  Record({32, 32, 1});
  const value answer = Json("model 101 102.0 103.0 104 105.0");
  EXPECT_EQ(answer.at("runs").as_array().size(), 5u);
  EXPECT_THAT(std::string(ModelOf(answer, "duration").at("model").as_string()),
              HasSubstr("7 * nodes^(1)"));
  EXPECT_EQ(Sonde("model 101 999.0").code, 3);
}

TEST_F(CliModel, AJobsScriptIsNoRunOfItsProgram) {
  for (const uint32_t nodes : {1u, 2u, 4u, 8u, 16u}) {
    Record({nodes, nodes, 7.0 * nodes});
    Record({nodes, 1, 100, "./heat job.sh", {}, "", EndState::kCompleted, "batch"});
  }
  EXPECT_EQ(Json("model heat").at("runs").as_array().size(), 5u);
}

TEST_F(CliModel, WarnsOfFewSizesAndOfDifferentCommands) {
  Record({2, 8, 20, "./heat -t 8"});
  Record({4, 16, 40, "./heat -t 9"});
  const Outcome o = Sonde("model heat");
  EXPECT_THAT(o.out, AllOf(HasSubstr("these are runs of 2 command lines"),
                           HasSubstr("few points: runs of 2 different nodes, a trend needs 5"),
                           HasSubstr("does not depend on it")));
}

TEST_F(CliModel, WhatIsWrongIsSaid) {
  RecordHeat();
  const std::tuple<const char*, int, const char*> cases[] = {
      {"model amber", 3, "no completed run of 'amber'"},
      {"model heat --by colour", 2, "'colour': expected nodes, tasks, threads or tag:KEY"},
      {"model heat --by nodes,tasks,threads", 2, "expected one or two parameters"},
      {"model heat --by tag:size", 2, "15 runs left out: no size that is a number"},
      {"predict heat", 2, "say for which size: --nodes N"},
      {"predict heat --tag size", 2, "--tag size: expected KEY=NUMBER"},
      {"predict heat --nodes 2 --time soon", 2, "--time soon: expected a time limit"},
      {"predict amber --nodes 2", 3, "no completed run of 'amber'"}};
  for (const auto& [arguments, code, message] : cases) {
    const Outcome o = Sonde(arguments);
    EXPECT_EQ(o.code, code) << arguments;
    EXPECT_THAT(o.err, HasSubstr(message)) << arguments;
  }
}

TEST_F(CliModel, PredictsTimeAndMemoryAndJudgesTheTimeLimit) {
  RecordHeat();
  const value answer = Json("predict heat --nodes 64 --time 2");
  EXPECT_EQ(answer.at("beyond").to_number<double>(), 2);
  EXPECT_EQ(answer.at("time_limit_is").as_string(), "not enough");
  const value& time = answer.at("predictions").at(0);
  EXPECT_NEAR(time.at("value").to_number<double>(), 138, 0.01);
  EXPECT_LT(time.at("band").at(0).to_number<double>(), 138);
  EXPECT_GT(time.at("band").at(1).to_number<double>(), 138);
  EXPECT_LT(time.at("band").at(1).to_number<double>(), 160);
  const value& memory = answer.at("predictions").at(1);
  EXPECT_EQ(memory.at("unit").as_string(), "bytes");
  EXPECT_NEAR(memory.at("value").to_number<double>() / 1073741824.0, 5, 1e-6);
  const Outcome text = Sonde("predict heat --nodes 64 --time 10");
  EXPECT_THAT(text.out,
              AllOf(HasSubstr("heat, nodes 64: from 15 runs on 2 to 32 nodes"),
                    HasSubstr("2 times beyond what was measured"), HasSubstr("2 min 18 s"),
                    HasSubstr("5.0 GiB"), HasSubstr("The time limit of 10 min 0 s is enough.")));
  EXPECT_THAT(Sonde("predict heat --nodes 64 --time 2:19").out, HasSubstr("perhaps not enough"));
  EXPECT_THAT(Sonde("predict heat --nodes 8").out, HasSubstr("within what was measured"));
  EXPECT_THAT(Sonde("predict heat --nodes 320").out,
              HasSubstr("far beyond what was measured: 10 times"));
}

TEST_F(CliModel, PredictsForAJobInTheQueue) {
  RecordHeat();
  const std::string queue = WithQueue(
      "JobId=77 JobName=heat\n   UserId=ada(1000) GroupId=ada(1000)\n"
      "   JobState=PENDING Reason=Priority\n   RunTime=00:00:00 TimeLimit=00:02:00\n"
      "   NumNodes=64-64 NumCPUs=256 NumTasks=256 CPUs/Task=1\n   Command=/home/ada/job.sh");
  const Outcome o = Sonde("predict 77", queue);
  EXPECT_EQ(o.code, 0) << o.err;
  EXPECT_THAT(o.out, AllOf(HasSubstr("job 77 (heat), nodes 64"), HasSubstr("2 min 18 s"),
                           HasSubstr("The time limit of 2 min 0 s is not enough.")));
  EXPECT_THAT(Sonde("predict 77 --nodes 16", queue).out, HasSubstr("is enough."));
  const Outcome none = Sonde("predict 78", queue);
  EXPECT_EQ(none.code, 3);
  EXPECT_THAT(none.err, HasSubstr("scontrol knows no job 78"));
}

TEST(QueuedJob, IsReadFromWhatScontrolPrints) {
  const auto job = cli::ParseQueuedJob(
      "JobId=12 ArrayJobId=12 ArrayTaskId=1-4 JobName=my job\n   Priority=1 TimeLimit=1-02:00:00 "
      "TimeMin=N/A\n   NumNodes=2-4 NumCPUs=8 NumTasks=8 CPUs/Task=4 ReqB:S:C:T=0:0:*:*\n"
      "   Command=/home/ada/run it.sh\n   WorkDir=/home/ada\n\nJobId=13 JobName=other\n");
  ASSERT_TRUE(job.ok());
  EXPECT_EQ(job->id, "12");
  EXPECT_EQ(job->name, "my job");
  EXPECT_EQ(job->command, "/home/ada/run it.sh");
  EXPECT_EQ(job->nodes, 2u);
  EXPECT_EQ(job->tasks, 8u);
  EXPECT_EQ(job->cpus_per_task, 4u);
  EXPECT_EQ(job->time_limit, 93'600);
  EXPECT_FALSE(cli::ParseQueuedJob("").ok());
  EXPECT_TRUE(cli::IsJobId("4711_3"));
  for (const char* text : {"", "4711.0", "heat", "1;ls", "_", "4711_"}) {
    EXPECT_FALSE(cli::IsJobId(text)) << text;
  }
}

TEST(QueuedJob, TimeLimitsAreThoseOfSbatch) {
  const std::pair<const char*, double> cases[] = {
      {"30", 1800},         {"1:30", 90},           {"1:30:00", 5400}, {"2-0", 172'800},
      {"2-12:30", 217'800}, {"1-00:00:10", 86'410}, {"UNLIMITED", 0},  {"", -1},
      {"soon", -1},         {"1:2:3:4", -1},        {"-5", -1},        {"1-", -1}};
  for (const auto& [text, seconds] : cases) {
    EXPECT_EQ(cli::ParseTimeLimit(text), seconds) << text;
  }
}

}  // namespace
}  // namespace sonde::cli_model_test
