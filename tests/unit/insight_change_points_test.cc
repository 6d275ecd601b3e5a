// Changes of level: found where they were made, and none in noise of all kinds.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "insight/change_points.h"
#include "insight/robust.h"
#include "tests/unit/insight_noise.h"

namespace sonde::insight {
namespace {

using SeriesMaker = std::function<std::vector<double>(SeededNoise&, size_t)>;

std::vector<size_t> ChangesIn(const std::vector<std::vector<double>>& series) {
  const auto changes = FindChanges(series);
  EXPECT_TRUE(changes.ok()) << changes.status().message();
  return changes.ok() ? *changes : std::vector<size_t>();
}

struct Alarms {
  double series = 0;   // share of them that have a change
  double changes = 0;  // for each series
};
Alarms AlarmsIn(const SeriesMaker& made, size_t length, int tries, size_t joined = 1) {
  SeededNoise noise(length);
  Alarms out;
  for (int i = 0; i < tries; ++i) {
    std::vector<std::vector<double>> all;
    for (size_t k = 0; k < joined; ++k) all.push_back(made(noise, length));
    const size_t found = ChangesIn(all).size();
    out.series += (found > 0) / static_cast<double>(tries);
    out.changes += static_cast<double>(found) / tries;
  }
  return out;
}

SeriesMaker Remembering(double memory) {
  return [=](SeededNoise& noise, size_t length) { return noise.Series(length, memory); };
}

TEST(ChangePoints, NoiseHasNone) {
  for (const size_t length : {60, 200, 600, 3600}) {
    const int tries = length > 1000 ? 50 : 200;
    SCOPED_TRACE(length);
    EXPECT_LE(AlarmsIn(Remembering(0), length, tries).series, 0.01);
    EXPECT_LE(AlarmsIn(Remembering(0.5), length, tries).series, 0.01);
    EXPECT_LE(AlarmsIn(Remembering(0), length, tries / 3, 6).series, 0.01);
    // An hour's tenth hardly shows how long noise remembers.
    const double few = length < 100 ? 0.06 : 0.02;
    EXPECT_LE(AlarmsIn(Remembering(0.8), length, tries).series, few);
    EXPECT_LE(AlarmsIn(Remembering(0.9), length, tries).series, few);
    const auto heavy = [](SeededNoise& noise, size_t n) {
      std::student_t_distribution<double> t(3);
      std::vector<double> out(n);
      for (double& value : out) value = t(noise.random);
      return out;
    };
    EXPECT_LE(AlarmsIn(heavy, length, tries).series, 0.01);
  }
}

TEST(ChangePoints, ARandomWalkHasHardlyAny) {
  const auto walk = [](SeededNoise& noise, size_t n) {
    std::vector<double> out(n);
    double at = 0;
    for (double& value : out) value = at += noise.Normal();
    return out;
  };
  for (const size_t length : {60, 200, 600, 3600}) {
    EXPECT_LE(AlarmsIn(walk, length, 60).changes, 0.15) << length;
  }
}

TEST(ChangePoints, ATrendIsNone) {
  for (const double rise : {3.0, 10.0, 100.0}) {
    const auto trend = [=](SeededNoise& noise, size_t n) {
      std::vector<double> out = noise.Series(n);
      for (size_t i = 0; i < n; ++i) out[i] += rise * static_cast<double>(i) / double(n);
      return out;
    };
    for (const size_t length : {60, 600, 3600}) {
      // A minute of noise on a small rise may as well be a step.
      EXPECT_LE(AlarmsIn(trend, length, 50).changes, length < 100 ? 0.15 : 0.05)
          << length << " by " << rise;
    }
  }
  std::vector<double> line(500);
  for (size_t i = 0; i < line.size(); ++i) line[i] = 0.1 * static_cast<double>(i);
  EXPECT_TRUE(ChangesIn({line}).empty());
}

TEST(ChangePoints, WhatRepeatsItselfIsNone) {
  for (const double strength : {1.0, 5.0}) {
    for (const double period : {10.0, 37.0, 100.0}) {
      const auto wave = [=](SeededNoise& noise, size_t n) {
        std::vector<double> out = noise.Series(n);
        for (size_t i = 0; i < n; ++i) {
          out[i] += strength * std::sin(2 * M_PI * static_cast<double>(i) / period);
        }
        return out;
      };
      for (const size_t length : {600, 3600}) {
        EXPECT_LE(AlarmsIn(wave, length, 40).changes, 0.1) << length << ", " << period;
      }
    }
  }
  // A minute of work, of which 20 s are something else.
  const auto cycles = [](SeededNoise& noise, size_t n) {
    std::vector<double> out = noise.Series(n);
    for (size_t i = 0; i < n; ++i) out[i] += i % 60 < 20 ? 10 : 0;
    return out;
  };
  EXPECT_LE(AlarmsIn(cycles, 600, 40).changes, 0.1);
  EXPECT_LE(AlarmsIn(cycles, 3600, 40).changes, 0.1);
  // Bursts at random times.
  const auto bursts = [](SeededNoise& noise, size_t n) {
    std::vector<double> out(n);
    for (double& value : out) value = noise.Below(10) == 0 ? 5 + noise.Normal() : 0;
    return out;
  };
  EXPECT_LE(AlarmsIn(bursts, 600, 100).changes, 0.05);
}

struct Recall {
  double found = 0;  // share of the changes, within two samples
  double extra = 0;  // changes besides, for each series
};
// `count` changes of `step` up or down, at random places that are not close to each other.
Recall RecallOf(size_t length, double step, double memory, size_t count, int tries,
                double rise = 0) {
  SeededNoise noise(length + count);
  double hits = 0, all = 0;
  for (int i = 0; i < tries; ++i) {
    std::vector<double> series = noise.Series(length, memory);
    std::vector<size_t> made;
    const size_t each = length / (count + 1);
    for (size_t k = 1; k <= count; ++k)
      made.push_back(k * each - each / 5 + noise.Below(each / 5 * 2));
    double level = 0;
    size_t next = 0;
    for (size_t t = 0; t < length; ++t) {
      if (next < count && t == made[next]) {
        level += noise.Below(2) == 0 ? step : -step;
        ++next;
      }
      series[t] += level + rise * static_cast<double>(t) / double(length);
    }
    const std::vector<size_t> found = ChangesIn({series});
    all += static_cast<double>(found.size());
    for (const size_t at : made) {
      hits += std::any_of(found.begin(), found.end(),
                          [&](size_t one) { return one + 2 >= at && at + 2 >= one; });
    }
  }
  return {hits / static_cast<double>(count) / tries, (all - hits) / tries};
}

TEST(ChangePoints, StepsOfThreeDeviationsAreFoundWithinTwoSamples) {
  for (const size_t length : {600, 3600}) {
    for (const size_t count : {1, 3, 8}) {
      const Recall recall = RecallOf(length, 3, 0, count, 60);
      EXPECT_GE(recall.found, 0.98) << length << ", " << count;
      EXPECT_LE(recall.extra, 0.02 * double(count) + 0.02) << length << ", " << count;
    }
  }
  const Recall five = RecallOf(100, 5, 0, 3, 200);
  EXPECT_GE(five.found, 0.99);
  EXPECT_LE(five.extra, 0.01);
}

TEST(ChangePoints, InNoiseThatRemembersStepsOfFiveAreFound) {
  for (const double memory : {0.5, 0.8}) {
    const Recall recall = RecallOf(600, 5, memory, 3, 100);
    EXPECT_GE(recall.found, 0.97) << memory;
    EXPECT_LE(recall.extra, 0.05) << memory;
  }
}

TEST(ChangePoints, OnATrendStepsAreFound) {
  for (const size_t length : {600, 3600}) {
    const Recall recall = RecallOf(length, 5, 0, 2, 100, 20);
    EXPECT_GE(recall.found, 0.97) << length;
    EXPECT_LE(recall.extra, 0.05) << length;
  }
}

TEST(ChangePoints, ADayKnowsItsChangesToTheSample) {
  const Recall recall = RecallOf(86'400, 3, 0, 6, 5);
  EXPECT_GE(recall.found, 0.96);
  EXPECT_LE(recall.extra, 0.2);
}

TEST(ChangePoints, SeveralSeriesTogetherShowWhatOneDoesNot) {
  SeededNoise noise(3);
  int alone = 0, together = 0;
  for (int i = 0; i < 50; ++i) {
    std::vector<std::vector<double>> all;
    for (int k = 0; k < 6; ++k) {
      all.push_back(noise.Series(60));
      for (size_t t = 30; t < 60; ++t) all.back()[t] += 1.3;
    }
    alone += !ChangesIn({all[0]}).empty();
    together += ChangesIn(all).size() == 1;
  }
  EXPECT_GE(together, 48);
  EXPECT_LT(alone, 35);
}

TEST(ChangePoints, SegmentsHaveTheMeansOfTheirSeries) {
  std::vector<double> one(100, 1), other(100, 5);
  for (size_t t = 40; t < 100; ++t) one[t] = 3;
  for (size_t t = 70; t < 100; ++t) other[t] = kNoNumber;
  one[10] = kNoNumber;
  const auto found = FindSegments(std::vector<std::vector<double>>{one, other});
  ASSERT_TRUE(found.ok());
  ASSERT_EQ(found->size(), 2u);
  EXPECT_EQ((*found)[0].begin, 0u);
  EXPECT_EQ((*found)[0].end, 40u);
  EXPECT_EQ((*found)[0].means, (std::vector<double>{1, 5}));
  EXPECT_EQ((*found)[1].end, 100u);
  EXPECT_EQ((*found)[1].means, (std::vector<double>{3, 5}));
}

TEST(ChangePoints, SingleValuesFarOffAndMissingOnesAreNoChange) {
  std::vector<double> still(300, 1);
  still[100] = 1000;
  EXPECT_TRUE(ChangesIn({still}).empty());
  SeededNoise noise(4);
  std::vector<double> holes = noise.Series(600);
  for (size_t t = 0; t < 600; ++t) {
    if (t % 3 != 0 || (t > 100 && t < 200)) holes[t] = kNoNumber;
    if (t >= 300) holes[t] += 10;
  }
  EXPECT_EQ(ChangesIn({holes}), (std::vector<size_t>{300}));
}

TEST(ChangePoints, LittleOrNothingIsOneSegment) {
  EXPECT_TRUE(ChangesIn({}).empty());
  EXPECT_TRUE(ChangesIn({{}}).empty());
  EXPECT_TRUE(ChangesIn({{1, 2, 3}}).empty());
  EXPECT_TRUE(ChangesIn({std::vector<double>(100, 7)}).empty());
  EXPECT_TRUE(ChangesIn({std::vector<double>(100, kNoNumber)}).empty());
  EXPECT_EQ(FindChanges(std::vector<std::vector<double>>{{1, 2}, {1}}).status().code(),
            Code::kInvalid);
  EXPECT_EQ(FindChanges(std::vector<std::vector<double>>{{1, HUGE_VAL}}).status().code(),
            Code::kInvalid);
}

}  // namespace
}  // namespace sonde::insight
