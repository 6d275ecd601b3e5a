// Periods of series that are known: of programs that write checkpoints, with all that may lie over
// them; and of those that have none.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <numbers>
#include <random>
#include <string>

#include "insight/periods.h"

namespace sonde::insight {
namespace {

constexpr double kMissing = std::numeric_limits<double>::quiet_NaN();

using Values = std::vector<double>;

Periodicity Find(const Values& values, double interval = 1, const PeriodOptions& options = {}) {
  Result<Periodicity> found = FindPeriod(values, interval, options);
  EXPECT_TRUE(found.ok()) << found.status().message();
  return *std::move(found);
}

// Bursts of `length` points, one each `period` points.
Values Bursts(size_t n, double period, size_t length, double jitter = 0, double phase = 3) {
  std::mt19937_64 random(4);
  std::normal_distribution<double> normal(0, jitter);
  Values values(n);
  for (double at = phase; at < static_cast<double>(n); at += period * (1 + normal(random))) {
    const auto first = static_cast<size_t>(std::lround(at));
    for (size_t t = first; t < first + length && t < n; ++t) values[t] = 1;
  }
  return values;
}

Values WithNoise(Values values, double sd) {
  std::mt19937_64 random(5);
  std::normal_distribution<double> normal(0, sd);
  for (double& value : values) value += normal(random);
  return values;
}

// ---- What repeats itself ----

TEST(Periods, OfAWave) {
  Values values(600);
  for (size_t t = 0; t < values.size(); ++t) {
    values[t] = 7 + 3 * std::cos(2 * std::numbers::pi * static_cast<double>(t) / 50 + 0.5);
  }
  const Periodicity found = Find(values, 0.1);
  ASSERT_TRUE(found.dominant) << found.why_not;
  EXPECT_NEAR(*found.period, 5, 0.01);
  EXPECT_NEAR(found.correlation, 1, 0.01);
  EXPECT_EQ(found.sampling, 10);
  EXPECT_EQ(found.samples, 600u);
  const Wave& wave = *found.dominant;
  EXPECT_NEAR(wave.frequency, 0.2, 1e-12);
  EXPECT_NEAR(wave.amplitude * 2 / 600, 3, 0.02);
  EXPECT_NEAR(wave.phase, 0.5, 0.02);
  EXPECT_GT(wave.confidence, 0.99);
  EXPECT_EQ(found.strongest.size(), 10u);
  EXPECT_EQ(found.strongest[0].frequency, wave.frequency);
  EXPECT_TRUE(found.why_not.empty());
}

TEST(Periods, OfCheckpoints) {
  struct Case {
    size_t points;
    double period;
    size_t length;
  };
  for (const Case& one : {Case{600, 60, 30},
                          {600, 60, 6},
                          {600, 60, 2},
                          {300, 60, 6},
                          {600, 10, 5},
                          {600, 7.5, 2},
                          {600, 4, 2},
                          {600, 2, 1},
                          {600, 37.3, 5},
                          {3600, 37.3, 5},
                          {3600, 300, 20},
                          {10'000, 301.7, 12}}) {
    SCOPED_TRACE(std::to_string(one.period) + " " + std::to_string(one.points));
    const Periodicity found = Find(Bursts(one.points, one.period, one.length));
    ASSERT_TRUE(found.period) << found.why_not;
    EXPECT_NEAR(*found.period / one.period, 1, 0.005);
    EXPECT_NEAR(found.dominant->frequency * one.period, 1, 0.1);
    EXPECT_GT(found.correlation, 0.6);
  }
}

TEST(Periods, NoiseLiesOverThem) {
  const Periodicity found = Find(WithNoise(Bursts(600, 60, 30), 0.5));
  ASSERT_TRUE(found.period) << found.why_not;
  EXPECT_NEAR(*found.period, 60, 1);
  EXPECT_LT(found.correlation, 0.7);
  EXPECT_NEAR(Find(WithNoise(Bursts(600, 60, 6), 0.2)).period.value_or(0), 60, 1);
}

TEST(Periods, CheckpointsAreNotOnTheSecond) {
  const Periodicity found = Find(Bursts(900, 60, 12, 0.03));
  ASSERT_TRUE(found.period) << found.why_not;
  EXPECT_NEAR(*found.period, 60, 2);
}

// Memory that is lost all the time, and checkpoints that grow.
TEST(Periods, DriftsAreTakenOff) {
  Values values = Bursts(600, 60, 12);
  for (size_t t = 0; t < values.size(); ++t) {
    values[t] = values[t] * (1 + static_cast<double>(t) / 600) + static_cast<double>(t) / 20;
  }
  const Periodicity found = Find(values);
  ASSERT_TRUE(found.period) << found.why_not;
  EXPECT_NEAR(*found.period, 60, 0.5);
}

TEST(Periods, GapsAddNothing) {
  Values values = Bursts(600, 60, 12);
  for (const size_t first : {100, 333, 470}) {
    for (size_t t = first; t < first + 40; ++t) values[t] = kMissing;
  }
  const Periodicity found = Find(values);
  ASSERT_TRUE(found.period) << found.why_not;
  EXPECT_NEAR(*found.period, 60, 0.5);
  // Every tenth value, as of what is read every ten seconds: its gaps are no period.
  Values noise = WithNoise(Values(600), 1);
  for (size_t t = 0; t < noise.size(); ++t) {
    if (t % 10 >= 6) noise[t] = kMissing;
  }
  EXPECT_FALSE(Find(noise).period);
}

// A wave of 50 points, and one that is `ratio` times as fast and has `share` of its height.
Values TwoWaves(double ratio, double share) {
  Values values(1200);
  for (size_t t = 0; t < values.size(); ++t) {
    const double turns = 2 * std::numbers::pi * static_cast<double>(t) / 50;
    values[t] = std::sin(turns) + share * std::sin(turns * ratio);
  }
  return values;
}

TEST(Periods, OfTwoWavesTheOneThatBringsTheSeriesBack) {
  const Periodicity found = Find(TwoWaves(3.125, 0.98));
  ASSERT_TRUE(found.dominant) << found.why_not;
  EXPECT_NEAR(found.dominant->frequency, 0.02, 1e-9);
  EXPECT_NEAR(*found.period, 50, 1);
  // Here neither does, alone.
  EXPECT_FALSE(Find(TwoWaves(3.333, 0.98)).dominant);
}

// ---- What does not ----

TEST(Periods, WhatIsConstantHasNone) {
  for (const double value : {0.0, 64.0 * (1 << 30), -1e-9}) {
    const Periodicity found = Find(Values(600, value));
    EXPECT_FALSE(found.period);
    EXPECT_FALSE(found.dominant);
    EXPECT_EQ(found.strongest.size(), 10u);
    EXPECT_EQ(found.strongest.at(0).amplitude, 0);
    EXPECT_EQ(found.why_not, "it is constant, or changes at one rate");
  }
  Values line(600);
  for (size_t t = 0; t < line.size(); ++t) line[t] = 1e12 + 0.1 * static_cast<double>(t);
  EXPECT_FALSE(Find(line).period);
  Values step(600, 1);
  for (size_t t = 200; t < step.size(); ++t) step[t] = 2;
  EXPECT_FALSE(Find(step).period);
  Values peak(600, 1);
  peak[77] = 100;
  EXPECT_FALSE(Find(peak).period);
}

// Series by name: each call makes another one.
using Maker = std::function<Values(size_t n, std::mt19937_64& random)>;

Values Remembering(size_t n, double share, std::mt19937_64& random) {
  std::normal_distribution<double> normal;
  Values values(n);
  double now = 0;
  for (int i = 0; i < 300; ++i) now = share * now + normal(random);
  for (double& value : values) value = now = share * now + normal(random);
  return values;
}

Values Walk(size_t n, std::mt19937_64& random) {
  std::normal_distribution<double> normal;
  Values values(n);
  double now = 0;
  for (double& value : values) value = now += normal(random);
  return values;
}

Values RandomBursts(size_t n, std::mt19937_64& random) {
  std::bernoulli_distribution begins(0.03);
  Values values(n);
  for (size_t t = 0; t < n; ++t) {
    if (!begins(random)) continue;
    for (size_t i = t; i < std::min(n, t + 5); ++i) values[i] += 1;
  }
  return values;
}

Values Switched(size_t n, std::mt19937_64& random) {
  std::bernoulli_distribution flips(0.05);
  Values values(n);
  bool on = false;
  for (double& value : values) value = (on = on != flips(random)) ? 1 : 0;
  return values;
}

TEST(Periods, NoiseHasNone) {
  const std::pair<const char*, Maker> makers[] = {
      {"white", [](size_t n, auto& random) { return Remembering(n, 0, random); }},
      {"half remembered", [](size_t n, auto& random) { return Remembering(n, 0.5, random); }},
      {"remembered", [](size_t n, auto& random) { return Remembering(n, 0.9, random); }},
      {"long remembered", [](size_t n, auto& random) { return Remembering(n, 0.98, random); }},
      {"walk", Walk},
      {"bursts", RandomBursts},
      {"switched", Switched}};
  std::mt19937_64 random(1);
  int periodic = 0, all = 0;
  for (const auto& [name, make] : makers) {
    int of_kind = 0;
    for (const size_t n : {60, 120, 300, 600, 3000}) {
      for (int i = 0; i < (n < 1000 ? 150 : 20); ++i, ++all)
        of_kind += Find(make(n, random)).period ? 1 : 0;
    }
    EXPECT_LE(of_kind, 3) << name;
    periodic += of_kind;
    RecordProperty(std::string("periodic: ") + name, of_kind);
  }
  EXPECT_LE(periodic, all / 500) << "of " << all;
}

TEST(Periods, FewPointsShowNone) {
  EXPECT_FALSE(Find({}).period);
  EXPECT_FALSE(Find({1}).period);
  EXPECT_TRUE(Find({1}).strongest.empty());
  EXPECT_EQ(Find({1, 2, 1}).strongest.size(), 1u);
  EXPECT_FALSE(Find(Bursts(20, 2, 1)).period);
  EXPECT_EQ(Find(Bursts(20, 2, 1)).why_not,
            "20 of 20 points are there; 24 are needed, and half of all");
  Values values = Bursts(600, 60, 12);
  for (size_t t = 0; t < 301; ++t) values[t] = kMissing;
  EXPECT_FALSE(Find(values).period);
  // Four times is not enough, however exactly.
  EXPECT_FALSE(Find(Bursts(240, 60, 30)).period);
}

TEST(Periods, CheckpointsAtRandomTimesHaveNone) {
  EXPECT_FALSE(Find(Bursts(1200, 60, 12, 0.5)).period);
}

// ---- Options ----

TEST(Periods, OptionsAreFollowed) {
  const Values values = WithNoise(Bursts(600, 60, 30), 0.2);
  EXPECT_EQ(Find(values, 1, {.frequencies = 3}).strongest.size(), 3u);
  EXPECT_TRUE(Find(values, 1, {.frequencies = 0}).strongest.empty());
  EXPECT_EQ(Find(values, 1, {.frequencies = 1000}).strongest.size(), 300u);
  const double power = Find(values).dominant.value().confidence;
  const double amplitude = Find(values, 1, {.power = false}).dominant.value().confidence;
  EXPECT_GT(power, amplitude);
  // With a tolerance of 0.3 the lower wave is a candidate too.
  const Values two = TwoWaves(3.125, 0.75);
  EXPECT_GT(Find(two, 1, {.tolerance = 0.3}).strongest.at(1).confidence,
            Find(two).strongest.at(1).confidence + 0.1);
}

TEST(Periods, WrongQuestionsAreRefused) {
  EXPECT_FALSE(FindPeriod(Values(100), 0).ok());
  EXPECT_FALSE(FindPeriod(Values(100), kMissing).ok());
  EXPECT_FALSE(FindPeriod(Values(100), 1, {.tolerance = 0}).ok());
  EXPECT_FALSE(FindPeriod(Values(100), 1, {.tolerance = 1.1}).ok());
  EXPECT_FALSE(FindPeriod(Values{1, std::numeric_limits<double>::infinity()}, 1).ok());
}

}  // namespace
}  // namespace sonde::insight
