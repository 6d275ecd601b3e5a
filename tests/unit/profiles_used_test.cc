// What was asked for, beside what was used.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <csignal>
#include <string>
#include <vector>

#include "profiles/report/used.h"
#include "tests/unit/profiles_report_fixture.h"

namespace sonde::profiles_used_test {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

Profile Asking() {
  Profile p = TestProfile();  // 100 s on 2 nodes, 200 s of CPU time
  p.job.expected_nodes = p.job.job_nodes = 2;
  p.job.environment = {{"SLURM_JOB_CPUS_PER_NODE", "32(x2)"}, {"SLURM_MEM_PER_NODE", "2048"}};
  p.job.request.emplace();
  p.job.request->begun = p.job.start - 20 * kSecond;
  p.job.request->submitted = p.job.request->begun - 3 * 3600 * kSecond;
  p.job.request->time_limit = 1000 * kSecond;
  return p;
}

std::vector<Used> All(const Profile& p) { return AskedAndUsed(p, Summarize(p, {}, 0), 0); }
Used Of(const Profile& p, std::string_view what) {
  for (const Used& one : All(p)) {
    if (one.what == what) return one;
  }
  return {};
}

TEST(Used, TimeIsThatOfTheJobUntilTheStepsEnd) {
  Profile p = Asking();
  Used time = Of(p, "time");
  EXPECT_EQ(time.asked, 1000);
  EXPECT_EQ(time.used, 120);
  EXPECT_THAT(time.text, AllOf(HasSubstr("(12 %)"), HasSubstr("from the job's begin")));
  p.job.request->begun = p.job.start;
  time = Of(p, "time");
  EXPECT_EQ(time.used, 100);
  EXPECT_THAT(time.text, Not(HasSubstr("begin"))) << "the step is all there is";
  p.job.request->time_limit = JobRequest::kNoLimit;
  time = Of(p, "time");
  EXPECT_TRUE(std::isnan(time.asked));
  EXPECT_THAT(time.text, HasSubstr("without a time limit"));
}

TEST(Used, CpusAreThoseOfTheStepsNodes) {
  Profile p = Asking();
  Used cpus = Of(p, "cpus");
  EXPECT_EQ(cpus.asked, 64);
  EXPECT_EQ(cpus.used, 2);
  EXPECT_THAT(cpus.text,
              AllOf(HasSubstr("2.0 of 64 CPUs busy in the mean (3.1 %)"), HasSubstr("62 idle")));
  p.job.environment["SLURM_JOB_CPUS_PER_NODE"] = "4(x2),8";
  EXPECT_EQ(Of(p, "cpus").what, "") << "which two of the three nodes is not known";
  p.job.expected_nodes = 3;
  EXPECT_EQ(Of(p, "cpus").asked, 16);
  p.job.environment["SLURM_JOB_CPUS_PER_NODE"] = "4(x100)";
  EXPECT_EQ(Of(p, "cpus").asked, 12) << "a step on three of a hundred equal nodes";
  for (const char* wrong : {"", "x", "4(x", "4(x2", "99999999999999999999", "4(x99999999999)"}) {
    p.job.environment["SLURM_JOB_CPUS_PER_NODE"] = wrong;
    EXPECT_EQ(Of(p, "cpus").what, "") << wrong;
  }
  p.job.environment.erase("SLURM_JOB_CPUS_PER_NODE");
  p.job.request->cpus = 10;
  EXPECT_EQ(Of(p, "cpus").what, "") << "of a job with other nodes as well";
  p.job.job_nodes = 3;
  EXPECT_EQ(Of(p, "cpus").asked, 10);
}

TEST(Used, CpusAreTheStepsOwnWhereItSharesItsJob) {
  Profile p = Asking();
  p.job.environment["SLURM_CPUS_PER_TASK"] = "1";
  EXPECT_EQ(Of(p, "cpus").asked, 4) << "one for each of four tasks";
  EXPECT_THAT(Of(p, "cpus").text, HasSubstr("2.0 of 4 CPUs busy"));
  p.job.environment["SLURM_CPUS_PER_TASK"] = "100";
  EXPECT_EQ(Of(p, "cpus").asked, 64) << "it has no more than its job";
  p.footprint.push_back(Entry(TestSeries("cgroup_cpuset_cpus", MetricType::kGauge), 6, 2, 4));
  p.footprint.back().mean = 5.8;  // a node came late
  EXPECT_EQ(Of(p, "cpus").asked, 6);
  p.job.id.step = "batch";
  EXPECT_EQ(Of(p, "cpus").asked, 64) << "a script, which may start others";
}

TEST(Used, MemoryIsThatOfTheWorstNode) {
  Profile p = Asking();
  for (NodeInfo& node : p.job.nodes) node.tasks = 1;  // its memory is that of its node
  const Used memory = Of(p, "memory");
  EXPECT_EQ(memory.asked, 2 * kGiB);
  EXPECT_EQ(memory.used, kGiB);
  EXPECT_THAT(memory.text, HasSubstr("1.0 GiB of 2.0 GiB (50 %) of memory at most"));
}

TEST(Used, MemoryOfOneOfSeveralTasksIsNotThatOfItsNode) {
  Profile p = Asking();
  for (NodeInfo& node : p.job.nodes) node.tasks = 64;
  EXPECT_EQ(Of(p, "memory").what, "");
  const Summary task = Summarize(p, {}, 0);
  EXPECT_EQ(task.memory_peak.value, kGiB);
  EXPECT_EQ(task.memory_peak.by, "task 3 on n2");
  EXPECT_TRUE(std::isnan(task.memory_of_node) && std::isnan(task.memory_of_limit));
  EXPECT_TRUE(std::isnan(task.memory_total) && std::isnan(task.memory_limit));
  // All tasks of a node are in its control group.
  p.footprint.push_back(Entry(TestSeries("cgroup_memory_anon_bytes", MetricType::kGauge), 3 * kGiB,
                              kGiB, 1.5 * kGiB));
  p.footprint.back().max_owner = {1, Owner::kNobody};
  const Used group = Of(p, "memory");
  EXPECT_EQ(group.used, 1.5 * kGiB);
  EXPECT_THAT(group.text, HasSubstr("1.5 GiB of 2.0 GiB (75 %) of memory at most, on n2"));
}

TEST(Used, GpusThatNeverDidAnythingAreNamed) {
  Profile p = Asking();
  EXPECT_EQ(Of(p, "gpus").what, "");
  for (const auto& [gpu, most] : std::vector<std::pair<const char*, double>>{
           {"0", 0.9}, {"1", 0.005}, {"2", 0}, {"3", std::nan("")}}) {
    p.footprint.push_back(
        Entry(TestSeries("gpu_utilization_ratio", MetricType::kGauge, {{"gpu", gpu}}), 0, 0, most));
  }
  const Used gpus = Of(p, "gpus");
  EXPECT_EQ(gpus.asked, 3) << "of one nothing is known";
  EXPECT_EQ(gpus.used, 1);
  EXPECT_THAT(gpus.text, AllOf(HasSubstr("1 of 3 GPUs"), HasSubstr("by GPU 1 and 2")));
}

TEST(Used, WhatIsNotKnownIsNotThere) {
  Profile p = TestProfile();
  EXPECT_TRUE(All(p).empty());
  EXPECT_EQ(OtherRequests(p.job), "");
  p.job.request.emplace();
  EXPECT_TRUE(All(p).empty());
  EXPECT_EQ(OtherRequests(p.job), "");
}

TEST(Used, TheQueueAndWhatNodesHadToHave) {
  Profile p = Asking();
  p.job.request->qos = "high";
  p.job.request->features = "skylake&ib";
  p.job.request->gres = "gpu:4";
  EXPECT_EQ(OtherRequests(p.job),
            "waited 3 h 0 min in the queue; QOS high; nodes with skylake&ib; gpu:4 on each node");
  p.job.request->submitted = p.job.request->begun;
  EXPECT_THAT(OtherRequests(p.job), HasSubstr("did not wait"));
}

TEST(Exits, AreToldByHowTasksEnded) {
  JobDescription job;
  EXPECT_EQ(ExitsText(job), "");
  AddExits({{12, SIGSEGV}, {3, 256}, {7, 256}, {8, 256}, {9, 256}, {13, SIGSEGV | 0x80}}, job);
  EXPECT_EQ(ExitsText(job), "code 1: tasks 3 and 7-9; SIGSEGV: tasks 12-13");
  job.exits_left_out = 5;
  EXPECT_THAT(ExitsText(job), HasSubstr("5 tasks more"));
}

TEST(Exits, OfManyKindsTheMostFrequentAreTold) {
  JobDescription job;
  for (uint32_t rank = 0; rank < 40; ++rank) AddExits({{2 * rank, 256}}, job);
  for (int code = 2; code < 8; ++code) {
    AddExits({{static_cast<uint32_t>(100 + 2 * code), code << 8}}, job);
  }
  EXPECT_THAT(ExitsText(job),
              AllOf(HasSubstr("code 1: tasks 0, 2, 4, 6, 8, 10, 12, 14 and 32 more"),
                    HasSubstr("; 3 more")));
}

TEST(Exits, AListIsBounded) {
  JobDescription job;
  std::vector<TaskExit> many;
  for (uint32_t rank = 0; rank < kMaxTaskExits + 3; ++rank) many.push_back({rank, 256});
  AddExits(many, job);
  EXPECT_EQ(job.exits.size(), kMaxTaskExits);
  EXPECT_EQ(job.exits_left_out, 3u);
  AddExits({{0, 512}}, job);
  EXPECT_EQ(job.exits[0].status, 256) << "a task ends once";
}

TEST(Exits, AndTheRequestSurviveTheProfilesJson) {
  Profile p = Asking();
  p.job.request->time_limit = JobRequest::kNoLimit;
  p.job.request->qos = "high";
  AddExits({{3, 256}, {1, SIGKILL}}, p.job);
  p.job.exits_left_out = 7;
  p.job.state = EndState::kTimeout;
  const Result<Profile> read = ProfileFromJson(ProfileToJson(p));
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_EQ(read->job.request, p.job.request);
  EXPECT_EQ(read->job.exits, p.job.exits);
  EXPECT_EQ(read->job.exits_left_out, 7u);
  EXPECT_EQ(read->job.state, EndState::kTimeout);
  EXPECT_THAT(Render(*read), AllOf(HasSubstr("timeout"), HasSubstr("Asked    ")));
}

}  // namespace
}  // namespace sonde::profiles_used_test
