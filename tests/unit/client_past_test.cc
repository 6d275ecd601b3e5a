// Values of the past reach the daemon with their times, each once; nothing else is changed by them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "core/time.h"
#include "series/store/past.h"
#include "tests/unit/client_attacker.h"
#include "tests/unit/client_driver.h"
#include "tests/unit/client_fixture.h"

namespace sonde::collect::client_past_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

class AppPastTest : public ClientTest {
 protected:
  AppPastTest() { now_ = Clock::System().Now(); }

  // What a tick brings: times less `since`, and values.
  std::vector<std::pair<Nanos, double>> Tick(Nanos since = 0) {
    source_->Sample(now_ = Clock::System().Now());
    std::vector<std::pair<Nanos, double>> told;
    for (const PastValue& value : source_->TakePast()) {
      told.emplace_back(value.time - since, value.value);
      names_.push_back(source_->series()[value.column].metric.name);
    }
    return told;
  }
  static std::string At(Nanos time, double value) {
    return "set_past loss " + std::to_string(value) + " " + std::to_string(time);
  }

  std::vector<std::string> names_;
};

TEST_F(AppPastTest, ComeWithTheirTimesEachOnce) {
  Start();
  ClientProcess app(Environment());
  app.Do("gauge loss");
  const Nanos start = Clock::System().Now() - 100 * kSecond;
  for (int i = 0; i < 3; ++i) EXPECT_EQ(app.Do(At(start + i * kSecond, i)), kOk + " done");
  EXPECT_THAT(Tick(start), ElementsAre(Pair(0, 0), Pair(kSecond, 1), Pair(2 * kSecond, 2)));
  EXPECT_THAT(names_, testing::Each("loss"));
  EXPECT_THAT(Tick(), ElementsAre());
  EXPECT_TRUE(std::isnan(Read("loss{task=\"3\"}"))) << "it has no value now";
  app.Do("set loss 7");
  app.Do(At(start, 4));
  EXPECT_EQ(Read("loss{task=\"3\"}"), 7);
  EXPECT_EQ(Read("sonde_past_values_total{metric=\"loss\"}"), 4);
}

TEST_F(AppPastTest, OfAProcessThatHasEndedAreThere) {
  Start();
  const Nanos start = Clock::System().Now() - 100 * kSecond;
  {
    ClientProcess app(Environment());
    app.Do("gauge loss");
    app.Do(At(start, 1));
  }
  EXPECT_THAT(Tick(start), ElementsAre(Pair(0, 1)));
}

TEST_F(AppPastTest, ATimeAheadIsNowAndOneOfLongAgoIsLeftOut) {
  Start();
  ClientProcess app(Environment());
  app.Do("gauge loss");
  app.Do(At(Clock::System().Now() + 100 * kSecond, 1));
  app.Do(At(Clock::System().Now() - 2 * AppPast::kMostBefore, 2));
  const auto told = Tick();
  EXPECT_THAT(told, ElementsAre(Pair(now_, 1)));
  EXPECT_THAT(source_->TakeNotes(), ElementsAre(HasSubstr("more than a day before the step")));
  EXPECT_EQ(Read("sonde_past_values_total{metric=\"loss\"}"), 1) << "that was kept";
}

TEST_F(AppPastTest, HaveTheStepsTimeWhenTheClockIsSet) {
  const BehindTheWall step(3600 * kSecond);
  options_.clock = &step;
  Start();
  ClientProcess app(Environment());
  app.Do("gauge loss");
  source_->Sample(step.Now());
  const Nanos wall = Clock::System().Now() - 100 * kSecond;
  app.Do(At(wall, 1));
  source_->Sample(step.Now());
  const std::vector<PastValue> told = source_->TakePast();
  ASSERT_EQ(told.size(), 1u);
  EXPECT_EQ(told[0].time, wall - 3600 * kSecond);
}

TEST_F(AppPastTest, MoreThanTheRingHoldsAreToldAsMissing) {
  Start();
  ClientProcess app(Environment());
  app.Do("gauge loss");
  app.Do("set_past_often loss 70000");
  EXPECT_EQ(Tick().size(), client::kPastValues);
  EXPECT_THAT(source_->TakeNotes(), ElementsAre(HasSubstr("more than 65536 between two samples")));
  app.Do("set_past_often loss 10");
  EXPECT_EQ(Tick().size(), 10u);
}

TEST_F(AppPastTest, OfManyThreadsNoneIsLost) {
  Start();
  ClientProcess app(Environment());
  app.Do("gauge loss");
  app.Do("set_past_together loss 8 1000");
  const auto told = Tick();
  ASSERT_EQ(told.size(), 8'000u);
  double sum = 0;
  for (const auto& [time, value] : told) sum += value;
  EXPECT_EQ(sum, 8 * 999 * 1000 / 2);
}

TEST_F(AppPastTest, AForkedChildTellsItsOwn) {
  Start();
  ClientProcess app(Environment());
  app.Do("gauge loss");
  const Nanos start = Clock::System().Now() - 100 * kSecond;
  app.Do(At(start, 1));
  EXPECT_EQ(app.Do("fork_" + At(start, 2).substr(sizeof("set_") - 1)), "0");
  EXPECT_THAT(Tick(start), testing::UnorderedElementsAre(Pair(0, 1), Pair(0, 2)));
}

// --- A process that breaks the layout

class HostilePast : public AppPastTest {
 protected:
  void Attach(Attacker& attacker) {
    Start();
    attacker.Publish("loss", [](client::Record& record) {
      record.type = static_cast<uint8_t>(MetricType::kGauge);
    });
    attacker.Connect(options_.socket);
    attacker.SendHello();
    source_->Sample(now_);
  }
  static void Tell(Attacker& attacker, uint64_t ticket, const client::PastValue& value) {
    client::PastValue& entry = attacker.past_value(ticket % client::kPastValues);
    entry = value;
    entry.sequence = 2 * ticket + 2;
    attacker.header()->past = ticket + 1;
    attacker.header()->past_limit = client::kPastValues;
  }
};

TEST_F(HostilePast, WhatIsNoValueOfItsMetricsIsLeftOut) {
  Attacker attacker;
  Attach(attacker);
  const double nan = std::nan("");
  uint64_t ticket = 0;
  Tell(attacker, ticket++, {.time = now_ - kSecond, .value = nan, .slot = 0});
  Tell(attacker, ticket++, {.time = now_ - kSecond, .value = 1, .slot = UINT32_MAX});
  Tell(attacker, ticket++, {.time = now_ - kSecond, .value = 1, .slot = 5});
  Tell(attacker, ticket++, {.time = INT64_MIN, .value = 1, .slot = 0});
  Tell(attacker, ticket++, {.time = INT64_MAX, .value = 3, .slot = 0});
  Tell(attacker, ticket++, {.time = now_ - kSecond, .value = 2, .slot = 0});
  source_->Sample(now_ += kSecond);
  std::vector<double> values;
  for (const PastValue& value : source_->TakePast()) values.push_back(value.value);
  EXPECT_THAT(values, ElementsAre(3, 2));
}

TEST_F(HostilePast, TicketsThatNobodyDrewAreNoValues) {
  Attacker attacker;
  Attach(attacker);
  attacker.header()->past = UINT64_MAX;
  attacker.header()->past_limit = UINT32_MAX;
  source_->Sample(now_ += kSecond);
  EXPECT_TRUE(source_->TakePast().empty());
  EXPECT_EQ(source_->processes(), 1u);
}

}  // namespace
}  // namespace sonde::collect::client_past_test
