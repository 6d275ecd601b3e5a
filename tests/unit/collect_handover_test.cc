// The processor's counters are left to profilers, and to who asks for them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <cstring>

#include "daemon/collect/counters/handover.h"
#include "tests/unit/collect_feed.h"
#include "tests/unit/collect_tree.h"
#include "tests/unit/fake_clock.h"

namespace sonde::collect::collect_handover_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

TEST(ProfilerWatch, ToolsAreKnownByTheirNames) {
  EXPECT_EQ(ProfilerNamed("perf"), "perf");
  EXPECT_EQ(ProfilerNamed("perf_6.1"), "perf");
  EXPECT_EQ(ProfilerNamed("likwid-perfctr"), "LIKWID");
  EXPECT_EQ(ProfilerNamed("AMDuProfCLI-bin"), "uProf");
  for (const char* other : {"", "perf_app", "performance", "lmp", "python3"}) {
    EXPECT_EQ(ProfilerNamed(other), "") << other;
  }
}

TEST(ProfilerWatch, ToolsAreKnownByTheirLibraries) {
  EXPECT_EQ(ProfilerMapped("7f-7f r-xp 0 08:01 1 /usr/lib/libpapi.so.6.0\n"), "PAPI");
  EXPECT_EQ(ProfilerMapped("7f-7f r-xp 0 08:01 1 /opt/likwid/lib/liblikwid.so.5.2\n"), "LIKWID");
  EXPECT_EQ(ProfilerMapped("7f-7f r-xp 0 08:01 1 /usr/lib/libc.so.6\n[stack]\n"), "");
  EXPECT_EQ(ProfilerMapped(""), "");
}

// A process that changes its name when it is told to, and ends with this.
class Child {
 public:
  Child() {
    if (pipe(to_) != 0 || pipe(from_) != 0) std::abort();
    pid_ = fork();
    if (pid_ != 0) return;
    char name[16];
    while (read(to_[0], name, sizeof(name)) == sizeof(name)) {
      prctl(PR_SET_NAME, name);
      if (write(from_[1], "", 1) != 1) break;
    }
    _exit(0);
  }
  ~Child() {
    close(to_[1]);
    close(to_[0]);
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
    close(from_[0]);
    close(from_[1]);
  }
  pid_t pid() const { return pid_; }
  void Become(const char* name) const {
    char text[16] = {};
    std::strncpy(text, name, sizeof(text) - 1);
    char done = 0;
    if (write(to_[1], text, sizeof(text)) != sizeof(text) || read(from_[0], &done, 1) != 1) {
      std::abort();
    }
  }

 private:
  int to_[2];
  int from_[2];
  pid_t pid_;
};

class HandoverTest : public testing::Test {
 protected:
  HandoverTest() : perf_({"cycles", "", {}}, clock_) {
    EXPECT_TRUE(tasks_.AddTask(0, child_.pid()).ok());
    perf_.AddTask(0, std::vector<int>(perf_.events().size(), feed_.descriptor()));
  }
  void Look() {
    tasks_.Sample(0);
    handover_.Look(1'800'000'000 * kSecond + 10 * kSecond * looks_++);
  }

  Child child_;
  FakeClock clock_;
  Feed feed_;
  ReadBuffer buffer_;
  TasksSource tasks_{{}, buffer_};
  PerfSource perf_;
  Handover handover_{{}, tasks_, perf_};
  int looks_ = 0;
};

TEST_F(HandoverTest, AProfilerGetsTheCountersForAsLongAsItRuns) {
  Look();
  EXPECT_FALSE(perf_.released());
  child_.Become("perf");
  Look();
  EXPECT_TRUE(perf_.released());
  EXPECT_THAT(handover_.TakeNotes(),
              ElementsAre("the processor's counters were released at 2027-01-15T08:00:10Z for perf "
                          "(process " +
                          std::to_string(child_.pid()) + ")"));
  Look();
  EXPECT_THAT(handover_.TakeNotes(), IsEmpty());
  child_.Become("lmp");
  Look();
  EXPECT_FALSE(perf_.released());
  EXPECT_THAT(handover_.TakeNotes(),
              ElementsAre("the processor's counters are counted again since 2027-01-15T08:00:30Z, "
                          "20 s after they were released"));
}

TEST_F(HandoverTest, WhatTheUserPausedStaysPausedWhenAProfilerEnds) {
  child_.Become("perf");
  Look();
  handover_.SetPaused(true);
  child_.Become("lmp");
  Look();
  EXPECT_TRUE(perf_.released());
  EXPECT_THAT(handover_.TakeNotes(), ElementsAre(HasSubstr("released"), HasSubstr("are paused")));
  handover_.SetPaused(false);
  EXPECT_FALSE(perf_.released());
}

TEST_F(HandoverTest, EndlessChangesAreNotToldForEver) {
  size_t notes = 0;
  for (int i = 0; i < 40; ++i) {
    child_.Become(i % 2 == 0 ? "perf" : "lmp");
    Look();
    notes += handover_.TakeNotes().size();
  }
  EXPECT_EQ(notes, 16u);
}

}  // namespace
}  // namespace sonde::collect::collect_handover_test
