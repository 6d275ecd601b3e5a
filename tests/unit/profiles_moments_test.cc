// What a profile keeps of phases, remarks, figures of merit and histograms.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "core/histogram_buckets.h"
#include "profiles/model/moments_builder.h"
#include "profiles/model/profile.h"
#include "tests/unit/profiles_fixture.h"

namespace sonde::profiles_moments_test {
namespace {

using enum AnnotationKind;
using testing::ElementsAre;
using testing::HasSubstr;

// Times are in seconds.
Annotation At(AnnotationKind kind, const std::string& text, double first, double last = -1,
              uint64_t count = 1) {
  Annotation a;
  a.kind = kind;
  a.text = text;
  a.first = static_cast<Nanos>(first * kSecond);
  a.last = last < 0 ? a.first : static_cast<Nanos>(last * kSecond);
  a.count = count;
  return a;
}

void Add(MomentsBuilder& builder, const std::vector<Annotation>& all) {
  for (const Annotation& a : all) builder.Add(a);
}

// "name begin-end began/ended", an end that is not known being "..".
std::vector<std::string> Phases(const MomentsBuilder& builder) {
  std::vector<std::string> texts;
  for (const Phase& p : builder.Moments().phases) {
    const auto seconds = [](Nanos t) {
      std::string text = std::to_string(static_cast<double>(t) / kSecond);
      return text.substr(0, text.find_last_not_of('0') + 1);
    };
    texts.push_back(p.name + " " + seconds(p.begin) + "-" + (p.end == 0 ? ".." : seconds(p.end)) +
                    " " + std::to_string(p.began) + "/" + std::to_string(p.ended));
  }
  return texts;
}

// As an acting head does; together they are the phases as they were.
TEST(MomentsBuilder, GoesOnWithThePhasesThatAnotherLeftOpen) {
  MomentsBuilder before;
  Add(before, {At(kPhaseBegin, "solve", 1, 1, 4), At(kPhaseEnd, "solve", 2),
               At(kPhaseBegin, "io", 2), At(kPhaseEnd, "io", 3)});
  ASSERT_EQ(before.OpenPhases().size(), 1u);
  EXPECT_EQ(before.OpenPhases()[0], (OpenPhase{"solve", kSecond, 3, {0, 0}}));
  MomentsBuilder after;
  after.Continue(before.OpenPhases());
  EXPECT_THAT(Phases(after), ElementsAre("solve 1.-.. 0/0"));
  EXPECT_EQ(after.OpenPhases(), before.OpenPhases());
  // Somebody is in the next one before the last has left this one.
  Add(after,
      {At(kPhaseEnd, "solve", 4, 4, 2), At(kPhaseBegin, "solve", 5), At(kPhaseEnd, "io", 5)});
  EXPECT_THAT(Phases(after), ElementsAre("solve 1.-4. 1/2"));
  EXPECT_EQ(after.OpenPhases()[0].inside, 2u);
  Add(after, {At(kPhaseEnd, "solve", 6, 7, 2), At(kPhaseBegin, "solve", 8)});
  EXPECT_THAT(Phases(after), ElementsAre("solve 1.-7. 1/4", "solve 8.-.. 1/0"));
}

TEST(MomentsBuilder, APhaseLastsFromTheFirstBeginToTheLastEnd) {
  MomentsBuilder builder;
  Add(builder, {At(kPhaseBegin, "solve", 1.1, 1.3, 4), At(kPhaseBegin, "io", 1.5)});
  EXPECT_THAT(Phases(builder), ElementsAre("solve 1.1-.. 4/0", "io 1.5-.. 1/0"));
  Add(builder, {At(kPhaseEnd, "solve", 2.5, 2.75, 3)});
  Add(builder, {At(kPhaseEnd, "solve", 3.5)});
  EXPECT_THAT(Phases(builder), ElementsAre("solve 1.1-3.5 4/4", "io 1.5-.. 1/0"));
}

TEST(MomentsBuilder, APhaseThatRepeatsHasSeveralIntervals) {
  MomentsBuilder builder;
  Add(builder, {At(kPhaseBegin, "step", 0.5, 0.5, 2)});
  // As merged at a tick: the kinds in their order, not the times.
  Add(builder, {At(kPhaseBegin, "step", 1.5, 1.6, 2), At(kPhaseEnd, "step", 1.25, 1.25, 2)});
  Add(builder, {At(kPhaseEnd, "step", 2.25, 2.25, 2)});
  EXPECT_THAT(Phases(builder), ElementsAre("step 0.5-1.25 2/2", "step 1.5-2.25 2/2"));
}

TEST(MomentsBuilder, ShortPhasesOfOneTickAreOneInterval) {
  MomentsBuilder builder;
  Add(builder, {At(kPhaseBegin, "step", 0.25, 0.75, 10), At(kPhaseEnd, "step", 0.5, 0.875, 9)});
  Add(builder, {At(kPhaseBegin, "step", 1.25, 1.5, 10), At(kPhaseEnd, "step", 1.125, 1.75, 11)});
  EXPECT_THAT(Phases(builder), ElementsAre("step 0.25-1.75 20/20"));
}

TEST(MomentsBuilder, TheOrderOfArrivalDoesNotMatter) {
  // Three nodes, each in step with itself, tick by tick.
  std::vector<Annotation> all;
  for (int step = 0; step < 6; ++step) {
    for (const double node : {0.0, 0.0625, 0.125}) {
      all.push_back(At(kPhaseBegin, "solve", step + node, step + node + 0.03125, 2));
      all.push_back(At(kPhaseEnd, "solve", step + node + 0.5, step + node + 0.5625, 2));
    }
  }
  std::mt19937 random(7);
  for (int round = 0; round < 50; ++round) {
    MomentsBuilder builder;
    Add(builder, all);
    ASSERT_THAT(Phases(builder),
                ElementsAre("solve 0.-0.6875 6/6", "solve 1.-1.6875 6/6", "solve 2.-2.6875 6/6",
                            "solve 3.-3.6875 6/6", "solve 4.-4.6875 6/6", "solve 5.-5.6875 6/6"));
    std::shuffle(all.begin(), all.end(), random);
  }
}

TEST(MomentsBuilder, AnEndWithoutItsBeginIsNoPhase) {
  MomentsBuilder builder;
  Add(builder, {At(kPhaseEnd, "solve", 2)});
  EXPECT_TRUE(builder.Moments().phases.empty());
  Add(builder, {At(kPhaseBegin, "solve", 5), At(kPhaseEnd, "solve", 6)});
  Add(builder, {At(kPhaseBegin, "solve", 1)});  // it was only late
  EXPECT_THAT(Phases(builder), ElementsAre("solve 1.-2. 1/1", "solve 5.-6. 1/1"));
}

TEST(MomentsBuilder, WhatComesVeryLateStillCounts) {
  MomentsBuilder builder;
  Add(builder, {At(kPhaseBegin, "solve", 1), At(kPhaseBegin, "solve", 1.25)});
  constexpr int kMore = 3 * static_cast<int>(PhaseTrack::kMaxPending);
  for (int i = 0; i < kMore; ++i) {
    Add(builder, {At(kPhaseBegin, "solve", 10 + i), At(kPhaseEnd, "solve", 10.5 + i)});
  }
  EXPECT_EQ(builder.Moments().phases.size(), 1u) << "two have not ended";
  Add(builder, {At(kPhaseEnd, "solve", 2), At(kPhaseEnd, "solve", 2.25)});
  const auto phases = builder.Moments().phases;
  ASSERT_GT(phases.size(), 1u);
  EXPECT_GT(phases[0].began, 100u);
  EXPECT_GT(phases[0].end, 100 * kSecond) << "what others have done since is not undone";
  uint64_t began = 0;
  uint64_t ended = 0;
  for (const Phase& phase : phases) began += phase.began, ended += phase.ended;
  EXPECT_EQ(began, uint64_t{kMore} + 2);
  EXPECT_EQ(ended, uint64_t{kMore} + 2);
  EXPECT_EQ(phases.back().end, static_cast<Nanos>((kMore + 9.5) * kSecond));
}

TEST(MomentsBuilder, TooManyIntervalsArePutTogetherAndNoTimeIsLostFromSight) {
  MomentsBuilder builder;
  Add(builder, {At(kPhaseBegin, "whole", 0.5)});
  constexpr int kSteps = 10'000;
  for (int i = 1; i <= kSteps; ++i) {
    Add(builder, {At(kPhaseBegin, "step", i), At(kPhaseEnd, "step", i + 0.25)});
  }
  Add(builder, {At(kPhaseEnd, "whole", kSteps + 1)});
  const StepMoments moments = builder.Moments();
  EXPECT_LE(moments.phases.size(), MomentsBuilder::kMaxIntervals + PhaseTrack::kMaxPending);
  EXPECT_GE(moments.phases.size(), MomentsBuilder::kMaxIntervals / 2);
  EXPECT_EQ(moments.left_out, 0u);
  const auto totals = PhaseTotals(moments, 0, false);
  ASSERT_EQ(totals.size(), 2u);
  EXPECT_EQ(totals[0].name, "whole");
  EXPECT_EQ(totals[0].seconds, kSteps + 0.5);
  EXPECT_EQ(totals[1].seconds, kSteps * 0.25);
  EXPECT_EQ(totals[1].began, uint64_t{kSteps});
  EXPECT_EQ(totals[1].ended, uint64_t{kSteps});
  Profile profile;
  profile.moments = moments;
  EXPECT_TRUE(ProfileFromJson(ProfileToJson(profile)).ok());
}

TEST(MomentsBuilder, ThereIsALimitToNamesAndItTells) {
  MomentsBuilder builder;
  constexpr size_t kMany = MomentsBuilder::kMaxRemarks + 5;
  for (size_t i = 0; i < kMany; ++i) {
    Add(builder, {At(kPhaseBegin, "p" + std::to_string(i), static_cast<double>(i)),
                  At(kRemark, "r" + std::to_string(i), static_cast<double>(i)),
                  At(kFigure, "f" + std::to_string(i), static_cast<double>(i))});
  }
  const StepMoments moments = builder.Moments();
  EXPECT_EQ(moments.phases.size(), MomentsBuilder::kMaxPhases);
  EXPECT_EQ(moments.remarks.size(), MomentsBuilder::kMaxRemarks);
  EXPECT_EQ(builder.figures().size(), MomentsBuilder::kMaxFigures);
  EXPECT_EQ(moments.left_out, 3 * kMany - MomentsBuilder::kMaxPhases - MomentsBuilder::kMaxRemarks -
                                  MomentsBuilder::kMaxFigures);
  EXPECT_EQ(MissingMoments(0, 0), "");
  EXPECT_THAT(MissingMoments(3, moments.left_out), HasSubstr("3 remarks, phases"));
}

TEST(MomentsBuilder, RemarksTogetherAreOneAndOthersAreNot) {
  MomentsBuilder builder;
  Annotation first = At(kRemark, "checkpoint", 1.98, 1.99, 3);
  first.node = 2;
  first.task = 5;
  Add(builder, {At(kRemark, "checkpoint", 2.01), At(kRemark, "restart", 2.01)});
  builder.Add(first);
  Add(builder, {At(kRemark, "checkpoint", 2.5)});
  const auto remarks = builder.Moments().remarks;
  ASSERT_EQ(remarks.size(), 3u);
  EXPECT_EQ(remarks[0].text, "checkpoint");
  EXPECT_EQ(remarks[0].count, 4u);
  EXPECT_EQ(remarks[0].first, first.first);
  EXPECT_EQ(remarks[0].by, (Owner{2, 5}));
  EXPECT_EQ(remarks[1].text, "restart");
  EXPECT_EQ(remarks[2].count, 1u);
}

TEST(MomentsBuilder, OfAFigureTheLastWordStands) {
  MomentsBuilder builder;
  Annotation speed = At(kFigure, "speed", 2);
  speed.value = 7;
  speed.unit = "cells/s";
  Annotation earlier = At(kFigure, "speed", 1);
  earlier.value = 9;
  Add(builder, {At(kFigure, "error", 1), speed});
  builder.Add(earlier);  // late
  ASSERT_EQ(builder.figures().size(), 2u);
  EXPECT_EQ(builder.figures()[1].value, 7);
  EXPECT_EQ(builder.figures()[1].unit, "cells/s");
  EXPECT_EQ(builder.figures()[1].count, 2u);
}

NamedSketch Histogram(const std::string& name, std::vector<double> values) {
  NamedSketch one;
  one.series = TestSeries(name, MetricType::kHistogram);
  for (const double value : values) {
    one.sketch.Add(histogram::BucketOf(value), 1);
    one.sketch.AddSum(value, value, value);
  }
  return one;
}

Profile TestProfile() {
  Profile p;
  p.job = TestJob();
  p.job.figures = {{"speed", "cells/s", 0.1, 3, kTestStart, 1, 7}, {"error", "", -1e-300, 1, 0}};
  p.moments.phases = {{"solve \xc3\xa4", kTestStart, kTestStart + 90, 30, 4, 3, {1, 2}},
                      {"output", kTestStart + 7, 0, 0, UINT64_MAX, 0, {}}};
  p.moments.remarks = {{"half way", kTestStart, kTestStart + 1, 4, {0, 0}}};
  NamedSketch counts;  // of which nothing but counts is known
  counts.series = TestSeries("counts", MetricType::kHistogram, {{"call", "send"}});
  counts.sketch.Add(histogram::kOverflow, UINT64_MAX);
  p.moments.distributions = {counts, Histogram("wait_seconds", {-1, 0, 0.25, 0.5, 1e300})};
  p.moments.lost = 3;
  p.moments.left_out = 4;
  return p;
}

TEST(MomentsJson, ComesBackExactly) {
  const Profile p = TestProfile();
  const std::string json = ProfileToJson(p);
  EXPECT_THAT(json, HasSubstr("\"by\":{\"node\":1,\"host\":\"n2\",\"rank\":2}"));
  const auto back = ProfileFromJson(json);
  ASSERT_TRUE(back.ok()) << back.status().message();
  EXPECT_EQ(back->job.figures, p.job.figures);
  EXPECT_EQ(back->moments.phases, p.moments.phases);
  EXPECT_EQ(back->moments.remarks, p.moments.remarks);
  ASSERT_EQ(back->moments.distributions.size(), 2u);
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(back->moments.distributions[i].series, p.moments.distributions[i].series);
    EXPECT_EQ(back->moments.distributions[i].sketch, p.moments.distributions[i].sketch);
  }
  EXPECT_EQ(back->moments.lost, 3u);
  EXPECT_EQ(back->moments.left_out, 4u);
  EXPECT_EQ(ProfileToJson(*back), json);

  const auto alone = MomentsFromJson(MomentsToJson(p.moments, p.job));
  ASSERT_TRUE(alone.ok());
  EXPECT_EQ(alone->phases, p.moments.phases);
}

TEST(MomentsJson, AProfileOfBeforeHasNone) {
  const auto old = ProfileFromJson(R"({"job":{},"footprint":[],"cost":{}})");
  ASSERT_TRUE(old.ok());
  EXPECT_TRUE(old->moments.empty());
  EXPECT_TRUE(old->job.figures.empty());
}

TEST(MomentsJson, HostileOnesAreRefusedAndNamed) {
  const std::pair<const char*, const char*> cases[] = {
      {R"([])", "moments"},
      {R"({"phases":{}})", "phases"},
      {R"({"phases":[{"name":""}]})", "name"},
      {R"({"phases":[{"name":"a\u001b[2J"}]})", "name"},
      {R"({"phases":[{"name":"a","begin":9,"end":8}]})", "phases"},
      {R"({"phases":[{"name":"a","begin":1,"end":8,"pauses":8}]})", "phases"},
      {R"({"phases":[{"name":"a","pauses":8}]})", "phases"},
      {R"({"phases":[{"name":"a","begin":-1}]})", "begin"},
      {R"({"remarks":[{"text":"a","first":9,"last":8}]})", "remarks"},
      {R"({"remarks":[{"first":9}]})", "text"},
      {R"({"distributions":[{}]})", "metric"},
      {R"({"distributions":[{"metric":"m","buckets":[[3,1],[3,1]]}]})", "buckets"},
      {R"({"distributions":[{"metric":"m","buckets":[[3,0]]}]})", "buckets"},
      {R"({"distributions":[{"metric":"m","buckets":[[2530,1]]}]})", "buckets"},
      {R"({"distributions":[{"metric":"m","buckets":[[-1,1]]}]})", "buckets"},
      {R"({"distributions":[{"metric":"m","buckets":[[1.5,1]]}]})", "buckets"},
      {R"({"distributions":[{"metric":"m","buckets":[7]}]})", "buckets"},
      {R"({"distributions":[{"metric":"m","sum":"7"}]})", "sum"},
      {R"({"lost":-1})", "lost"},
  };
  for (const auto& [text, message] : cases) {
    const auto moments = MomentsFromJson(text);
    ASSERT_FALSE(moments.ok()) << text;
    EXPECT_THAT(std::string(moments.status().message()), HasSubstr(message)) << text;
  }
}

}  // namespace
}  // namespace sonde::profiles_moments_test
