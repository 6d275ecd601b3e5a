// Perf events: what is asked for, and what is read from descriptors.
#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/perf_event.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <vector>

#include "core/text/options.h"
#include "daemon/collect/counters/perf.h"
#include "tests/unit/collect_feed.h"
#include "tests/unit/collect_tree.h"
#include "tests/unit/fake_clock.h"

namespace sonde::collect::collect_perf_test {
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

// On a processor that has no event set of its own.
class Perf {
 public:
  explicit Perf(const std::string& list) : source(Choice(tree_, list), clock) {}
  PerfSource* operator->() { return &source; }
  void SampleAfter(Nanos time) {
    clock.time += time;
    source.Sample(0);
  }
  double Get(std::string_view metric) const { return Value(source, metric); }

 private:
  static EventChoice Choice(const Tree& tree, const std::string& list) {
    tree.Write("proc/cpuinfo", "vendor_id : Unheard\ncpu family : 1\nmodel : 1\n");
    return {list, "", tree.roots()};
  }
  Tree tree_;

 public:
  FakeClock clock;
  PerfSource source;
};

TEST(PerfEvents, SystemCallsArePartOfTheDefaultWhereAskedFor) {
  const Tree tree;
  tree.Write("proc/cpuinfo", "vendor_id : Unheard\ncpu family : 1\nmodel : 1\n");
  const auto count = [&](const std::string& list, bool syscalls) {
    const PerfSource source({list, "", tree.roots(), syscalls});
    const auto events = source.events();
    return std::count_if(events.begin(), events.end(), [](const launch::PerfEvent& e) {
      return e.type == PERF_TYPE_TRACEPOINT && e.config == launch::kSyscalls && e.leader == 1;
    });
  };
  EXPECT_EQ(count("", false), 0);
  EXPECT_EQ(count("", true), 1);
  EXPECT_EQ(count("page-faults", true), 0);
  EXPECT_EQ(count("syscalls", false), 1);
}

TEST(PerfEvents, SystemCallsSayWhyTheyAreNotCounted) {
  Perf perf("syscalls");
  const int opened[] = {-EPERM};
  perf->AddTask(0, opened);
  EXPECT_THAT(perf->TakeNotes(),
              testing::ElementsAre(testing::HasSubstr("slows down all of a node")));
}

TEST(PerfEvents, TheDefaultIsSoftwareAndThenTheProcessorsGroups) {
  Perf perf("");
  std::string kinds;
  for (const launch::PerfEvent& e : perf->events()) {
    kinds += e.leader != 0 ? "|" : "";
    kinds += e.type == PERF_TYPE_SOFTWARE ? "s" : e.type == PERF_TYPE_HARDWARE ? "h" : "?";
  }
  EXPECT_EQ(kinds, "|ssss|hhhh|hh|hh");
  EXPECT_THAT(perf->TakeNotes(), IsEmpty());
}

TEST(PerfEvents, NamesOfTheSetsEventsAndGroupsMayBeChosen) {
  Perf perf("cache, instructions,task_clock,r01c2");
  ASSERT_EQ(perf->events().size(), 5u);
  EXPECT_EQ(perf->events()[0].type, uint32_t{PERF_TYPE_SOFTWARE});
  EXPECT_EQ(perf->events()[1].config, uint64_t{PERF_COUNT_HW_CACHE_REFERENCES});
  EXPECT_EQ(perf->events()[2].config, uint64_t{PERF_COUNT_HW_CACHE_MISSES});
  EXPECT_EQ(perf->events()[3].config, uint64_t{PERF_COUNT_HW_INSTRUCTIONS});
  EXPECT_EQ(perf->events()[4].type, uint32_t{PERF_TYPE_RAW});
  EXPECT_EQ(perf->events()[4].config, 0x1c2u);
  EXPECT_THAT(perf->TakeNotes(), IsEmpty());
}

TEST(PerfEvents, AsManyAsMayBeNamedAreAskedFor) {
  std::string list = "r01";
  for (size_t i = 2; i <= kMaxEvents; ++i) list += fmt::format(",r{:02x}", i);
  ASSERT_TRUE(ValidEventList(list));
  Perf perf(list);
  EXPECT_EQ(perf->events().size(), kMaxEvents);
  EXPECT_THAT(perf->TakeNotes(), IsEmpty());
}

TEST(PerfEvents, AnUnknownEventIsNotedAndTheOthersStay) {
  Perf perf("page-faults, no-such-event ,PAGE-FAULTS,,cycles");
  ASSERT_EQ(perf->events().size(), 2u);
  EXPECT_EQ(perf->events()[0].config, uint64_t{PERF_COUNT_SW_PAGE_FAULTS});
  EXPECT_THAT(perf->TakeNotes(), ElementsAre(HasSubstr("no-such-event is not counted")));
  EXPECT_THAT(perf->TakeNotes(), IsEmpty());
}

TEST(PerfEvents, EventsOfTheSetKeepTheirGroupsAndOthersAreInSmallOnes) {
  Perf perf("cycles,instructions,cache-references,cache-misses,branches,branch-misses,page-faults");
  std::vector<uint32_t> leaders;
  for (const launch::PerfEvent& e : perf->events()) leaders.push_back(e.leader);
  EXPECT_THAT(leaders, ElementsAre(1, 1, 0, 0, 0, 1, 0));
  Perf chosen("r1,r2,r3,r4");
  leaders.clear();
  for (const launch::PerfEvent& e : chosen->events()) leaders.push_back(e.leader);
  EXPECT_THAT(leaders, ElementsAre(1, 0, 0, 1));
}

TEST(PerfEvents, ALongListIsCutWithANote) {
  std::string list;
  for (int i = 0; i < 40; ++i) list += "perf::PERF_COUNT_HW_CACHE_L1D:READ:ACCESS,";
  EXPECT_LE(Perf(list)->events().size(), 1u);
  Perf hostile(std::string(10'000, 'x') + "," + std::string(300, '%'));
  EXPECT_THAT(hostile->events(), IsEmpty());
  EXPECT_EQ(hostile->TakeNotes().size(), 2u);
}

TEST(PerfEvents, AValueIsScaledByTheTimeItWasCounted) {
  Perf perf("task-clock,page-faults");
  perf->AddTask(3, std::vector<int>{Group({1000, 250, 1'000'000'000, 10}), Open()});
  perf->Sample(kSecond);
  EXPECT_DOUBLE_EQ(Value(perf.source, "task_perf_task_clock_seconds_total{task=\"3\"}"), 4);
  EXPECT_DOUBLE_EQ(Value(perf.source, "task_perf_page_faults_total{task=\"3\"}"), 40);
}

TEST(PerfEvents, WhatNeverRanIsMissingAndWhatWasNotEnabledIsZero) {
  Perf perf("page-faults");
  perf->AddTask(0, std::vector<int>{Group({1000, 0, 0})});
  perf->AddTask(1, std::vector<int>{Group({0, 0, 0})});
  perf->Sample(kSecond);
  EXPECT_THAT(Value(perf.source, "task_perf_page_faults_total{task=\"0\"}"), IsNan());
  EXPECT_EQ(Value(perf.source, "task_perf_page_faults_total{task=\"1\"}"), 0);
}

TEST(PerfEvents, AnEventThatCannotBeOpenedIsNotedOnceAndTheRestGoesOn) {
  Perf perf("page-faults,cycles,instructions");
  perf->AddTask(0, std::vector<int>{Group({1, 1, 5}), -ENOENT, -EACCES});
  perf->AddTask(1, std::vector<int>{Group({1, 1, 6}), -ENOENT, -EACCES});
  perf->Sample(kSecond);
  EXPECT_EQ(Value(perf.source, "task_perf_page_faults_total{task=\"1\"}"), 6);
  EXPECT_FALSE(Has(perf.source, "task_perf_cycles_total{task=\"0\"}"));
  EXPECT_THAT(perf->TakeNotes(),
              ElementsAre(HasSubstr("instructions is not counted: not permitted"),
                          HasSubstr("cycles is not counted: this machine has no such counter")));
}

TEST(PerfEvents, ALeaderThatIsMissingLeavesTheOthersOnTheirOwn) {
  Perf perf("task-clock,page-faults,context-switches");
  perf->AddTask(0, std::vector<int>{-EACCES, Group({1, 1, 5}), Group({1, 1, 6})});
  perf->Sample(kSecond);
  EXPECT_EQ(Value(perf.source, "task_perf_page_faults_total{task=\"0\"}"), 5);
  EXPECT_EQ(Value(perf.source, "task_perf_context_switches_total{task=\"0\"}"), 6);
}

TEST(PerfEvents, AReadThatMakesNoSenseIsMissing) {
  Perf perf("page-faults,context-switches");
  perf->AddTask(0, std::vector<int>{Group({1, 1, 5, 6, 7}), Group({})});
  perf->Sample(kSecond);
  for (const double value : perf->values()) EXPECT_THAT(value, IsNan());
  perf->AddTask(1, std::vector<int>{Open()});
  EXPECT_THAT(perf->TakeNotes(), Contains(HasSubstr("the launcher opened 1 for 2")));
}

TEST(PerfEvents, WhatFailsForTheSameReasonIsOneNote) {
  Perf perf("");
  perf->AddTask(0, std::vector<int>{Open(), Open(), Open(), Open(), -ENOENT, -ENOENT, -ENOENT,
                                    -ENOENT, -ENOENT, -ENOENT, -ENOENT, -ENOENT});
  EXPECT_THAT(perf->TakeNotes(),
              ElementsAre("events cycles, instructions, branches, branch_misses, cache_references, "
                          "cache_misses, stalled_cycles_frontend, stalled_cycles_backend are not "
                          "counted: this machine has no such counters, as is common in virtual "
                          "machines"));
  EXPECT_FALSE(perf->HasHardware());
  EXPECT_FALSE(Has(perf.source, "task_counters_released{task=\"0\"}"));
}

TEST(PerfEvents, EachIntervalIsScaledByItsOwnShare) {
  Perf perf("cycles");
  const Feed feed;
  perf->AddTask(0, std::vector<int>{feed.descriptor()});
  constexpr char kCycles[] = "task_perf_cycles_total{task=\"0\"}";
  constexpr char kShare[] = "task_counters_running_ratio{group=\"core\",task=\"0\"}";
  feed.Say({100, 100, 1000});
  perf.SampleAfter(kSecond);
  EXPECT_DOUBLE_EQ(perf.Get(kCycles), 1000);
  EXPECT_DOUBLE_EQ(perf.Get(kShare), 1);
  feed.Say({200, 150, 1500});  // half of the time: 500 stand for 1000
  perf.SampleAfter(kSecond);
  EXPECT_DOUBLE_EQ(perf.Get(kCycles), 2000);
  EXPECT_DOUBLE_EQ(perf.Get(kShare), 0.5);
  feed.Say({300, 150, 1500});  // never: unknown, until the next read tells
  perf.SampleAfter(kSecond);
  EXPECT_DOUBLE_EQ(perf.Get(kCycles), 2000);
  EXPECT_DOUBLE_EQ(perf.Get(kShare), 0);
  feed.Say({400, 250, 2500});  // 1000 in half of the 200
  perf.SampleAfter(kSecond);
  EXPECT_DOUBLE_EQ(perf.Get(kCycles), 4000);
  feed.Say({400, 250, 2500});  // asleep
  perf.SampleAfter(kSecond);
  EXPECT_DOUBLE_EQ(perf.Get(kCycles), 4000);
  EXPECT_THAT(perf.Get(kShare), IsNan());
  feed.Say({400, 250, 1});  // no counter falls
  perf.SampleAfter(kSecond);
  EXPECT_DOUBLE_EQ(perf.Get(kCycles), 4000);
}

TEST(PerfEvents, WhatNoProcessorCanCountIsLeftOut) {
  Perf perf("cycles");
  const Feed feed;
  perf->AddTask(0, std::vector<int>{feed.descriptor()});
  constexpr char kCycles[] = "task_perf_cycles_total{task=\"0\"}";
  constexpr uint64_t kJump = uint64_t{1} << 47;
  constexpr uint64_t kTime = kSecond;
  feed.Say({kTime, kTime, 1000});
  perf.SampleAfter(kSecond);
  feed.Say({2 * kTime, 2 * kTime, 2000 + kJump});
  perf.SampleAfter(kSecond);
  EXPECT_THAT(perf.Get(kCycles), IsNan());
  EXPECT_THAT(perf->TakeNotes(),
              ElementsAre(HasSubstr("event cycles: the processor's counter jumped")));
  feed.Say({3 * kTime, 3 * kTime, 3000 + kJump});
  perf.SampleAfter(kSecond);
  EXPECT_DOUBLE_EQ(perf.Get(kCycles), 2000);
  feed.Say({4 * kTime, 4 * kTime, 4000 + 3 * kJump});
  perf.SampleAfter(kSecond);
  EXPECT_THAT(perf.Get(kCycles), IsNan());
  EXPECT_THAT(perf->TakeNotes(), IsEmpty()) << "once";
  // As many by the threads of a large machine are possible.
  feed.Say({1004 * kTime, 1004 * kTime, 5000 + 4 * kJump});
  perf.SampleAfter(kSecond);
  EXPECT_DOUBLE_EQ(perf.Get(kCycles), 3000.0 + static_cast<double>(kJump));
}

TEST(PerfEvents, FormulasAreEvaluatedOverTheInterval) {
  Perf perf("core,task_clock");
  const Feed software;
  const Feed core;
  perf->AddTask(0,
                std::vector<int>{software.descriptor(), core.descriptor(), Open(), Open(), Open()});
  constexpr char kIpc[] = "task_instructions_per_cycle{task=\"0\"}";
  constexpr char kHertz[] = "task_frequency_hertz{task=\"0\"}";
  constexpr char kMisses[] = "task_branch_miss_ratio{task=\"0\"}";
  software.Say({1, 1, 500'000'000});
  core.Say({10, 10, 1'000'000'000, 3'000'000'000, 100, 1});
  perf.SampleAfter(kSecond);
  software.Say({2, 2, 1'000'000'000});
  core.Say({20, 20, 2'000'000'000, 3'500'000'000, 200, 51});
  perf.SampleAfter(kSecond);
  EXPECT_DOUBLE_EQ(perf.Get(kIpc), 0.5);
  EXPECT_DOUBLE_EQ(perf.Get(kHertz), 2e9);
  EXPECT_DOUBLE_EQ(perf.Get(kMisses), 0.5);
  software.Say({2, 2, 1'000'000'000});
  core.Say({20, 20, 2'000'000'000, 3'500'000'000, 200, 51});
  perf.SampleAfter(kSecond);  // asleep: nothing by nothing
  EXPECT_THAT(perf.Get(kIpc), IsNan());
}

TEST(PerfEvents, ARateIsThatOfTheTimeTheTaskRan) {
  Tree tree;
  tree.Write("proc/cpuinfo", "vendor_id : Own\ncpu family : 1\nmodel : 1\n");
  tree.Write("sets/own.events",
             "processor Own 1 1\ngroup g\nevent flops = r1\n"
             "formula task_flops_per_second = flops / seconds\n");
  FakeClock clock;
  PerfSource source({"", tree.path() + "/sets", tree.roots()}, clock);
  source.Sample(0);
  const Feed feed;
  clock.time += kSecond / 2;
  source.AddTask(0, std::vector<int>{-EACCES, -EACCES, -EACCES, -EACCES, feed.descriptor()});
  feed.Say({5, 5, 1000});
  clock.time += kSecond / 2;
  source.Sample(0);
  constexpr char kRate[] = "task_flops_per_second{task=\"0\"}";
  EXPECT_DOUBLE_EQ(Value(source, kRate), 2000);
  clock.time += kSecond / 4;
  feed.Say({6, 6, 1500});
  source.TaskExited(0);
  clock.time += kSecond * 3 / 4;
  source.Sample(0);
  EXPECT_DOUBLE_EQ(Value(source, kRate), 2000);
  EXPECT_DOUBLE_EQ(Value(source, "task_perf_flops_total{task=\"0\"}"), 1500);
  clock.time += kSecond;
  source.Sample(0);
  EXPECT_THAT(Value(source, kRate), IsNan());
  EXPECT_DOUBLE_EQ(Value(source, "task_perf_flops_total{task=\"0\"}"), 1500);
}

TEST(PerfEvents, WhatIsReleasedIsMissingAndGoesOnLater) {
  Perf perf("task_clock,cycles,instructions");
  const Feed software;
  const Feed core;
  perf->AddTask(0, std::vector<int>{software.descriptor(), core.descriptor(), Open()});
  constexpr char kCycles[] = "task_perf_cycles_total{task=\"0\"}";
  constexpr char kIpc[] = "task_instructions_per_cycle{task=\"0\"}";
  constexpr char kReleased[] = "task_counters_released{task=\"0\"}";
  software.Say({1, 1, 1});
  core.Say({10, 10, 100, 100});
  perf.SampleAfter(kSecond);
  EXPECT_EQ(perf.Get(kReleased), 0);
  software.Say({2, 2, 2});
  core.Say({20, 20, 200, 200});
  perf->SetReleased(true);
  software.Say({3, 3, 3'000'000'000});
  core.Say({20, 20, 200, 200});
  perf.SampleAfter(kSecond);
  EXPECT_EQ(perf.Get("task_perf_task_clock_seconds_total{task=\"0\"}"), 3);
  EXPECT_THAT(perf.Get(kCycles), IsNan());
  EXPECT_THAT(perf.Get(kIpc), IsNan());
  EXPECT_EQ(perf.Get(kReleased), 1);
  perf->SetReleased(false);
  software.Say({3, 3, 3'000'000'000});
  core.Say({30, 30, 300, 250});
  perf.SampleAfter(kSecond);
  EXPECT_EQ(perf.Get(kCycles), 300);
  EXPECT_DOUBLE_EQ(perf.Get(kIpc), 0.5);
  EXPECT_EQ(perf.Get(kReleased), 0);
}

TEST(PerfEvents, KnownFaultsOfARealProcessComeOutEvenAfterItsEnd) {
  Perf perf("page-faults,task-clock");
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
  for (const launch::PerfEvent& e : perf->events()) {
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
  perf->AddTask(0, descriptors);
  EXPECT_EQ(write(gate[1], "g", 1), 1);
  waitpid(child, nullptr, 0);
  close(gate[0]);
  close(gate[1]);
  if (!permitted) GTEST_SKIP() << "perf events may not be opened here";
  perf->TaskExited(0);
  perf->Sample(kSecond);
  const double faults = Value(perf.source, "task_perf_page_faults_total{task=\"0\"}");
  EXPECT_GE(faults, kPages);
  EXPECT_LE(faults, 1.02 * kPages);
  EXPECT_GT(Value(perf.source, "task_perf_task_clock_seconds_total{task=\"0\"}"), 0);
}

}  // namespace
}  // namespace sonde::collect::collect_perf_test
