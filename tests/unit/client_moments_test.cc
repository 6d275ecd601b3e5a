// Remarks, phases and figures reach the daemon once, with their time and rank; errors have words.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "core/time.h"
#include "tests/unit/client_driver.h"
#include "tests/unit/client_fixture.h"

namespace sonde::collect::client_moments_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

class AppMoments : public ClientTest {
 protected:
  AppMoments() { now_ = Clock::System().Now(); }

  // What a tick brings, in the order it was said.
  std::vector<Annotation> Tick() {
    source_->Sample(now_ = Clock::System().Now());
    Moments moments = source_->TakeMoments();
    lost_ += moments.lost;
    return std::move(moments.annotations);
  }

  uint64_t lost_ = 0;
};

MATCHER_P2(Says, kind, text, "") { return arg.kind == kind && arg.text == text; }

TEST_F(AppMoments, ComeWithTheirTimeAndTheirRank) {
  Start();
  ClientProcess app(Environment());
  const Nanos before = Clock::System().Now();
  EXPECT_EQ(app.Do("remark Gitter verfeinert, 3 \xc3\x97"), "0 done");
  const Nanos after = Clock::System().Now();
  const std::vector<Annotation> said = Tick();
  ASSERT_THAT(said, ElementsAre(Says(AnnotationKind::kRemark, "Gitter verfeinert, 3 \xc3\x97")));
  EXPECT_GE(said[0].first, before);
  EXPECT_LE(said[0].first, after);
  EXPECT_EQ(said[0].first, said[0].last);
  EXPECT_EQ(said[0].count, 1u);
  EXPECT_EQ(said[0].task, 3u);
  EXPECT_THAT(Tick(), ElementsAre()) << "each once";
}

TEST_F(AppMoments, HaveTheStepsTimeWhenTheClockIsSet) {
  const BehindTheWall step(3600 * kSecond);
  options_.clock = &step;
  Start();
  ClientProcess app(Environment());
  source_->Sample(step.Now());
  const Nanos before = step.Now();
  app.Do("remark after it was set");
  source_->Sample(step.Now());
  const std::vector<Annotation> said = source_->TakeMoments().annotations;
  ASSERT_EQ(said.size(), 1u);
  EXPECT_GE(said[0].first, before);
  EXPECT_LE(said[0].first, step.Now());
}

// Said before the clock was set forward and read after that: it is translated as if said after it,
// and cannot be older than the last sample.
TEST_F(AppMoments, SaidJustBeforeTheClockIsSetAreOfTheSample) {
  const BehindTheWall step(3600 * kSecond);
  options_.clock = &step;
  Start();
  ClientProcess app(Environment());
  now_ = Clock::System().Now();
  source_->Sample(now_ - 7200 * kSecond);
  source_->Sample(now_);
  app.Do("remark before it was set");
  source_->Sample(now_ + kSecond);
  const std::vector<Annotation> said = source_->TakeMoments().annotations;
  ASSERT_EQ(said.size(), 1u);
  EXPECT_EQ(said[0].first, now_ + kSecond);
}

TEST_F(AppMoments, WhatIsSaidAlikeIsOneAnnotation) {
  Start();
  ClientProcess one(Environment(1)), two(Environment(2));
  two.Do("remark same");
  one.Do("remark same");
  one.Do("remark other");
  one.Do("figure speed 2 m/s");
  two.Do("figure speed 3 m/s");
  two.Do("figure speed 4 km/h");
  const std::vector<Annotation> said = Tick();
  ASSERT_THAT(
      said,
      ElementsAre(Says(AnnotationKind::kRemark, "same"), Says(AnnotationKind::kRemark, "other"),
                  Says(AnnotationKind::kFigure, "speed"), Says(AnnotationKind::kFigure, "speed")));
  EXPECT_EQ(said[0].count, 2u);
  EXPECT_EQ(said[0].task, 2u) << "who said it first";
  EXPECT_LT(said[0].first, said[0].last);
  EXPECT_EQ(said[2].value, 3) << "said last";
  EXPECT_EQ(said[2].unit, "m/s");
  EXPECT_EQ(said[3].value, 4);
}

TEST_F(AppMoments, OfAProgramThatEndedOrWasKilledBetweenTwoTicksAreNotLost) {
  Start();
  {
    ClientProcess ends(Environment()), dies(Environment());
    ends.Do("remark ends");
    dies.Do("figure dies 1 1");
    dies.Kill();
  }
  EXPECT_THAT(Tick(), testing::UnorderedElementsAre(Says(AnnotationKind::kRemark, "ends"),
                                                    Says(AnnotationKind::kFigure, "dies")));
}

TEST_F(AppMoments, APhaseIsToldAndItsTimeCounted) {
  Start();
  ClientProcess app(Environment());
  const Nanos before = Clock::System().Now();
  EXPECT_EQ(app.Do("begin solve"), "0 done");
  EXPECT_EQ(Read("phase_seconds_total{phase=\"solve\",task=\"3\"}"), 0);
  EXPECT_EQ(app.Do("end solve"), "0 done");
  const double passed = static_cast<double>(Clock::System().Now() - before) * 1e-9;
  const double counted = Read("phase_seconds_total{phase=\"solve\",task=\"3\"}");
  EXPECT_GT(counted, 0);
  EXPECT_LE(counted, passed);
  EXPECT_EQ(source_->series()[0].metric.unit, "seconds");
  EXPECT_EQ(source_->series()[0].metric.type, MetricType::kCounter);
  EXPECT_THAT(Tick(), ElementsAre(Says(AnnotationKind::kPhaseBegin, "solve"),
                                  Says(AnnotationKind::kPhaseEnd, "solve")));
}

TEST_F(AppMoments, PhasesLieInEachOtherAndOverlap) {
  Start();
  ClientProcess app(Environment());
  for (const char* command : {"begin a", "begin b", "begin a", "end a", "end a", "end b"}) {
    EXPECT_EQ(app.Do(command), "0 done") << command;
  }
  EXPECT_THAT(app.Do("end a"), HasSubstr("'a' ends and has not begun"));
  const std::vector<Annotation> said = Tick();
  EXPECT_THAT(
      said,
      ElementsAre(Says(AnnotationKind::kPhaseBegin, "a"), Says(AnnotationKind::kPhaseBegin, "b"),
                  Says(AnnotationKind::kPhaseEnd, "a"), Says(AnnotationKind::kPhaseEnd, "b")));
  for (const Annotation& annotation : said) EXPECT_EQ(annotation.count, 1u) << annotation.text;
  app.Do("begin a");
  EXPECT_THAT(Tick(), ElementsAre(Says(AnnotationKind::kPhaseBegin, "a")));
}

TEST_F(AppMoments, ThreadsTellTogether) {
  Start();
  ClientProcess app(Environment());
  // 6 x 30 x 4 calls: fewer than the ring holds, and no thread is a whole ring ahead of another.
  EXPECT_EQ(app.Do("tellers 6 30"), "720");
  const std::vector<Annotation> said = Tick();
  EXPECT_EQ(lost_, 0u);
  uint64_t remarks = 0, figures = 0, begins = 0, ends = 0;
  for (const Annotation& annotation : said) {
    switch (annotation.kind) {
      case AnnotationKind::kRemark:
        EXPECT_EQ(annotation.count, 30u);
        remarks += annotation.count;
        break;
      case AnnotationKind::kFigure:
        figures += annotation.count;
        break;
      case AnnotationKind::kPhaseBegin:
        begins += annotation.count;
        break;
      case AnnotationKind::kPhaseEnd:
        ends += annotation.count;
        break;
    }
  }
  EXPECT_EQ(remarks, 180u);
  EXPECT_EQ(figures, 180u);
  EXPECT_EQ(begins, ends);
  EXPECT_GE(begins, 1u);
}

TEST_F(AppMoments, WhatIsOverwrittenIsCounted) {
  Start();
  ClientProcess app(Environment());
  EXPECT_EQ(app.Do("tellers 8 1000"), "32000");
  uint64_t said = 0;
  for (const Annotation& annotation : Tick()) said += annotation.count;
  const uint64_t first = lost_;
  EXPECT_GT(said, 1000u);
  EXPECT_LE(said, client::kMoments);
  // All remarks and figures, and those phases that did begin and end.
  EXPECT_GE(said + first, 16'000u);
  EXPECT_LE(said + first, 32'000u);
  app.Do("remark later");
  EXPECT_THAT(Tick(), ElementsAre(Says(AnnotationKind::kRemark, "later")));
  EXPECT_EQ(lost_, first);
}

TEST_F(AppMoments, AFloodOfRemarksLeavesRoomForTheRest) {
  Start();
  ClientProcess app(Environment());
  for (int i = 0; i < 300; ++i) app.Do("remark number " + std::to_string(i));
  app.Do("figure speed 1 1");
  app.Do("begin solve");
  const std::vector<Annotation> said = Tick();
  EXPECT_EQ(said.size(), AppAnnotations::kMaxRemarks + 2);
  EXPECT_EQ(lost_, 300 - AppAnnotations::kMaxRemarks);
  EXPECT_THAT(said.back(), Says(AnnotationKind::kPhaseBegin, "solve"));
}

TEST_F(AppMoments, AForkedChildsAreItsOwn) {
  Start();
  ClientProcess app(Environment());
  app.Do("begin outer");
  EXPECT_EQ(app.Do("fork_moments"), "0");
  EXPECT_EQ(app.Do("end outer"), "0 done") << "the child's end is not the parent's";
  EXPECT_THAT(Tick(), testing::UnorderedElementsAre(Says(AnnotationKind::kPhaseBegin, "outer"),
                                                    Says(AnnotationKind::kRemark, "child"),
                                                    Says(AnnotationKind::kPhaseEnd, "outer")));
}

TEST_F(AppMoments, AfterTheEndOfTheRecordThereAreNone) {
  Start();
  ClientProcess app(Environment());
  app.Do("remark before");
  app.Do("finalize");
  EXPECT_THAT(app.Do("remark after"), StartsWith(std::to_string(SONDE_FINALIZED)));
  EXPECT_THAT(app.Do("begin after"), StartsWith(std::to_string(SONDE_FINALIZED)));
  EXPECT_THAT(app.Do("figure after 1 1"), StartsWith(std::to_string(SONDE_FINALIZED)));
  EXPECT_THAT(Tick(), ElementsAre(Says(AnnotationKind::kRemark, "before")));
}

TEST_F(AppMoments, WithoutTelemetryTheySayWhyTheyDoNothing) {
  ClientProcess app({});
  for (const char* command : {"remark x", "begin x", "end x", "figure x 1 1", "remark "}) {
    EXPECT_EQ(app.Do(command),
              std::to_string(SONDE_OFF) + " " + std::string(sonde_strerror(SONDE_OFF)))
        << command;
  }
}

TEST_F(AppMoments, WhatIsNotAllowedIsNamedWithTheRule) {
  Start();
  ClientProcess app(Environment());
  const std::pair<std::string, const char*> cases[] = {
      {"remark ", "a remark without a text"},
      {"remark " + std::string(193, 'r'), "has 193 bytes; 192 are allowed"},
      {"remark a\tb", "the remark 'a?b' is not UTF-8 without control characters"},
      {"begin " + std::string(129, 'p'), "has 129 bytes; 128 are allowed"},
      {"begin a\xff", "the phase 'a?' is not UTF-8"},
      {"figure a+b 1 1", "the name 'a+b' of a figure has '+' in it; letters, digits"},
      {"figure f inf 1", "the value of the figure 'f' is not finite"},
      {"figure f 1 a\xff", "the unit 'a?' of 'f' is not UTF-8"},
  };
  for (const auto& [command, words] : cases) {
    const std::string answer = app.Do(command);
    EXPECT_THAT(answer, StartsWith(std::to_string(SONDE_INVALID) + " ")) << command;
    EXPECT_THAT(answer, HasSubstr(words));
  }
  EXPECT_EQ(app.Do("remark good"), "0 done") << "an error is forgotten with the next call";
  EXPECT_THAT(Tick(), ElementsAre(Says(AnnotationKind::kRemark, "good")));
}

TEST_F(AppMoments, ErrorsOfRegistrationsNameTheOffender) {
  options_.level = 2;
  Start();
  ClientProcess app(Environment());
  app.Do("gauge g");
  Read("");  // the level is known from now on
  const std::pair<std::string, const char*> cases[] = {
      {"gauge 1st", "the name '1st' of a gauge does not begin with a letter"},
      {"counter " + std::string(129, 'a'), "aaa...' of a counter has 129 bytes; 128 are allowed"},
      {"gauge a/b", "the name 'a/b' of a gauge has '/' in it"},
      {"gauge x 7", "the level 7 of metric 'x' is not one of 1 to 4"},
      {"gauge x 3", "the metric 'x' is of level 3 and the step's telemetry level is 2"},
      {"gauge x 0 task=1", "the tag 'task' of metric 'x' is taken: it is the rank"},
      {"gauge x 0 a-b=1", "the tag 'a-b' of metric 'x' is not letters, digits and '_'"},
      {"gauge x 0 a=1 a=2", "the tag 'a' of metric 'x' is there twice"},
      {"gauge x 0 a=", "the tag 'a' of metric 'x' has no value"},
      {"gauge x 0 a=\xff", "the value '?' of tag 'a' of metric 'x' is not UTF-8"},
      {"gauge x 0 a=1 b=1 c=1 d=1 e=1 f=1 g=1 h=1", "'x' has 8 tags; 7 are allowed"},
      {"counter g", "'g' with these tags is a gauge already and cannot be a counter"},
  };
  for (const auto& [command, words] : cases) {
    EXPECT_THAT(app.Do(command), HasSubstr("null")) << command;
    EXPECT_THAT(app.Do("error"), HasSubstr(words));
  }
  EXPECT_THAT(app.Do("gauge g"), StartsWith(kOk));
  EXPECT_EQ(app.Do("error"), "done");
}

// --- A daemon that is not there yet ---

TEST_F(AppMoments, ADaemonThatComesLaterIsFound) {
  ClientProcess app(Environment());
  EXPECT_EQ(app.Do("counter early_total"), std::to_string(SONDE_UNREACHABLE) + " null");
  EXPECT_EQ(app.Do("descriptors"), "0");
  Start();
  const Nanos deadline = Clock::System().Now() + 20 * kSecond;
  while (app.Do("counter late_total") != kOk + " new") {
    ASSERT_LT(Clock::System().Now(), deadline);
    usleep(10'000);
  }
  app.Do("add late_total 2");
  EXPECT_EQ(app.Do("remark late"), "0 done");
  EXPECT_EQ(Read("late_total{task=\"3\"}"), 2);
}

}  // namespace
}  // namespace sonde::collect::client_moments_test
