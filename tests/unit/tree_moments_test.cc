// Moments on their way up the tree: merging, bytes, and each part once whatever happens to links.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "core/histogram_buckets.h"
#include "daemon/message/message.h"
#include "daemon/tree/children/children.h"
#include "daemon/tree/moments_delivery.h"
#include "daemon/tree/moments_message.h"
#include "daemon/tree/uplink.h"
#include "tree_owners.h"

namespace sonde::tree::tree_moments_test {
namespace {

using collect::Moments;

Annotation Remark(std::string text, Nanos time, uint32_t node = 0) {
  Annotation a;
  a.text = std::move(text);
  a.first = a.last = time;
  a.node = node;
  return a;
}

Annotation Of(AnnotationKind kind, std::string text, Nanos time) {
  Annotation a = Remark(std::move(text), time);
  a.kind = kind;
  return a;
}

NamedSketch Histogram(std::string name, double value, uint64_t count = 1) {
  NamedSketch one;
  one.series.metric.name = std::move(name);
  one.series.metric.unit = "seconds";
  one.series.metric.type = MetricType::kHistogram;
  one.sketch.Add(histogram::BucketOf(value), count);
  one.sketch.AddSum(value * static_cast<double>(count), value, value);
  return one;
}

Moments Merged(const std::vector<Moments>& all) {
  Moments into;
  for (const Moments& one : all) Merge(one, into);
  return into;
}

MomentsMessage Decoded(const std::string& bytes) {
  MomentsMessage m;
  const Status status = Decode(bytes, m);
  EXPECT_TRUE(status.ok()) << status.message();
  return m;
}

bool Same(const Moments& a, const Moments& b) {
  return Encode(MomentsMessage{1, a}) == Encode(MomentsMessage{1, b});
}

TEST(Moments, WhatNodesSayAlikeIsOneWithTheFirstToSayIt) {
  Annotation late = Remark("checkpoint", 50, 1);
  late.task = 7;
  late.count = 3;
  const Moments merged =
      Merged({{{Remark("checkpoint", 60, 2), Remark("checkpoint", 70, 2)}, {}, 0},
              {{late}, {}, 2},
              {{Of(AnnotationKind::kPhaseBegin, "checkpoint", 40)}, {}, 0}});
  ASSERT_EQ(merged.annotations.size(), 2u);
  const Annotation& remark = merged.annotations[0];
  EXPECT_EQ(remark.count, 5u);
  EXPECT_EQ(remark.first, 50);
  EXPECT_EQ(remark.last, 70);
  EXPECT_EQ(remark.node, 1u);
  EXPECT_EQ(remark.task, 7u);
  EXPECT_EQ(merged.annotations[1].kind, AnnotationKind::kPhaseBegin);
  EXPECT_EQ(merged.lost, 2u);
}

TEST(Moments, OfAFigureTheLastWordStandsWithWhoSaidIt) {
  Annotation early = Of(AnnotationKind::kFigure, "speed", 10);
  early.value = 1;
  early.task = 3;
  Annotation late = Of(AnnotationKind::kFigure, "speed", 20);
  late.value = 2;
  late.task = 5;
  for (const auto& both : {std::vector{early, late}, std::vector{late, early}}) {
    const Moments merged = Merged({{both, {}, 0}});
    ASSERT_EQ(merged.annotations.size(), 1u);
    EXPECT_EQ(merged.annotations[0].value, 2);
    EXPECT_EQ(merged.annotations[0].task, 5u);
    EXPECT_EQ(merged.annotations[0].count, 2u);
    EXPECT_EQ(merged.annotations[0].first, 10);
  }
}

TEST(Moments, HistogramsOfOneSeriesAddUpAndOthersStayApart) {
  NamedSketch tagged = Histogram("wait", 2);
  tagged.series.tags = {{"call", "recv"}};
  const Moments merged = Merged({{{}, {Histogram("wait", 1, 5), tagged}, 0},
                                 {{}, {tagged, Histogram("io", 4), Histogram("wait", 1)}, 0}});
  ASSERT_EQ(merged.sketches.size(), 3u);
  EXPECT_EQ(merged.sketches[0].series.metric.name, "io");
  EXPECT_EQ(merged.sketches[1].sketch.count(), 6u);
  EXPECT_EQ(merged.sketches[1].sketch.sum(), 6);
  EXPECT_EQ(merged.sketches[2].sketch.count(), 2u);
}

TEST(Moments, WhatGoesBeyondTheBoundsIsCounted) {
  Moments many;
  for (size_t i = 0; i < kMaxAnnotations + 3; ++i) {
    many.annotations.push_back(Remark("r" + std::to_string(i), 1));
  }
  for (size_t i = 0; i < kMaxSketches + 4; ++i) {
    many.sketches.push_back(Histogram("h" + std::to_string(i), 1));
  }
  Moments merged = Merged({many, many});  // the second time they find their places
  EXPECT_EQ(merged.annotations.size(), kMaxAnnotations);
  EXPECT_EQ(merged.sketches.size(), kMaxSketches);
  EXPECT_EQ(merged.lost, 14u);
  EXPECT_EQ(merged.annotations[0].count, 2u);
  EXPECT_TRUE(Same(Decoded(Encode(MomentsMessage{1, merged})).moments, merged));

  Moments wide;
  for (int i = 0; i < 60; ++i) {
    NamedSketch one = Histogram("wide" + std::to_string(i), 1);
    for (uint32_t b = 0; b < histogram::kBuckets; ++b) one.sketch.Add(b, UINT64_MAX);
    wide.sketches.push_back(std::move(one));
  }
  merged = Merged({wide});
  EXPECT_EQ(merged.sketches.size(), kMaxSketchBuckets / histogram::kBuckets);
  EXPECT_EQ(merged.lost, 60 - merged.sketches.size());
  EXPECT_LT(Encode(MomentsMessage{1, merged}).size(), kMaxMessage / 2);
}

TEST(Moments, WhatIsNotFitToBeSentStaysBehind) {
  Annotation figure = Of(AnnotationKind::kFigure, "speed", 1);
  figure.value = std::nan("");
  Annotation backwards = Remark("late", 5);
  backwards.last = 4;
  Annotation never = Remark("never", 5);
  never.count = 0;
  NamedSketch gauge = Histogram("g", 1);
  gauge.series.metric.type = MetricType::kGauge;
  NamedSketch unit = Histogram("u", 1);
  unit.series.metric.unit = std::string(129, 'x');  // more than a schema may have
  const Moments merged =
      Merged({{{Remark("", 1), Remark("a\nb", 1), Remark(std::string(513, 'x'), 1),
                Remark("\xff", 1), Remark("before 1970", -1), figure,
                Of(AnnotationKind::kFigure, "not a name", 1), backwards, never},
               {gauge, unit, Histogram("a b", 1)},
               0}});
  EXPECT_EQ(merged.lost, 12u);
  EXPECT_TRUE(merged.annotations.empty());
  EXPECT_TRUE(merged.sketches.empty());
}

Moments Everything() {
  Annotation figure = Of(AnnotationKind::kFigure, "speed", 9);
  figure.value = 0.1;
  figure.unit = "cells/s";
  Annotation remark = Remark("zwei \xe2\x82\xac", INT64_MAX, UINT32_MAX);
  remark.count = UINT64_MAX;
  return Merged({{{Of(AnnotationKind::kPhaseBegin, "solve", 3), remark, figure,
                   Of(AnnotationKind::kPhaseEnd, "solve", 7)},
                  {Histogram("wait", 0.5), Histogram("size", 4096, 12)},
                  5}});
}

TEST(MomentsMessage, ComesBackAndATruncatedOneIsRefused) {
  const Moments everything = Everything();
  const std::string bytes = Encode(MomentsMessage{42, everything});
  const MomentsMessage back = Decoded(bytes);
  EXPECT_EQ(back.sequence, 42u);
  EXPECT_EQ(back.moments.annotations, everything.annotations);
  ASSERT_EQ(back.moments.sketches.size(), 2u);
  EXPECT_EQ(back.moments.sketches[1].series, everything.sketches[1].series);
  EXPECT_EQ(back.moments.sketches[1].sketch, everything.sketches[1].sketch);
  EXPECT_EQ(back.moments.lost, 5u);
  MomentsMessage m;
  for (size_t n = 0; n < bytes.size(); ++n) EXPECT_FALSE(Decode(bytes.substr(0, n), m).ok()) << n;
  EXPECT_FALSE(Decode(bytes + "x", m).ok());
}

TEST(MomentsMessage, WhatMergeDoesNotMakeIsRefused) {
  const auto refused = [](Moments moments, uint64_t sequence = 1) {
    MomentsMessage m;
    return !Decode(Encode(MomentsMessage{sequence, std::move(moments)}), m).ok();
  };
  EXPECT_FALSE(refused({{Remark("a", 1), Remark("b", 1)}, {Histogram("a", 1)}, 0}));
  EXPECT_TRUE(refused({{Remark("a", 1)}, {}, 0}, 0)) << "no number";
  EXPECT_TRUE(refused({{Remark("b", 1), Remark("a", 1)}, {}, 0})) << "out of order";
  EXPECT_TRUE(refused({{Remark("a", 1), Remark("a", 2)}, {}, 0})) << "twice";
  EXPECT_TRUE(refused({{}, {Histogram("b", 1), Histogram("a", 1)}, 0}));
  EXPECT_TRUE(refused({{}, {Histogram("a", 1), Histogram("a", 1)}, 0}));
  EXPECT_TRUE(refused({{Remark("a\x1b[2J", 1)}, {}, 0}));
  EXPECT_TRUE(refused({{Of(static_cast<AnnotationKind>(4), "a", 1)}, {}, 0}));
  Annotation figure = Of(AnnotationKind::kFigure, "speed", 1);
  figure.value = INFINITY;
  EXPECT_TRUE(refused({{figure}, {}, 0}));
  Annotation task = Remark("a", 1);
  task.last = INT64_MIN;  // its length wraps
  EXPECT_TRUE(refused({{task}, {}, 0}));
  NamedSketch counter = Histogram("a", 1);
  counter.series.metric.type = MetricType::kCounter;
  EXPECT_TRUE(refused({{}, {counter}, 0}));
}

// --- Delivery ---

class FakeLink : public Link {
 public:
  Status Send(uint8_t type, std::string_view payload) override {
    if (full) return {Code::kLimit, "full"};
    sent.emplace_back(static_cast<Type>(type), payload);
    if (grows) backlog += payload.size();
    return {};
  }
  void CloseWhenSent() override {}
  size_t queued() const override { return backlog; }
  void SetMaxMessage(size_t) override {}
  std::string peer() const override { return "peer"; }

  // The texts of the remarks of each part.
  std::vector<std::string> Remarks() const {
    std::vector<std::string> texts;
    for (const auto& [type, payload] : sent) {
      std::string text = std::to_string(Decoded(payload).sequence);
      for (const Annotation& a : Decoded(payload).moments.annotations) text += " " + a.text;
      texts.push_back(text);
    }
    return texts;
  }

  bool full = false;
  bool grows = false;  // it takes nothing of what it is given
  size_t backlog = 0;
  std::vector<std::pair<Type, std::string>> sent;
};

using testing::Contains;
using testing::ElementsAre;

TEST(MomentsSender, KeepsWhatItCannotSendForTheNextPart) {
  MomentsSender sender;
  FakeLink link;
  sender.Flush(&link);
  EXPECT_TRUE(link.sent.empty()) << "nothing to say costs nothing";
  EXPECT_TRUE(sender.delivered());
  sender.Add({{Remark("a", 1)}, {}, 0});
  sender.Flush(nullptr);
  link.full = true;
  sender.Add({{Remark("b", 2)}, {}, 0});
  sender.Flush(&link);
  link.full = false;
  sender.Add({{Remark("c", 3)}, {}, 0});
  EXPECT_FALSE(sender.delivered());
  sender.Flush(&link);
  sender.Flush(&link);
  EXPECT_THAT(link.Remarks(), ElementsAre("1 a b c"));
  EXPECT_FALSE(sender.delivered());
  sender.OnAck({.sequences = {1}});
  EXPECT_TRUE(sender.delivered());
}

TEST(MomentsSender, SendsAgainWhatWasUnderWayOnALostLink) {
  MomentsSender sender;
  FakeLink first;
  FakeLink second;
  for (const char* text : {"a", "b", "c"}) {
    sender.Add({{Remark(text, 1)}, {}, 0});
    sender.Flush(&first);
  }
  sender.OnAck({.sequences = {2}});
  sender.Add({{Remark("d", 1)}, {}, 0});
  sender.Flush(&second);  // the first still lives: what it has may arrive
  EXPECT_THAT(second.Remarks(), ElementsAre("4 d"));
  sender.OnLost(&first);
  sender.Add({{Remark("e", 1)}, {}, 0});
  sender.Flush(&second);
  EXPECT_THAT(second.Remarks(), ElementsAre("4 d", "1 a", "3 c", "5 e"));
  for (const uint64_t n : {1, 3, 4}) sender.OnAck({.sequences = {n}});
  EXPECT_FALSE(sender.delivered());
  sender.OnAck({.sequences = {5}});
  EXPECT_TRUE(sender.delivered());
}

TEST(MomentsSender, KeepsForAnotherHeadWhatIsNotSafe) {
  MomentsSender sender;
  FakeLink head;
  FakeLink next;
  for (const char* text : {"a", "b", "c", "d"}) {
    sender.Add({{Remark(text, 1)}, {}, 0});
    sender.Flush(&head);
  }
  sender.OnAck({MomentsAck::Fate::kArrived, {1, 2, 3}});
  EXPECT_FALSE(sender.delivered());
  sender.OnAck({MomentsAck::Fate::kArrived, {4, 4}});
  EXPECT_TRUE(sender.delivered()) << "who leaves need not wait until it is stored";
  sender.OnAck({MomentsAck::Fate::kSafe, {1, 3, 99}});
  EXPECT_TRUE(sender.delivered());
  sender.OnLost(&head);
  sender.Flush(&next);
  EXPECT_TRUE(next.sent.empty()) << "it is the same head";
  sender.OnNewHead();
  EXPECT_FALSE(sender.delivered());
  sender.Flush(&next);
  EXPECT_THAT(next.Remarks(), ElementsAre("2 b", "4 d"));
  sender.OnAck({.sequences = {2, 4}});
  EXPECT_TRUE(sender.delivered());
}

TEST(MomentsSender, KeepsABoundedNumberOfBytesForAnotherHead) {
  MomentsSender sender;
  FakeLink head;
  FakeLink next;
  const std::string text(100, 'x');
  constexpr uint64_t kParts = 1000;
  for (uint64_t n = 1; n <= kParts; ++n) {
    for (int i = 0; i < 10; ++i) {
      sender.Add({{Remark((text + std::to_string(i)).c_str(), 1)}, {}, 0});
    }
    sender.Flush(&head);
    sender.OnAck({MomentsAck::Fate::kArrived, {n}});
  }
  EXPECT_TRUE(sender.delivered());
  sender.OnNewHead();
  sender.Flush(&next);
  size_t bytes = 0;
  for (const auto& [type, payload] : next.sent) bytes += payload.size();
  EXPECT_LE(bytes, MomentsSender::kMaxArrivedBytes);
  EXPECT_GT(bytes, MomentsSender::kMaxArrivedBytes / 2);
  EXPECT_EQ(Decoded(next.sent.back().second).sequence, kParts) << "the newest ones";
}

std::vector<Type> Types(const FakeLink& link) {
  std::vector<Type> types;
  for (const auto& [type, payload] : link.sent) types.push_back(type);
  return types;
}

void AddFrame(Uplink& uplink) {
  FrameInfo info;
  info.nodes = NodeSet(0);
  static const Schema::Ptr schema = Schema::Make({});
  uplink.AddFrame(info, schema, std::vector<Reduced>());
  uplink.Flush();
}

constexpr size_t kWide = 8u << 10;  // bytes of such a frame, or more

Schema::Ptr WideSchema(size_t times) {
  std::vector<Series> series(times * kWide / 8);
  for (size_t i = 0; i < series.size(); ++i) series[i].metric.name = "m" + std::to_string(i);
  return Schema::Make(std::move(series));
}

void AddWideFrame(Uplink& uplink, const Schema::Ptr& schema) {
  static double value = 0;
  FrameInfo info;
  info.nodes = NodeSet(0);
  std::vector<Reduced> values(schema->size());
  for (Reduced& one : values) one.Add(value += 0.7, {0, 0});
  uplink.AddFrame(info, schema, values);
  uplink.Flush();
}

// Of the frames that a link was given, all of one schema.
std::vector<uint64_t> FrameNumbers(const FakeLink& link, const Schema::Ptr& schema) {
  FrameDecoder decoder;
  decoder.Reset(*schema);
  std::vector<uint64_t> numbers;
  for (const auto& [type, payload] : link.sent) {
    if (type != Type::kFrame) continue;
    for (ByteReader r(payload); r.left() > 0;) {
      const auto frame = decoder.Decode(r.Text(1 << 20));
      EXPECT_TRUE(frame.ok()) << frame.status().message();
      numbers.push_back(frame.ok() ? (*frame)->number : 0);
    }
  }
  return numbers;
}

TEST(Uplink, MomentsGoBeforeTheFrameAndAgainOverTheNextLink) {
  Uplink uplink;
  FakeLink control;
  FakeLink parent;
  uplink.AddMoments({{Remark("a", 1)}, {}, 0});
  AddFrame(uplink);  // to nobody
  uplink.Use(&control, false);
  EXPECT_THAT(Types(control), ElementsAre(Type::kMoments, Type::kSchema, Type::kFrame));
  uplink.AddMoments({{Remark("b", 1)}, {}, 0});
  AddFrame(uplink);
  EXPECT_THAT(Types(control), ElementsAre(Type::kMoments, Type::kSchema, Type::kFrame,
                                          Type::kMoments, Type::kFrame));
  uplink.OnMomentsAck(Encode(MomentsAck{.sequences = {1}}));
  uplink.OnAck(1, 1);

  uplink.Use(&parent, true);
  EXPECT_EQ(Types(control).back(), Type::kLeave);
  EXPECT_THAT(Types(parent), ElementsAre(Type::kSchema, Type::kFrame))
      << "the former link still delivers moments; frames are known when they come again";
  uplink.Forget(&control);
  EXPECT_THAT(Types(parent), ElementsAre(Type::kSchema, Type::kFrame, Type::kMoments));
  EXPECT_EQ(Decoded(parent.sent[2].second).sequence, 2u);
  EXPECT_FALSE(uplink.moments_delivered());
  uplink.OnMomentsAck(Encode(MomentsAck{.sequences = {2}}));
  EXPECT_TRUE(uplink.moments_delivered());
  EXPECT_FALSE(uplink.frames_delivered());
  uplink.OnAck(2, 2);
  EXPECT_TRUE(uplink.frames_delivered());
  uplink.AddMoments({{Remark("c", 1)}, {}, 0});
  AddFrame(uplink);
  uplink.Forget(&parent);  // the only one there is
  EXPECT_EQ(parent.sent.size(), 5u);
  uplink.Use(&control, false);
  EXPECT_EQ(Types(control).back(), Type::kFrame);
  EXPECT_EQ(Types(control)[Types(control).size() - 3], Type::kMoments);
}

// Frames that are under way make room for newer ones. If their link breaks, or another head goes
// on, they cannot be sent again.
TEST(Uplink, WhatCannotGoAgainIsCounted) {
  Uplink uplink;
  FakeLink first;
  FakeLink second;
  uplink.Use(&first, false);
  for (size_t i = 0; i < FrameWindow::kMaxFrames + 10; ++i) AddFrame(uplink);
  uplink.OnAck(3, 1);
  EXPECT_EQ(uplink.lost_frames(), 0u);
  uplink.Use(&second, false);
  EXPECT_EQ(uplink.lost_frames(), 7u) << "4 to 10";
  EXPECT_EQ(uplink.lost_samples(), 7u);
  uplink.OnNewHead();
  uplink.Use(&first, false);
  EXPECT_EQ(uplink.lost_frames(), 9u) << "the head before had 2 and 3";
}

TEST(Uplink, WhatIsNotSafeGoesAgainToAnotherHeadOnly) {
  Uplink uplink;
  FakeLink first;
  FakeLink second;
  FakeLink third;
  uplink.Use(&first, false);
  for (int i = 0; i < 3; ++i) AddFrame(uplink);
  uplink.OnAck(3, 1);
  EXPECT_TRUE(uplink.frames_delivered());
  uplink.Use(&second, false);
  EXPECT_THAT(Types(second), ElementsAre(Type::kSchema)) << "this head has them";
  uplink.OnNewHead();
  EXPECT_FALSE(uplink.frames_delivered());
  uplink.Use(&third, false);
  ASSERT_THAT(Types(third), ElementsAre(Type::kSchema, Type::kFrame));
  EXPECT_THAT(FrameNumbers(third, Schema::Make({})), ElementsAre(2, 3));
  uplink.OnAck(3, 3);
  EXPECT_TRUE(uplink.frames_delivered());
}

// Less than a link's bound may be minutes of frames: what counts is that it does not get less.
TEST(Uplink, FramesWaitHereWhenTheLinkDoesNotGetEmpty) {
  Uplink uplink;
  FakeLink link;
  uplink.Use(&link, false);
  AddFrame(uplink);
  link.backlog = Uplink::kBacklog;
  for (int i = 0; i < Uplink::kSlowFlushes; ++i) {
    EXPECT_FALSE(uplink.slow());
    AddFrame(uplink);
  }
  EXPECT_TRUE(uplink.slow());
  const size_t before = link.sent.size();
  for (size_t i = 0; i < Uplink::kMaxHeldBack; ++i) AddFrame(uplink);
  EXPECT_EQ(link.sent.size(), before);
  EXPECT_EQ(uplink.lost_frames(), 0u);
  AddFrame(uplink);
  EXPECT_GT(uplink.lost_frames(), 0u) << "every second one";
  link.backlog = 0;
  AddFrame(uplink);
  EXPECT_FALSE(uplink.slow());
  EXPECT_EQ(link.sent.size(), before + 1) << "what was held back, in one message";
}

// A few wide ones would push those out that are under way, and then each other.
TEST(Uplink, WideFramesThatWaitAreBoundedByTheirBytes) {
  Uplink uplink;
  FakeLink link;
  const Schema::Ptr schema = WideSchema(5);
  uplink.Use(&link, false);
  link.backlog = Uplink::kBacklog;
  while (!uplink.slow()) AddFrame(uplink);
  const uint64_t before = uplink.last_number();
  while (uplink.lost_frames() == 0) AddWideFrame(uplink, schema);
  const uint64_t first = uplink.last_number() - before;
  EXPECT_LT(first, Uplink::kMaxHeldBack);
  EXPECT_EQ(uplink.lost_frames(), first / 2) << "every second one";
  for (int i = 0; i < 200; ++i) AddWideFrame(uplink, schema);
  link.sent.clear();
  link.backlog = 0;
  uplink.Continue();
  const std::vector<uint64_t> numbers = FrameNumbers(link, schema);
  EXPECT_EQ(numbers.size() + uplink.lost_frames(), first + 200);
  EXPECT_LE(numbers.size(), first);
  EXPECT_EQ(numbers.front(), before + 1) << "coarser, from begin to end";
  EXPECT_GE(numbers.back(), uplink.last_number() - 1);
}

// All of it at once would be seconds of a slow link, with every later frame behind it.
TEST(Uplink, WhatWasHeldBackGoesAsTheLinkTakesIt) {
  Uplink uplink;
  FakeLink link;
  const Schema::Ptr schema = WideSchema(1);
  uplink.Use(&link, false);
  link.backlog = Uplink::kBacklog;
  while (!uplink.slow()) AddWideFrame(uplink, schema);
  for (int i = 0; i < 20; ++i) AddWideFrame(uplink, schema);
  EXPECT_TRUE(uplink.holds_back());
  size_t before = link.sent.size();
  link.grows = true;
  link.backlog = 0;
  uplink.Continue();
  EXPECT_GT(link.sent.size(), before);
  EXPECT_TRUE(uplink.holds_back());
  EXPECT_LT(link.backlog, 2 * Uplink::kBacklog + kWide);
  int turns = 1;
  for (; uplink.holds_back() && turns < 100; ++turns) {
    link.backlog = 0;
    uplink.Continue();
  }
  EXPECT_FALSE(uplink.holds_back());
  EXPECT_GT(turns, 3);
  EXPECT_EQ(uplink.lost_frames(), 0u);
}

TEST(Uplink, AtTheEndLastValuesGoNext) {
  Uplink uplink;
  FakeLink link;
  uplink.Use(&link, false);
  link.backlog = Uplink::kBacklog;
  while (!uplink.slow()) AddFrame(uplink);
  for (int i = 0; i < 20; ++i) AddFrame(uplink);
  uplink.LeaveOutHeldBack();
  EXPECT_GE(uplink.lost_frames(), 19u);
  FrameInfo last;
  last.nodes = NodeSet(0);
  last.stream = Stream::kEnded;
  uplink.AddFrame(last, Schema::Make({}), std::vector<Reduced>());
  uplink.LeaveOutHeldBack();
  link.sent.clear();
  link.backlog = 0;
  uplink.Continue();
  uplink.OnAck(uplink.last_number() - 1, 0);
  EXPECT_FALSE(uplink.frames_delivered()) << "it is kept";
  EXPECT_THAT(Types(link), Contains(Type::kFrame));
}

TEST(Uplink, AStreamThatHasEndedIsEndedOnEveryLinkAfterItsLastFrame) {
  Uplink uplink;
  FakeLink first;
  FakeLink second;
  uplink.Use(&first, false);
  AddFrame(uplink);
  uplink.End(Stream::kOwn);
  EXPECT_THAT(Types(first), ElementsAre(Type::kSchema, Type::kFrame, Type::kStreamEnd));
  uplink.Use(&second, false);
  EXPECT_THAT(Types(second), ElementsAre(Type::kSchema, Type::kFrame, Type::kStreamEnd));
}

TEST(PartsSeen, TakesEachOnceInAnyOrder) {
  PartsSeen seen;
  for (const uint64_t n : {1, 3, 2, 7}) EXPECT_TRUE(seen.Add(n)) << n;
  for (const uint64_t n : {1, 2, 3, 7}) EXPECT_FALSE(seen.Add(n)) << n;
  for (const uint64_t n : {4, 6, 5, 8}) EXPECT_TRUE(seen.Add(n)) << n;
  for (uint64_t n = 10; n < 5'000; n += 2) EXPECT_TRUE(seen.Add(n));  // it forgets what never comes
  EXPECT_FALSE(seen.Add(4'998));
  EXPECT_TRUE(seen.Add(4'999));
}

class TakesMoments final : public ChildrenAlone {
 public:
  void OnMoments(Moments moments) override { taken.push_back(std::move(moments)); }

  std::vector<Moments> taken;
};

TEST(Children, APartThatComesOverTwoLinksIsTakenOnceAndAcknowledgedTwice) {
  Loop loop;
  QueryFanout queries(loop);
  TickMerger merger(1, [](const TickMerger::Row&, bool) {});
  TakesMoments owner;
  Children children(merger, queries, {kSecond, kSecond}, Keep::kUntilArrived, owner);
  FakeLink control;
  FakeLink fabric;
  FakeLink other;
  children.Add(control, 3);
  children.Add(fabric, 3);
  children.Add(other, 4);
  const std::string part = Encode(MomentsMessage{1, {{Remark("a", 1)}, {}, 0}});
  for (FakeLink* link : {&control, &fabric, &other}) {
    ASSERT_TRUE(children.OnMessage(*link, Type::kMoments, part).ok());
    ASSERT_EQ(link->sent.size(), 1u);
    EXPECT_EQ(link->sent[0].first, Type::kMomentsAck);
  }
  EXPECT_EQ(owner.taken.size(), 2u) << "of children 3 and 4";
  children.Remove(control);
  ASSERT_TRUE(children.OnMessage(fabric, Type::kMoments, part).ok());
  EXPECT_EQ(owner.taken.size(), 2u);
  EXPECT_FALSE(children.OnMessage(fabric, Type::kMoments, part + "x").ok());
}

// The fates that a link was told, with the numbers.
std::vector<std::pair<MomentsAck::Fate, std::vector<uint64_t>>> Fates(const FakeLink& link) {
  std::vector<std::pair<MomentsAck::Fate, std::vector<uint64_t>>> fates;
  for (const auto& [type, payload] : link.sent) {
    MomentsAck ack;
    EXPECT_EQ(type, Type::kMomentsAck);
    EXPECT_TRUE(Decode(payload, ack).ok());
    fates.emplace_back(ack.fate, ack.sequences);
  }
  return fates;
}

TEST(Children, AtTheHeadWhatCameUpToBeginSafeIsSafeWithEndSafe) {
  using Fate = MomentsAck::Fate;
  using testing::IsEmpty;
  using testing::Pair;
  Loop loop;
  QueryFanout queries(loop);
  TickMerger merger(1, [](const TickMerger::Row&, bool) {});
  ChildrenAlone alone;
  Children children(merger, queries, {kSecond, kSecond}, Keep::kUntilSafe, alone);
  FakeLink first;
  FakeLink second;
  children.Add(first, 3);
  const auto part = [&](FakeLink& link, uint64_t n) {
    const std::string bytes = Encode(MomentsMessage{n, {{Remark("a", 1)}, {}, 0}});
    ASSERT_TRUE(children.OnMessage(link, Type::kMoments, bytes).ok());
  };
  part(first, 1);
  part(first, 2);
  children.BeginSafe();
  part(first, 3);
  EXPECT_THAT(Fates(first), ElementsAre(Pair(Fate::kArrived, ElementsAre(1)),
                                        Pair(Fate::kArrived, ElementsAre(2)),
                                        Pair(Fate::kArrived, ElementsAre(3))));
  first.sent.clear();
  children.EndSafe();
  EXPECT_THAT(Fates(first), ElementsAre(Pair(Fate::kSafe, ElementsAre(1, 2))));
  first.sent.clear();
  children.BeginSafe();
  children.Remove(first);
  children.EndSafe();
  EXPECT_THAT(Fates(first), IsEmpty());
  children.Add(second, 3);
  part(second, 4);
  children.BeginSafe();
  children.EndSafe();
  EXPECT_THAT(Fates(second), ElementsAre(Pair(Fate::kArrived, ElementsAre(4)),
                                         Pair(Fate::kSafe, ElementsAre(3, 4))));
  second.sent.clear();
  children.BeginSafe();
  children.EndSafe();
  EXPECT_THAT(Fates(second), IsEmpty());
}

}  // namespace
}  // namespace sonde::tree::tree_moments_test
