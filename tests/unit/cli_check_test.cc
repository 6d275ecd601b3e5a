// sonde check, as its users run it: over an archive of runs whose numbers are known.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <cstdio>
#include <fstream>
#include <sstream>
#include <string>

#include "cli/check/judged.h"
#include "profiles/live/live_archive.h"
#include "tests/unit/profiles_fixture.h"
#include "tests/unit/sonde_command.h"

namespace sonde::cli_check_test {
namespace {

using boost::json::value;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

struct RunOf {
  double seconds = 100;
  double speed = 5;  // cells/s
  std::string command = "./heat";
  std::string cells = "1";
  uint32_t nodes = 2;
  EndState state = EndState::kCompleted;
};

class CliCheck : public testing::Test {
 protected:
  Outcome Sonde(const std::string& arguments) { return RunSonde(dir_.path(), arguments); }
  static std::string Read(const std::string& path) {
    std::ostringstream text;
    text << std::ifstream(path).rdbuf();
    return text.str();
  }

  // Its solver has all but ten seconds. Gives the step.
  std::string Record(const RunOf& run) {
    ++job_;
    JobDescription job = TestJob(std::to_string(job_), kTestStart + job_ * 3600 * kSecond);
    job.command = run.command;
    job.name = run.command.substr(2);
    job.expected_nodes = run.nodes;
    job.tags = {{"cells", run.cells}};
    auto live = LiveArchive::Create(dir_.path() + "/archive", job);
    EXPECT_TRUE(live.ok());
    Profile profile;
    profile.job = job;
    profile.job.state = run.state;
    profile.job.end = job.start + static_cast<Nanos>(run.seconds * kSecond);
    profile.job.figures = {{"speed", "cells/s", run.speed, 1, job.start, 0, 0, {}},
                           {"residual", "1", run.speed, 1, job.start, 0, 0, {}}};
    Phase phase;
    phase.name = "solve";
    phase.begin = job.start;
    phase.end = profile.job.end - 10 * kSecond;
    phase.began = phase.ended = 1;
    profile.moments.phases = {phase};
    EXPECT_TRUE((*live)->PutProfile(profile).ok());
    EXPECT_TRUE((*live)->Finish().ok());
    return job.id.ToString();
  }
  // Between 99 and 101 s.
  void RecordUsual(int runs, const RunOf& like = {}) {
    for (int i = 0; i < runs; ++i) {
      RunOf run = like;
      run.seconds = 99 + i % 3;
      run.speed = 5 + 0.01 * (i % 3);
      Record(run);
    }
  }
  static const value& NumberOf(const value& answer, std::string_view name) {
    for (const value& one : answer.at("numbers").as_array()) {
      if (one.at("name").as_string() == name) return one;
    }
    static const value none;
    ADD_FAILURE() << "no number " << name;
    return none;
  }

  TempDir dir_{TempDir::Memory()};
  int job_ = 100;
};

TEST_F(CliCheck, ARunAsTheOthersIsFine) {
  RecordUsual(8);
  Record({100.5});
  const Outcome text = Sonde("check heat");
  EXPECT_EQ(text.code, 0) << text.err << text.out;
  EXPECT_THAT(text.out, AllOf(HasSubstr("8 earlier runs"), HasSubstr("as the earlier runs were"),
                              HasSubstr("duration"), HasSubstr("solve")));
}

TEST_F(CliCheck, ASlowerRunIsToldByItsPhaseAndItsExitStatus) {
  RecordUsual(8);
  const std::string slow = Record({130, 3.5});
  const Outcome text = Sonde("check heat");
  EXPECT_EQ(text.code, 5) << text.err;
  EXPECT_THAT(text.out, AllOf(HasSubstr("Worse than the earlier runs"), HasSubstr("duration"),
                              HasSubstr("solve"), HasSubstr("speed"), HasSubstr("+30")));
  const Outcome json = Sonde("check --json " + slow);
  EXPECT_EQ(json.code, 5);
  const value answer = boost::json::parse(json.out);
  EXPECT_TRUE(answer.at("worse").as_bool());
  EXPECT_EQ(answer.at("earlier_runs").to_number<int>(), 8);
  EXPECT_TRUE(NumberOf(answer, "duration").at("worse").as_bool());
  EXPECT_NEAR(NumberOf(answer, "duration").at("usual").to_number<double>(), 100, 0.5);
  EXPECT_TRUE(NumberOf(answer, "speed").at("worse").as_bool()) << "less of what is per second";
  EXPECT_FALSE(NumberOf(answer, "residual").at("worse").as_bool()) << "nobody knows which way";
  EXPECT_TRUE(NumberOf(answer, "residual").at("differs").as_bool());
}

TEST_F(CliCheck, AFasterRunIsNoFailure) {
  RecordUsual(8);
  Record({60, 9});
  const Outcome text = Sonde("check heat");
  EXPECT_EQ(text.code, 0);
  EXPECT_THAT(text.out, AllOf(HasSubstr("better"), Not(HasSubstr("worse"))));
}

TEST_F(CliCheck, OnlyRunsThatAreLikeItCount) {
  RecordUsual(3);
  RecordUsual(8, {100, 5, "./heat --big"});
  RecordUsual(8, {100, 5, "./heat", "1", 4});
  RecordUsual(8, {100, 5, "./heat", "1", 2, EndState::kFailed});
  const std::string slow = Record({300});
  Outcome text = Sonde("check " + slow);
  EXPECT_EQ(text.code, 0) << "three are too few";
  EXPECT_THAT(text.out, AllOf(HasSubstr("3 earlier runs"), HasSubstr("4 are needed")));
  RecordUsual(1);
  EXPECT_EQ(Sonde("check " + slow).code, 0) << "a later one does not count";
  const std::string again = Record({300});
  EXPECT_EQ(Sonde("check " + again).code, 5) << "one that was as slow counts as disturbed";
}

TEST_F(CliCheck, RunsOfTheSameInputAreToldByATag) {
  RecordUsual(8, {100, 5, "./heat", "1"});
  Record({200, 5, "./heat", "2"});
  EXPECT_EQ(Sonde("check heat").code, 5);
  const Outcome same = Sonde("check heat --same cells");
  EXPECT_EQ(same.code, 0);
  EXPECT_THAT(same.out, HasSubstr("0 earlier runs"));
}

TEST_F(CliCheck, ARunThatFailedIsNoGoodOne) {
  RecordUsual(8);
  Record({100, 5, "./heat", "1", 2, EndState::kTimeout});
  const Outcome text = Sonde("check heat");
  EXPECT_EQ(text.code, 5);
  EXPECT_THAT(text.out, HasSubstr("did not complete: timeout"));
}

TEST_F(CliCheck, JunitHasACaseForEachNumber) {
  RecordUsual(8);
  Record({130, 5});
  const std::string file = dir_.path() + "/check.xml";
  EXPECT_EQ(Sonde("check heat --junit '" + file + "'").code, 5);
  const std::string xml = Read(file);
  EXPECT_THAT(
      xml, AllOf(HasSubstr("<testsuite name=\"sonde check 109.0\""), HasSubstr("failures=\"2\""),
                 HasSubstr("name=\"time: duration\""),
                 HasSubstr("<failure message=\"2 min 10 s, usually"), Not(HasSubstr("residual"))));
  EXPECT_EQ(Sonde("check heat --junit /nonexistent/x.xml").code, 1);
}

TEST_F(CliCheck, WhatIsWrongIsSaid) {
  Record({});
  EXPECT_EQ(Sonde("check nothing").code, 3);
  EXPECT_THAT(Sonde("check nothing").err, HasSubstr("expected a step that has ended"));
  EXPECT_EQ(Sonde("check").code, 2);
  EXPECT_EQ(Sonde("check heat --last 2").code, 2);
  EXPECT_EQ(Sonde("check heat --least x").code, 2);
}

TEST(Better, IsToldByTheUnit) {
  using insight::Better;
  EXPECT_EQ(cli::BetterOf("cells/s"), Better::kMore);
  EXPECT_EQ(cli::BetterOf("s"), Better::kLess);
  EXPECT_EQ(cli::BetterOf("seconds"), Better::kLess);
  EXPECT_EQ(cli::BetterOf("1"), Better::kUnknown);
  EXPECT_EQ(cli::BetterOf(""), Better::kUnknown);
}

}  // namespace
}  // namespace sonde::cli_check_test
