// What becomes of rules over rows of reduced series.
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <random>
#include <set>

#include "series/alarm/evaluator.h"
#include "series/alarm/text.h"

namespace sonde::alarms {
namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

Series MakeSeries(const std::string& name, Tags tags = {}, MetricType type = MetricType::kGauge,
                  Reduction reduction = Reduction::kSum, const std::string& unit = "1") {
  Series series;
  series.metric.name = name;
  series.metric.type = type;
  series.metric.reduction = reduction;
  series.metric.unit = unit;
  series.tags = std::move(tags);
  return series;
}

Reduced Of(std::initializer_list<double> values) {
  Reduced r;
  uint32_t node = 0;
  for (const double v : values) r.Add(v, {node++, Owner::kNobody});
  return r;
}

// A step of one second's ticks.
class AlarmEvaluatorTest : public testing::Test {
 protected:
  void Add(std::string_view text, std::string_view name = "r") {
    Result<Rule> rule = ParseRule(name, text);
    ASSERT_TRUE(rule.ok()) << rule.status().message();
    ASSERT_TRUE(evaluator_.Add(*std::move(rule)).ok());
  }
  // "+r" when it is raised, "-r" when it is over, "" if nothing happens.
  std::string Tick(std::vector<Reduced> values, bool complete = true) {
    events_.clear();
    time_ += kSecond;
    evaluator_.Evaluate(series_, {time_, &values, complete}, events_);
    std::string text;
    for (const Event& event : events_) {
      text += (text.empty() ? "" : " ") + std::string(event.raised ? "+" : "-") + event.rule;
    }
    return text;
  }
  std::string Ticks(std::initializer_list<double> values) {
    std::string text;
    for (const double v : values) {
      const std::string one = Tick({Of({v})});
      text += one.empty() ? "." : one;
    }
    return text;
  }

  Evaluator evaluator_{kSecond};
  std::vector<Series> series_ = {MakeSeries("x")};
  std::vector<Event> events_;
  Nanos time_ = 1'700'000'000 * kSecond;
};

TEST_F(AlarmEvaluatorTest, RaisesAtOnceWithoutADuration) {
  Add("x > 1");
  EXPECT_EQ(Ticks({0, 1, 2, 2, 1, 0}), "..+r.-r.");
}

TEST_F(AlarmEvaluatorTest, HoldsForItsTimeBeforeItIsRaised) {
  Add("x > 1 for 2s calm 0s");
  EXPECT_EQ(Ticks({2, 2, 0, 2, 2, 2, 2, 0}), ".....+r.-r");
}

TEST_F(AlarmEvaluatorTest, IsOverAfterTheTimeOfCalm) {
  Add("x > 1 for 1s calm 2s");
  EXPECT_EQ(Ticks({2, 2, 0, 0, 2, 0, 0, 0}), ".+r.....-r");
}

TEST_F(AlarmEvaluatorTest, HysteresisKeepsItRaised) {
  Add("x > 10 clear 5");
  EXPECT_EQ(Ticks({11, 7, 11, 6, 5, 7, 11}), "+r...-r.+r");
}

TEST_F(AlarmEvaluatorTest, MissingValuesChangeNothingForAWhile) {
  Add("x > 1 for 3s");
  EXPECT_EQ(Ticks({2, kNone, kNone, 2}), "...+r");
  std::string text;
  for (int i = 0; i < 40; ++i) text += Tick({Of({kNone})});
  EXPECT_EQ(text, "-r") << "what is not there any more is over some time";
}

TEST_F(AlarmEvaluatorTest, LateAndRepeatedRowsChangeNothing) {
  Add("x > 1");
  std::vector<Reduced> high = {Of({5})};
  EXPECT_EQ(Tick({Of({0})}), "");
  evaluator_.Evaluate(series_, {time_, &high, true}, events_);
  evaluator_.Evaluate(series_, {time_ - kSecond, &high, true}, events_);
  EXPECT_TRUE(events_.empty());
}

TEST_F(AlarmEvaluatorTest, AnyNamesTheWorst) {
  Add("x any > 10", "high");
  Add("x any < 1", "low");
  EXPECT_EQ(Tick({Of({5, 12, 20})}), "+high");
  EXPECT_EQ(events_[0].owner.node, 2u);
  EXPECT_EQ(events_[0].value, 20);
  EXPECT_EQ(Tick({Of({5, 0, 20})}), "+low");
  EXPECT_EQ(events_[0].owner.node, 1u);
}

// As nodes tell how long they have been beyond the bound.
TEST_F(AlarmEvaluatorTest, AnyWithADurationIsOneAndTheSame) {
  Add("x any > 10 for 2s");
  ASSERT_EQ(evaluator_.Needs().size(), 1u);
  series_.push_back(MakeSeries(DerivedName(evaluator_.Needs()[0])));
  EXPECT_EQ(Tick({Of({11, 9}), Of({0, 0})}), "");
  EXPECT_EQ(Tick({Of({9, 11}), Of({0, 0})}), "");
  EXPECT_EQ(Tick({Of({12, 13}), Of({0, 1})}), "");
  EXPECT_EQ(Tick({Of({13, 12}), Of({1, 2})}), "+r");
  EXPECT_EQ(events_[0].owner.node, 1u);
  // Over as ever: when nobody is beyond it for as long.
  EXPECT_EQ(Tick({Of({13, 0}), Of({2, 0})}), "");
  EXPECT_EQ(Tick({Of({0, 0}), Of({0, 0})}), "");
  EXPECT_EQ(Tick({Of({0, 0}), Of({0, 0})}), "");
  EXPECT_EQ(Tick({Of({0, 0}), Of({0, 0})}), "-r");
}

// Nodes make no more than so many series: the rest does without.
TEST_F(AlarmEvaluatorTest, WhatOtherSeriesNeedGoesBeforeHowLongTheyHeld) {
  for (size_t i = 0; i < kMaxDerived; ++i) {
    Add("x any > " + std::to_string(i) + " for 2s", "r" + std::to_string(i));
  }
  Add("y any rate > 1", "rate");
  const std::vector<Derived> needs = evaluator_.Needs();
  ASSERT_EQ(needs.size(), kMaxDerived);
  EXPECT_EQ(DerivedName(needs[0]), "alarm:rate:y");
}

TEST_F(AlarmEvaluatorTest, AllNeedsEveryOne) {
  Add("x all > 10");
  EXPECT_EQ(Tick({Of({11, 12, 9})}), "");
  EXPECT_EQ(Tick({Of({11, 12, 13})}), "+r");
}

TEST_F(AlarmEvaluatorTest, AggregatesAreThoseOfTheRow) {
  Add("x > 10", "step");  // the sum, as the metric says
  Add("x avg > 4", "avg");
  Add("x count < 3", "count");
  Add("x min < 1", "min");
  EXPECT_EQ(Tick({Of({5, 6})}), "+step +avg +count");
  EXPECT_EQ(Tick({Of({0.5, 1, 1})}), "-step -avg -count +min");
}

TEST_F(AlarmEvaluatorTest, AmountsOfPartsTellNothing) {
  Add("x sum < 10");
  EXPECT_EQ(Tick({Of({6, 6})}), "");
  EXPECT_EQ(Tick({Of({6})}, false), "");
  EXPECT_EQ(Tick({Of({6})}, true), "+r");
}

TEST_F(AlarmEvaluatorTest, EverySeriesIsLookedAtByItself) {
  series_ = {MakeSeries("x", {{"dev", "a"}}), MakeSeries("x", {{"dev", "b"}})};
  Add("x > 1", "each");
  Add("x{dev=b} > 1", "b");
  EXPECT_EQ(Tick({Of({2}), Of({0})}), "+each");
  EXPECT_EQ(events_[0].tags, (Tags{{"dev", "a"}}));
  EXPECT_EQ(Tick({Of({2}), Of({2})}), "+each +b");
  series_.push_back(MakeSeries("x", {{"dev", "c"}}));
  EXPECT_EQ(Tick({Of({2}), Of({2}), Of({3})}), "+each") << "one that comes later";
}

TEST_F(AlarmEvaluatorTest, ASeriesIsDividedByTheOneWithItsTagsWhereverThatStands) {
  series_ = {MakeSeries("size"), MakeSeries("size", {{"disk", "b"}}),
             MakeSeries("used", {{"disk", "c"}}), MakeSeries("used", {{"disk", "a"}}),
             MakeSeries("size", {{"disk", "a"}})};
  Add("used / size > 0.5");
  // c has none of its own, and is divided by the whole.
  EXPECT_EQ(Tick({Of({100}), Of({1}), Of({60}), Of({60}), Of({200})}), "+r");
  ASSERT_EQ(events_.size(), 1u);
  EXPECT_EQ(events_[0].tags, (Tags{{"disk", "c"}}));
  EXPECT_EQ(Tick({Of({100}), Of({1}), Of({60}), Of({101}), Of({200})}), "+r");
  EXPECT_EQ(events_[0].tags, (Tags{{"disk", "a"}}));
}

TEST_F(AlarmEvaluatorTest, AllConditionsHaveToHold) {
  series_ = {MakeSeries("x", {{"dev", "a"}}), MakeSeries("x", {{"dev", "b"}}),
             MakeSeries("y", {{"dev", "a"}}), MakeSeries("y", {{"dev", "b"}}), MakeSeries("z")};
  Add("x > 1 and y < 1 and z = 7");
  EXPECT_EQ(Tick({Of({2}), Of({2}), Of({5}), Of({5}), Of({7})}), "");
  EXPECT_EQ(Tick({Of({2}), Of({2}), Of({5}), Of({0}), Of({6})}), "");
  EXPECT_EQ(Tick({Of({2}), Of({2}), Of({5}), Of({0}), Of({7})}), "+r");
  EXPECT_EQ(events_[0].tags, (Tags{{"dev", "b"}}));
  EXPECT_EQ(Tick({Of({2}), Of({2}), Of({5}), Of({2}), Of({7})}), "-r");
}

TEST_F(AlarmEvaluatorTest, AnotherConditionMayAskForOtherTags) {
  series_ = {MakeSeries("cpu", {{"mode", "user"}}), MakeSeries("cpu", {{"mode", "system"}})};
  Add("cpu{mode=user} < 1 and cpu{mode=system} < 1");
  EXPECT_EQ(Tick({Of({0}), Of({5})}), "");
  EXPECT_EQ(Tick({Of({0}), Of({0})}), "+r");
}

TEST_F(AlarmEvaluatorTest, ASeriesIsAbsent) {
  series_ = {MakeSeries("x", {{"dev", "a"}}), MakeSeries("x", {{"dev", "b"}})};
  Add("x absent for 2s", "x");
  Add("x{dev=b} absent for 2s", "b");
  Add("never absent for 2s", "never");
  EXPECT_EQ(Tick({Of({1}), Of({})}), "");
  EXPECT_EQ(Tick({Of({1}), Of({})}), "");
  EXPECT_EQ(Tick({Of({}), Of({})}), "+b +never");
  EXPECT_EQ(Tick({Of({}), Of({})}), "");
  EXPECT_EQ(Tick({Of({}), Of({})}), "+x");
  EXPECT_EQ(Tick({Of({}), Of({1})}), "");
  EXPECT_EQ(Tick({Of({}), Of({1})}), "");
  EXPECT_EQ(Tick({Of({}), Of({1})}), "-x -b");
}

TEST_F(AlarmEvaluatorTest, RatesAreOfTheWholeStep) {
  series_ = {MakeSeries("x", {}, MetricType::kCounter)};
  Add("x rate > 10");
  EXPECT_EQ(Tick({Of({1000, 1000})}), "") << "the first value has no rate";
  EXPECT_EQ(Tick({Of({1004, 1004})}), "");
  EXPECT_EQ(Tick({Of({1012, 1012})}), "+r");
  EXPECT_DOUBLE_EQ(events_[0].value, 16);
}

TEST_F(AlarmEvaluatorTest, CounterResetsAndOtherNodesAreNoRate) {
  series_ = {MakeSeries("x", {}, MetricType::kCounter)};
  Add("x rate > 10", "fast");
  Add("x rate < 1", "slow");
  EXPECT_EQ(Tick({Of({100, 100})}), "");
  EXPECT_EQ(Tick({Of({103, 103})}), "");
  EXPECT_EQ(Tick({Of({0, 106})}), "") << "one began anew";
  EXPECT_EQ(Tick({Of({3, 109})}), "");
  EXPECT_EQ(Tick({Of({112})}), "") << "one is missing";
  EXPECT_EQ(Tick({Of({9, 115})}), "") << "and there again";
  EXPECT_EQ(Tick({Of({9, 115})}), "+slow");
}

TEST_F(AlarmEvaluatorTest, ARateOfAGaugeMayFall) {
  Add("x rate < -1");
  EXPECT_EQ(Ticks({10, 9.5, 7}), "..+r");
}

TEST_F(AlarmEvaluatorTest, RatiosOfTheStep) {
  series_ = {MakeSeries("x", {{"dev", "a"}}), MakeSeries("y", {{"dev", "a"}})};
  Add("x / y > 50%");
  EXPECT_EQ(Tick({Of({4, 0}), Of({10, 0})}), "");
  EXPECT_EQ(Tick({Of({6, 0}), Of({10, 0})}), "+r");
  EXPECT_DOUBLE_EQ(events_[0].value, 0.6);
  EXPECT_EQ(Tick({Of({0}), Of({0})}), "") << "0 / 0 is no value";
}

TEST_F(AlarmEvaluatorTest, WhatNodesDeriveIsLookedAtUnderItsName) {
  series_ = {MakeSeries("x", {}, MetricType::kCounter), MakeSeries("alarm:rate:x")};
  Add("x any rate < 1");
  EXPECT_EQ(Tick({Of({5, 5}), Of({1, 1})}), "");
  EXPECT_EQ(Tick({Of({6, 5}), Of({1, 0})}), "+r");
  EXPECT_EQ(events_[0].owner.node, 1u);
  ASSERT_EQ(evaluator_.Needs().size(), 1u);
  Add("x any rate < 2", "another");
  EXPECT_EQ(evaluator_.Needs().size(), 1u) << "of what several rules need there is one";
}

TEST_F(AlarmEvaluatorTest, OneLagsBehindTheOthers) {
  Add("x lags 3");
  EXPECT_EQ(Tick({Of({10, 11, 10, 11})}), "");
  EXPECT_EQ(Tick({Of({10, 11, 10, 2})}), "+r");
  EXPECT_EQ(events_[0].owner.node, 3u);
  EXPECT_EQ(events_[0].value, 2);
  EXPECT_EQ(Tick({Of({10, 10, 10, 9.5})}), "-r") << "less than a tenth";
  EXPECT_EQ(Tick({Of({10, 2})}), "") << "of two nobody knows who is slow";
}

TEST_F(AlarmEvaluatorTest, ItIsTheSameThatLagsAllTheTime) {
  Add("x lags 3 for 2s");
  EXPECT_EQ(Tick({Of({1, 10, 10, 10})}), "");
  EXPECT_EQ(Tick({Of({10, 1, 10, 10})}), "");
  EXPECT_EQ(Tick({Of({10, 1, 10, 10})}), "");
  EXPECT_EQ(Tick({Of({10, 1, 10, 10})}), "+r");
}

TEST_F(AlarmEvaluatorTest, OneLeadsTheOthers) {
  Add("x leads 3 by 100%");
  EXPECT_EQ(Tick({Of({10, 10, 10, 19})}), "");
  EXPECT_EQ(Tick({Of({10, 10, 10, 21})}), "+r");
  EXPECT_EQ(events_[0].owner.node, 3u);
}

TEST_F(AlarmEvaluatorTest, TellsWhatWillBeAndHowMuchTimeIsLeft) {
  Add("x any < 50 and x any < 1 in 10s");
  std::string text;
  double value = 100;
  for (; value > 10 && text.empty(); value -= 4) text = Tick({Of({value, 90})});
  EXPECT_EQ(text, "+r");
  EXPECT_NEAR(events_[0].value, 40, 4);
  ASSERT_TRUE(events_[0].left);
  EXPECT_NEAR(static_cast<double>(*events_[0].left) * 1e-9, (events_[0].value - 1) / 4, 1);
}

TEST_F(AlarmEvaluatorTest, WhatStopsFallingIsNoAlarm) {
  Add("x any < 1 in 10s for 3s");
  std::string text;
  for (const double v : {100., 60., 40., 40., 40., 40., 40., 40., 40., 40.})
    text += Tick({Of({v})});
  EXPECT_EQ(text, "");
}

TEST_F(AlarmEvaluatorTest, RulesComeAndGo) {
  Add("x > 1", "a");
  EXPECT_EQ(evaluator_.Add(*ParseRule("a", "x > 2")).code(), Code::kBusy);
  EXPECT_EQ(Tick({Of({5})}), "+a");
  Add("x > 1", "b");
  EXPECT_EQ(Tick({Of({5})}), "+b") << "it knows the series that were there before it";
  EXPECT_TRUE(evaluator_.Remove("a"));
  EXPECT_FALSE(evaluator_.Remove("a"));
  ASSERT_EQ(evaluator_.States().size(), 1u);
  EXPECT_TRUE(evaluator_.States()[0].raised);
}

// As the head lists them: a few, then a row and whatever else, then the next.
TEST_F(AlarmEvaluatorTest, StatesComeAFewAtATimeWhileRulesComeAndGo) {
  series_ = {MakeSeries("x", {{"dev", "a"}}), MakeSeries("x", {{"dev", "b"}})};
  for (const char* name : {"a", "b", "c"}) Add("x > 1", name);
  Add("nothing > 1", "d");
  Tick({Of({5}), Of({0})});
  std::vector<Evaluator::State> states;
  Evaluator::Place place;
  ASSERT_TRUE(evaluator_.NextStates(place, 1, states));
  EXPECT_EQ(states.size(), 1u);
  ASSERT_TRUE(evaluator_.NextStates(place, 2, states));
  ASSERT_EQ(states.size(), 3u) << "the second of a, the first of b";
  EXPECT_TRUE(evaluator_.Remove("a"));
  EXPECT_TRUE(evaluator_.Remove("c"));
  Add("x > 1", "e");
  while (evaluator_.NextStates(place, 1, states)) {
  }
  std::string seen;
  for (const Evaluator::State& state : states) {
    const std::string* dev = state.tags.Find("dev");
    seen += state.rule.name + (dev == nullptr ? "-" : *dev) + (state.raised ? "! " : " ");
  }
  EXPECT_EQ(seen, "aa! ab ba! bb d- ea eb ");
  EXPECT_EQ(evaluator_.States().size(), 5u);
}

TEST_F(AlarmEvaluatorTest, ThereAreAsManyAsThereMayBe) {
  for (size_t i = 0; i < kMaxRules; ++i) Add("x > 1", "r" + std::to_string(i));
  EXPECT_EQ(evaluator_.Add(*ParseRule("more", "x > 1")).code(), Code::kLimit);
}

TEST_F(AlarmEvaluatorTest, DescribesWhatItFound) {
  series_ = {MakeSeries("x", {{"dev", "a"}}, MetricType::kGauge, Reduction::kSum, "bytes")};
  Add("x any > 1K message \"{value} on {dev}, {left} left {what} {\"", "said");
  Add("x any > 1K", "itself");
  EXPECT_EQ(Tick({Of({1536})}), "+said +itself");
  const auto states = evaluator_.States();
  EXPECT_EQ(Describe(states[0].rule, events_[0]), "1.5 KiB on a, not long left {what} {");
  EXPECT_EQ(Describe(states[1].rule, events_[1]), "x any > 1024: 1.5 KiB, dev=a");
}

// The same by the words of the documentation, from all values so far, each tick anew.
class Naive {
 public:
  Naive(const Rule& rule, Nanos forget) : rule_(rule), forget_(forget) {}

  bool Raised(Nanos time, double value) {
    all_.emplace_back(time, value);
    const Condition& c = rule_.conditions[0];
    const auto holds = [&](double v) { return Compares(c.test, v, c.bound); };
    const auto calm = [&](double v) {
      return !holds(v) && !(rule_.clear && Compares(c.test, v, *rule_.clear));
    };
    // From the newest value back: how long has it been so?
    Nanos from = 0, known = 0;
    for (auto at = all_.rbegin(); at != all_.rend() && at->first > turned_; ++at) {
      if (std::isnan(at->second)) continue;
      if (raised_ ? !calm(at->second) : !holds(at->second)) break;
      if (from != 0 && from - at->first > forget_) break;
      from = at->first;
    }
    for (auto at = all_.rbegin(); at != all_.rend() && known == 0; ++at) {
      if (!std::isnan(at->second)) known = at->first;
    }
    bool turns =
        !std::isnan(value) && from != 0 && time - from >= (raised_ ? rule_.Calm() : rule_.hold);
    if (raised_ && known != 0 && time - known > forget_) turns = true;
    if (turns) {
      raised_ = !raised_;
      turned_ = time;
    }
    return raised_;
  }

 private:
  const Rule& rule_;
  const Nanos forget_;
  std::vector<std::pair<Nanos, double>> all_;
  bool raised_ = false;
  Nanos turned_ = 0;
};

TEST_F(AlarmEvaluatorTest, AgreesWithTheWordsOfItsDocumentation) {
  std::mt19937 random(11);
  const std::vector<std::string> rules = {"x > 5",
                                          "x >= 5 for 3s",
                                          "x < 5 for 2s calm 4s",
                                          "x > 5 for 1s clear 3 calm 2s",
                                          "x <= 2 clear 6 calm 0s",
                                          "x != 4 for 5s",
                                          "x = 4 calm 3s"};
  for (int round = 0; round < 300; ++round) {
    const Rule rule = *ParseRule("r", rules[random() % rules.size()]);
    Evaluator evaluator(kSecond);
    ASSERT_TRUE(evaluator.Add(rule).ok());
    Naive naive(rule, Evaluator::kForget);
    Nanos time = 1000 * kSecond;
    bool raised = false;
    double value = 5;
    for (int tick = 0; tick < 200; ++tick) {
      // Times are not even, values stay for a while and are missing for a while.
      time += (1 + random() % 3) * kSecond / 2;
      if (random() % 40 == 0) time += 25 * kSecond;
      if (random() % 3 == 0) value = random() % 4 == 0 ? kNone : static_cast<double>(random() % 10);
      std::vector<Event> events;
      const std::vector<Reduced> row = {Of({value})};
      evaluator.Evaluate(series_, {time, &row, true}, events);
      for (const Event& event : events) {
        ASSERT_NE(event.raised, raised);
        raised = event.raised;
      }
      ASSERT_EQ(raised, naive.Raised(time, value))
          << ToText(rule) << " in round " << round << " at tick " << tick;
    }
  }
}

}  // namespace
}  // namespace sonde::alarms
