// Perf events: what is asked for, and what is read from descriptors.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/perf_event.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <vector>

#include "daemon/collect/counters/perf.h"
#include "tests/unit/collect_tree.h"

namespace sonde::collect {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::IsNan;

// A descriptor whose next read gives a group: enabled, running, values.
int Group(const std::vector<uint64_t>& words) {
  std::vector<uint64_t> group = {words.size() - 2};
  group.insert(group.end(), words.begin(), words.end());
  int ends[2];
  if (pipe(ends) != 0) std::abort();
  const auto bytes = static_cast<ssize_t>(group.size() * sizeof(uint64_t));
  if (write(ends[1], group.data(), static_cast<size_t>(bytes)) != bytes) std::abort();
  close(ends[1]);
  return ends[0];
}
int Open() { return dup(STDIN_FILENO); }

TEST(PerfEvents, TheDefaultIsSoftwareAndHardwareInTwoGroups) {
  PerfSource perf("");
  std::vector<uint32_t> types;
  std::vector<uint32_t> leaders;
  for (const launch::PerfEvent& e : perf.events()) {
    types.push_back(e.type);
    leaders.push_back(e.leader);
  }
  EXPECT_THAT(types, ElementsAre(PERF_TYPE_SOFTWARE, PERF_TYPE_SOFTWARE, PERF_TYPE_SOFTWARE,
                                 PERF_TYPE_SOFTWARE, PERF_TYPE_HARDWARE, PERF_TYPE_HARDWARE));
  EXPECT_THAT(leaders, ElementsAre(1, 0, 0, 0, 1, 0));
  EXPECT_THAT(perf.TakeNotes(), IsEmpty());
}

TEST(PerfEvents, AnUnknownEventIsNotedAndTheOthersStay) {
  PerfSource perf("page-faults, no-such-event ,PAGE-FAULTS,,cycles");
  ASSERT_EQ(perf.events().size(), 2u);
  EXPECT_EQ(perf.events()[0].config, uint64_t{PERF_COUNT_SW_PAGE_FAULTS});
  EXPECT_THAT(perf.TakeNotes(), ElementsAre(HasSubstr("no-such-event is not counted")));
  EXPECT_THAT(perf.TakeNotes(), IsEmpty());
}

TEST(PerfEvents, HardwareGroupsFitOnTheCounters) {
  PerfSource perf(
      "cycles,instructions,cache-references,cache-misses,branches,branch-misses,page-faults");
  std::vector<uint32_t> leaders;
  for (const launch::PerfEvent& e : perf.events()) leaders.push_back(e.leader);
  EXPECT_THAT(leaders, ElementsAre(1, 1, 0, 0, 0, 1, 0));
}

TEST(PerfEvents, ALongListIsCutWithANote) {
  std::string list;
  for (int i = 0; i < 40; ++i) list += "perf::PERF_COUNT_HW_CACHE_L1D:READ:ACCESS,";
  EXPECT_LE(PerfSource(list).events().size(), 1u);
  PerfSource hostile(std::string(10'000, 'x') + "," + std::string(300, '%'));
  EXPECT_THAT(hostile.events(), IsEmpty());
  EXPECT_EQ(hostile.TakeNotes().size(), 2u);
}

TEST(PerfEvents, AValueIsScaledByTheTimeItWasCounted) {
  PerfSource perf("task-clock,page-faults");
  perf.AddTask(3, std::vector<int>{Group({1000, 250, 1'000'000'000, 10}), Open()});
  perf.Sample(kSecond);
  EXPECT_DOUBLE_EQ(Value(perf, "task_perf_task_clock_seconds_total{task=\"3\"}"), 4);
  EXPECT_DOUBLE_EQ(Value(perf, "task_perf_page_faults_total{task=\"3\"}"), 40);
}

TEST(PerfEvents, WhatNeverRanIsMissingAndWhatWasNotEnabledIsZero) {
  PerfSource perf("page-faults");
  perf.AddTask(0, std::vector<int>{Group({1000, 0, 0})});
  perf.AddTask(1, std::vector<int>{Group({0, 0, 0})});
  perf.Sample(kSecond);
  EXPECT_THAT(Value(perf, "task_perf_page_faults_total{task=\"0\"}"), IsNan());
  EXPECT_EQ(Value(perf, "task_perf_page_faults_total{task=\"1\"}"), 0);
}

TEST(PerfEvents, AnEventThatCannotBeOpenedIsNotedOnceAndTheRestGoesOn) {
  PerfSource perf("page-faults,cycles,instructions");
  perf.AddTask(0, std::vector<int>{Group({1, 1, 5}), -ENOENT, -EACCES});
  perf.AddTask(1, std::vector<int>{Group({1, 1, 6}), -ENOENT, -EACCES});
  perf.Sample(kSecond);
  EXPECT_EQ(Value(perf, "task_perf_page_faults_total{task=\"1\"}"), 6);
  EXPECT_FALSE(Has(perf, "task_perf_cycles_total{task=\"0\"}"));
  EXPECT_THAT(perf.TakeNotes(),
              ElementsAre(HasSubstr("cycles is not counted: this machine has no such counter"),
                          HasSubstr("instructions is not counted: not permitted")));
}

TEST(PerfEvents, ALeaderThatIsMissingLeavesTheOthersOnTheirOwn) {
  PerfSource perf("task-clock,page-faults,context-switches");
  perf.AddTask(0, std::vector<int>{-EACCES, Group({1, 1, 5}), Group({1, 1, 6})});
  perf.Sample(kSecond);
  EXPECT_EQ(Value(perf, "task_perf_page_faults_total{task=\"0\"}"), 5);
  EXPECT_EQ(Value(perf, "task_perf_context_switches_total{task=\"0\"}"), 6);
}

TEST(PerfEvents, AReadThatMakesNoSenseIsMissing) {
  PerfSource perf("page-faults,context-switches");
  perf.AddTask(0, std::vector<int>{Group({1, 1, 5, 6, 7}), Group({})});
  perf.Sample(kSecond);
  for (const double value : perf.values()) EXPECT_THAT(value, IsNan());
  perf.AddTask(1, std::vector<int>{Open()});
  EXPECT_THAT(perf.TakeNotes(), Contains(HasSubstr("the launcher opened 1 for 2")));
}

TEST(PerfEvents, KnownFaultsOfARealProcessComeOutEvenAfterItsEnd) {
  PerfSource perf("page-faults,task-clock");
  int gate[2];
  ASSERT_EQ(pipe(gate), 0);
  constexpr int kPages = 20000;
  const pid_t child = fork();
  if (child == 0) {
    char c = 0;
    if (read(gate[0], &c, 1) != 1) _exit(1);
    const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    char* memory = static_cast<char*>(
        mmap(nullptr, kPages * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    madvise(memory, kPages * page, MADV_NOHUGEPAGE);
    for (size_t i = 0; i < kPages; ++i) memory[i * page] = 1;
    _exit(0);
  }
  std::vector<int> descriptors;
  for (const launch::PerfEvent& e : perf.events()) {
    perf_event_attr attr = {};
    attr.size = sizeof(attr);
    attr.type = e.type;
    attr.config = e.config;
    attr.inherit = 1;
    attr.exclude_kernel = 1;
    attr.read_format =
        PERF_FORMAT_GROUP | PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING;
    const int leader = descriptors.empty() ? -1 : descriptors[0];
    const auto fd = static_cast<int>(syscall(SYS_perf_event_open, &attr, child, -1, leader, 0));
    descriptors.push_back(fd < 0 ? -errno : fd);
  }
  const bool permitted = descriptors[0] >= 0;
  perf.AddTask(0, descriptors);
  EXPECT_EQ(write(gate[1], "g", 1), 1);
  waitpid(child, nullptr, 0);
  close(gate[0]);
  close(gate[1]);
  if (!permitted) GTEST_SKIP() << "perf events may not be opened here";
  perf.TaskExited(0);
  perf.Sample(kSecond);
  const double faults = Value(perf, "task_perf_page_faults_total{task=\"0\"}");
  EXPECT_GE(faults, kPages);
  EXPECT_LE(faults, 1.02 * kPages);
  EXPECT_GT(Value(perf, "task_perf_task_clock_seconds_total{task=\"0\"}"), 0);
}

}  // namespace
}  // namespace sonde::collect
