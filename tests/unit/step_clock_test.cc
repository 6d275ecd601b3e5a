// The time of a step while somebody sets the wall clock.
#include "daemon/step_clock.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "daemon/node/record/head_clock.h"

namespace sonde::step_clock_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr Nanos kHour = 3600 * kSecond;
constexpr Nanos kBegin = 1'800'000'000 * kSecond;

// A machine whose wall clock can be set.
class Machine final : public Clock {
 public:
  Nanos Now() const override { return kBegin + boot + set; }
  Nanos Monotonic() const override { return boot - suspended; }
  Nanos SinceBoot() const override {
    // The process does not run for an hour after it has read the time since boot.
    const Nanos now = boot;
    if (stalls > 0 && stalls-- > 0) boot += kHour;
    return now;
  }

  mutable Nanos boot = 50'000 * kSecond;
  mutable int stalls = 0;
  Nanos set = 0;
  Nanos suspended = 0;
};

class Time : public testing::Test {
 protected:
  // Ticks once a second.
  void Run(Nanos time) {
    for (Nanos end = machine_.boot + time; machine_.boot < end;) {
      machine_.boot += kSecond;
      const Nanos now = clock_.Look();
      EXPECT_LE(std::abs(now - before_ - kSecond), StepClock::kSlewOfSecond);
      before_ = now;
    }
  }
  Nanos AheadOfWall() const { return clock_.Now() - machine_.Now(); }

  Machine machine_;
  StepClock clock_{0, machine_};
  Nanos before_ = clock_.Now();
};

TEST_F(Time, IsTheWallClocksAsLongAsNobodySetsIt) {
  Run(kHour);
  EXPECT_EQ(AheadOfWall(), 0);
  EXPECT_THAT(clock_.TakeNotes(), IsEmpty());
}

TEST_F(Time, GoesOnWhenTheClockIsSetAnHourBackOrForward) {
  machine_.set = -kHour;
  Run(kHour);
  EXPECT_EQ(AheadOfWall(), kHour);
  EXPECT_THAT(clock_.TakeNotes(), ElementsAre(HasSubstr("was set back by 3600 s at 2027-01-")));
  machine_.set = kHour;
  Run(kHour);
  EXPECT_EQ(AheadOfWall(), -kHour);
  EXPECT_THAT(clock_.TakeNotes(), ElementsAre(HasSubstr("was set forward by 7200 s at ")));
  machine_.set = 0;
  Run(kHour);
  EXPECT_EQ(AheadOfWall(), 0);
}

TEST_F(Time, FollowsASmallStepWithoutAJump) {
  machine_.set = -3 * kSecond;
  Run(kSecond);
  EXPECT_THAT(clock_.TakeNotes(), ElementsAre(HasSubstr("was set back by 3.0 s at ")));
  EXPECT_GT(AheadOfWall(), 2'900 * kMillisecond);
  Run(2 * kHour);
  EXPECT_EQ(AheadOfWall(), 0);
}

// As a hypervisor's tools or a cron job that calls ntpdate do.
TEST_F(Time, StaysNearAClockThatIsCorrectedBySmallSteps) {
  for (int day = 0; day < 24 * 3; ++day) {
    machine_.set += 100 * kMillisecond;
    Run(kHour);
    EXPECT_LE(std::abs(AheadOfWall()), kMillisecond);
  }
  EXPECT_THAT(clock_.TakeNotes(), IsEmpty());
}

TEST_F(Time, FollowsALeapSecond) {
  machine_.set = -kSecond;
  Run(kHour);
  EXPECT_EQ(AheadOfWall(), 0);
}

TEST_F(Time, GoesOnWhileTheMachineIsSuspended) {
  Run(kSecond);
  machine_.boot += kHour;
  machine_.suspended += kHour;
  EXPECT_EQ(clock_.Look(), before_ + kHour);
  EXPECT_EQ(AheadOfWall(), 0);
  EXPECT_THAT(clock_.TakeNotes(), IsEmpty());
}

TEST_F(Time, IsNotDeceivedByAPauseBetweenTwoReadings) {
  machine_.stalls = 3;
  clock_.Look();
  before_ = clock_.Look();
  Run(10 * kSecond);
  EXPECT_THAT(clock_.TakeNotes(), IsEmpty());
  EXPECT_EQ(AheadOfWall(), 0);
}

TEST_F(Time, TellsSoManyTimesAtMost) {
  for (int i = 0; i < 100; ++i) {
    machine_.set += (i % 2 == 0 ? 1 : -1) * kHour;
    Run(kSecond);
  }
  const std::vector<std::string> notes = clock_.TakeNotes();
  EXPECT_EQ(notes.size(), StepClock::kMaxTold + 1);
  EXPECT_THAT(notes.back(), HasSubstr("more often"));
  EXPECT_EQ(AheadOfWall(), 0);
}

TEST_F(Time, TranslatesWhatWasSaidByTheWallClock) {
  machine_.set = kHour;
  Run(kSecond);
  EXPECT_EQ(clock_.OfWall(machine_.Now() - kSecond), clock_.Now() - kSecond);
  for (const Nanos wild : {INT64_MIN, INT64_MAX}) clock_.OfWall(wild);
}

TEST_F(Time, BeginsWhereAnotherDaemonSaysThatItIs) {
  const StepClock acting(-kHour, machine_);
  EXPECT_EQ(acting.Now(), machine_.Now() - kHour);
}

// --- A node follows the head

class Following : public Time {
 protected:
  void Ask(Nanos waited = kMillisecond) {
    clock_.Follow(head_.Behind(heads_.Now() - waited / 2, waited));
  }

  Machine heads_;
  node::HeadClock head_{clock_};
};

TEST_F(Following, IsPutForwardAfterItsMachineStoodStill) {
  heads_.boot += 60 * kSecond;
  Ask();
  EXPECT_EQ(head_.Now(), heads_.Now());
  EXPECT_THAT(clock_.TakeNotes(),
              ElementsAre(HasSubstr("was 60 s behind that of the head's host")));
}

TEST_F(Following, DriftsNoFurtherThanTheHeadSays) {
  // 100 s a million seconds.
  for (int i = 0; i < 1000; ++i) {
    Run(300 * kSecond);
    heads_.boot += 300 * kSecond + 30 * kMillisecond;
    Ask();
    EXPECT_LE(std::abs(head_.Now() - heads_.Now()), 60 * kMillisecond);
  }
}

TEST_F(Following, NeverGoesBackAtOnce) {
  heads_.boot -= 5 * kSecond;
  Ask();
  Run(kHour);
}

TEST_F(Following, BelievesNoAnswerThatTookLong) {
  heads_.boot += kHour;
  Ask(node::HeadClock::kMaxWaited + 1);
  EXPECT_EQ(clock_.Now(), machine_.Now());
}

TEST_F(Following, LeavesTheDifferenceFromTheBeginningAside) {
  heads_.boot += kHour;
  EXPECT_TRUE(head_.Compare(heads_.Now(), kMillisecond));
  Ask();
  EXPECT_LE(std::abs(clock_.Now() - machine_.Now()), kMillisecond);
}

}  // namespace
}  // namespace sonde::step_clock_test
