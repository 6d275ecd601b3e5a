// What the head learns from Slurm about its job.
#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>

#include "daemon/head/slurm/asked.h"
#include "daemon/head/slurm/squeue.h"

namespace sonde::head::head_slurm_test {
namespace {

using testing::HasSubstr;

constexpr Nanos kBegun = 1'795'680'155 * kSecond;  // 2026-11-26T08:02:35

// As squeue 22.05, 24.11 and 26.05 print it.
std::string Line(const std::string& job, const std::string& state, const std::string& reason,
                 const std::string& limit = "1-02:03:04", const std::string& preempted = "N/A") {
  return fmt::format("{:20}{:24}{:40}{:20}{:24}{:24}{:24}{:16}{:64}{:256}{:256}\n", job, state,
                     reason, limit, "2026-11-26T07:42:34", "2026-11-26T08:02:35", preempted, "128",
                     "normal", "gres/gpu:4", "a|b&c");
}

std::optional<EndState> EndOf(const std::string& state, const std::string& reason,
                              const std::string& preempted = "N/A") {
  return ParseListing(Line("12", state, reason, "1:00", preempted), "12")->end;
}

TEST(Listing, OfAJob) {
  const Result<JobNow> now = ParseListing(Line("12", "RUNNING", "None"), "12");
  ASSERT_TRUE(now.ok());
  EXPECT_FALSE(now->end);
  EXPECT_EQ(now->request.time_limit, (86400 + 2 * 3600 + 3 * 60 + 4) * kSecond);
  EXPECT_EQ(now->request.begun, kBegun);
  EXPECT_EQ(now->request.submitted, kBegun - (20 * 60 + 1) * kSecond);
  EXPECT_EQ(now->request.cpus, 128u);
  EXPECT_EQ(now->request.qos, "normal");
  EXPECT_EQ(now->request.gres, "gres/gpu:4");
  EXPECT_EQ(now->request.features, "a|b&c");
}

TEST(Listing, WhyAJobIsEnded) {
  const std::string time = "2026-11-26T08:17:51";
  EXPECT_EQ(EndOf("COMPLETING", "TimeLimit"), EndState::kTimeout);
  EXPECT_EQ(EndOf("TIMEOUT", "TimeLimit"), EndState::kTimeout);
  EXPECT_EQ(EndOf("COMPLETING", "None", time), EndState::kPreempted);
  EXPECT_EQ(EndOf("PREEMPTED", "None", time), EndState::kPreempted);
  EXPECT_EQ(EndOf("COMPLETING", "NodeDown"), EndState::kNodeFail);
  EXPECT_EQ(EndOf("NODE_FAIL", "NodeDown"), EndState::kNodeFail);
  EXPECT_EQ(EndOf("COMPLETING", "None"), EndState::kCancelled);
  EXPECT_EQ(EndOf("CANCELLED", "None"), EndState::kCancelled);
  EXPECT_FALSE(EndOf("RUNNING", "None", time)) << "it is in its time of grace";
}

TEST(Listing, WhatSlurmDoesNotKnowIsNotKnown) {
  const std::string text = fmt::format(
      "{:20}{:24}{:40}{:20}{:24}{:24}{:24}{:16}{:64}{:256}{:256}\n", "12", "PENDING", "Resources",
      "UNLIMITED", "2026-11-26T07:42:34", "N/A", "N/A", "2", "(null)", "N/A", "(null)");
  const Result<JobNow> now = ParseListing(text, "12");
  ASSERT_TRUE(now.ok());
  EXPECT_EQ(now->request.time_limit, JobRequest::kNoLimit);
  EXPECT_EQ(now->request.begun, 0);
  EXPECT_EQ(now->request.qos + now->request.gres + now->request.features, "");
}

// squeue lists all jobs of an array if it is asked for the one that has the array's number.
TEST(Listing, OfAnArrayTheOwnJob) {
  const std::string text =
      Line("13", "RUNNING", "None", "1:00") + Line("12", "CANCELLED", "None", "2:00");
  EXPECT_EQ(ParseListing(text, "12")->request.time_limit, 120 * kSecond);
  EXPECT_EQ(ParseListing(text, "1").status().code(), Code::kNotFound);
  EXPECT_FALSE(ParseListing("", "12").ok());
  EXPECT_TRUE(ParseListing("12", "12").ok()) << "a line that is cut";
}

TEST(Listing, TimeLimits) {
  const Nanos minute = 60 * kSecond;
  EXPECT_EQ(ParseTimeLimit("30"), 30 * minute);
  EXPECT_EQ(ParseTimeLimit("30:01"), 30 * minute + kSecond);
  EXPECT_EQ(ParseTimeLimit("12:00:00"), 12 * 60 * minute);
  EXPECT_EQ(ParseTimeLimit("7-00:00:00"), 7 * 24 * 60 * minute);
  for (const char* wrong : {"", "INVALID", "NOT_SET", "Partition_Limit", "1:2:3:4", "-1:00", "1-",
                            "99999999999999999999", "999999999-00:00:00", "1:", ":1", "1.5"}) {
    EXPECT_EQ(ParseTimeLimit(wrong), 0) << wrong;
  }
}

TEST(Asked, VariablesTellOfTheJobAndSlurmTellsMore) {
  JobDescription job;
  EXPECT_FALSE(RequestOfVariables(job, 0));
  job.environment = {{"SLURM_JOB_START_TIME", "1795680155"}, {"SLURM_JOB_QOS", "high"}};
  std::optional<JobRequest> request = RequestOfVariables(job, 60 * kSecond);
  ASSERT_TRUE(request);
  EXPECT_EQ(request->begun, kBegun);
  EXPECT_EQ(request->qos, "high");
  JobRequest told;
  told.cpus = 4;
  told.time_limit = 90 * kSecond;
  Complete(told, *request);
  EXPECT_EQ(request->time_limit, 90 * kSecond) << "scontrol update may have changed it";
  EXPECT_EQ(request->cpus, 4u);
  EXPECT_EQ(request->begun, kBegun);
}

TEST(Asked, AJobWhoseTimeIsOver) {
  JobRequest request;
  request.begun = kBegun;
  request.time_limit = 60 * kSecond;
  EXPECT_EQ(WhyKilledByTime(request, kBegun + 30 * kSecond), EndState::kCancelled);
  EXPECT_EQ(WhyKilledByTime(request, kBegun + 60 * kSecond), EndState::kTimeout);
  EXPECT_EQ(WhyKilledByTime({}, kBegun + 60 * kSecond), EndState::kCancelled);
  request.time_limit = JobRequest::kNoLimit;
  EXPECT_EQ(WhyKilledByTime(request, kBegun + 60 * kSecond), EndState::kCancelled);
}

// With a squeue of the test's own before all others on the path.
class SqueueTest : public testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/sonde-squeue-test.XXXXXX";
    ASSERT_NE(mkdtemp(name), nullptr);
    folder_ = name;
    before_ = getenv("PATH");
    setenv("PATH", (folder_ + ":" + before_).c_str(), 1);
  }
  void TearDown() override {
    setenv("PATH", before_.c_str(), 1);
    std::filesystem::remove_all(folder_);
  }
  void Program(const std::string& script) const {
    std::ofstream(folder_ + "/squeue") << "#!/bin/sh\n" << script << "\n";
    chmod((folder_ + "/squeue").c_str(), 0755);
  }
  Result<JobNow> Ask(Nanos limit = 60 * kSecond) {
    std::optional<Result<JobNow>> told;
    Squeue squeue(loop_);
    squeue.Ask("12", limit, [&](Result<JobNow> now) {
      told = std::move(now);
      loop_.Stop();
    });
    EXPECT_FALSE(told) << "not before it returns";
    loop_.Run();
    return *told;
  }

  std::string folder_;
  std::string before_;
  Loop loop_;
};

TEST_F(SqueueTest, ItsAnswer) {
  Program("[ \"$TZ\" = UTC ] && [ -z \"$SQUEUE_FORMAT\" ] && printf '" +
          Line("12", "RUNNING", "None") + "'");
  setenv("SQUEUE_FORMAT", "%i", 1);
  const Result<JobNow> now = Ask();
  unsetenv("SQUEUE_FORMAT");
  ASSERT_TRUE(now.ok()) << now.status().message();
  EXPECT_EQ(now->request.cpus, 128u);
}

TEST_F(SqueueTest, ItIsAskedForTheOneJob) {
  Program("for word in \"$@\"; do [ \"$word\" = --jobs=12 ] && echo 12; done; exit 0");
  EXPECT_TRUE(Ask().ok());
}

TEST_F(SqueueTest, AFailureIsTold) {
  Program("printf '" + Line("12", "RUNNING", "None") + "'; exit 1");
  EXPECT_THAT(std::string(Ask().status().message()), HasSubstr("squeue ended"));
}

// More than a pipe holds.
TEST_F(SqueueTest, ManyLinesDoNotHoldItUp) {
  Program(
      "i=0; while [ $i -lt 3000 ]; do printf '99%-1000d\\n' $i; "
      "i=$((i+1)); done; echo 12");
  EXPECT_TRUE(Ask().ok());
}

TEST_F(SqueueTest, OneThatHangsIsKilledWithWhatItStarted) {
  Program("echo $$ > " + folder_ + "/pid; sleep 1000");
  const Result<JobNow> now = Ask(500 * kMillisecond);
  EXPECT_EQ(now.status().code(), Code::kTimeout);
  // Not later than that: the group is gone, or about to go.
  std::ifstream file(folder_ + "/pid");
  pid_t group = 0;
  if (!(file >> group)) return;  // killed before it got so far
  while (kill(-group, 0) == 0) {
    waitpid(group, nullptr, WNOHANG);
    usleep(1000);
  }
  EXPECT_EQ(errno, ESRCH);
}

TEST_F(SqueueTest, NoSqueueIsNoTrouble) {
  setenv("PATH", folder_.c_str(), 1);
  EXPECT_FALSE(Ask().ok());
}

}  // namespace
}  // namespace sonde::head::head_slurm_test
