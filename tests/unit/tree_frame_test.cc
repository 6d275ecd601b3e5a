// Frames as bytes, the sets of nodes they are of, and the window of those under way.
#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <set>

#include "daemon/head/registry/head_store.h"
#include "daemon/tree/frame.h"
#include "daemon/tree/frame_window.h"
#include "daemon/tree/node_set.h"

namespace sonde::tree::tree_frame_test {
namespace {

using testing::ElementsAre;

Reduced One(double value, Owner owner) {
  Reduced r;
  r.Add(value, owner);
  return r;
}

bool Same(const Reduced& a, const Reduced& b) {
  return a.count == b.count && a.sum == b.sum && a.min == b.min && a.max == b.max &&
         a.sum_sq == b.sum_sq && a.min_owner == b.min_owner && a.max_owner == b.max_owner;
}

Schema::Ptr SchemaOf(size_t series) { return Schema::Make(std::vector<Series>(series)); }

NodeSet SetOf(const std::set<uint32_t>& nodes) {
  NodeSet set;
  for (const uint32_t node : nodes) set.Add(NodeSet(node));
  return set;
}

// --- NodeSet ---

TEST(NodeSet, BehavesAsASetOfNumbers) {
  std::mt19937 random(1);
  for (int round = 0; round < 500; ++round) {
    // Every other round of many ranges, which are added in another way.
    const unsigned below = round % 2 == 0 ? 20 : 100;
    std::set<uint32_t> a, b;
    for (unsigned i = random() % (below / 2 + 2); i > 0; --i) a.insert(random() % below);
    for (unsigned i = random() % (below / 3); i > 0; --i) b.insert(random() % below);
    NodeSet set = SetOf(a);
    const NodeSet other = SetOf(b);
    EXPECT_EQ(set.size(), a.size());
    EXPECT_EQ(set.empty(), a.empty());
    EXPECT_EQ(set.first(), a.empty() ? NodeSet::kMaxNodes : *a.begin());
    EXPECT_EQ(set.HasAll(other), std::includes(a.begin(), a.end(), b.begin(), b.end()));
    std::vector<uint32_t> common;
    std::set_intersection(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(common));
    EXPECT_EQ(set.Intersects(other), !common.empty());
    set.Add(other);
    a.merge(b);
    for (uint32_t n = 0; n <= below; ++n) EXPECT_EQ(set.Has(n), a.contains(n)) << n;
    EXPECT_EQ(set, SetOf(a)) << "the same set has one form";
    for (const uint32_t end : {below / 2, below, below + 3}) {
      std::vector<uint32_t> others;
      set.ForEachOther(end, [&](uint32_t n) { others.push_back(n); });
      std::vector<uint32_t> expected;
      for (uint32_t n = 0; n < end; ++n) {
        if (!a.contains(n)) expected.push_back(n);
      }
      EXPECT_EQ(others, expected);
    }
    set.Add(set);
    EXPECT_EQ(set, SetOf(a)) << "added to itself";
    std::string bytes;
    ByteWriter w(bytes);
    set.Encode(w);
    NodeSet again;
    ByteReader r(bytes);
    again.Decode(r);
    EXPECT_TRUE(r.done());
    EXPECT_EQ(again, set);
  }
}

TEST(NodeSet, ASubtreeIsAFewBytes) {
  NodeSet all;
  for (uint32_t n = 0; n < 10'000; ++n) all.Add(NodeSet(n));
  std::string bytes;
  ByteWriter w(bytes);
  all.Encode(w);
  EXPECT_LE(bytes.size(), 4u);
}

TEST(NodeSet, NodesBeyondTheLimitAreRefused) {
  for (const uint64_t first : {uint64_t{NodeSet::kMaxNodes}, UINT64_MAX}) {
    std::string bytes;
    ByteWriter w(bytes);
    w.Varint(1);
    w.Varint(first);
    w.Varint(0);
    NodeSet set;
    ByteReader r(bytes);
    set.Decode(r);
    EXPECT_FALSE(r.ok());
    EXPECT_TRUE(set.empty());
  }
}

// --- Frames ---

TEST(Frame, EveryValueComesBackThroughManyTicks) {
  std::mt19937_64 random(1);
  FrameEncoder encoder;
  FrameDecoder decoder;
  constexpr size_t kSeries = 60;
  encoder.Reset(*SchemaOf(kSeries));
  decoder.Reset(*SchemaOf(kSeries));
  Frame frame;
  frame.nodes = NodeSet(5);
  frame.values.resize(kSeries);
  for (int tick = 1; tick < 300; ++tick) {
    frame.tick = tick * kSecond;
    frame.number = static_cast<uint64_t>(tick);
    if (random() % 4 == 0) frame.nodes.Add(NodeSet(static_cast<uint32_t>(random() % 100)));
    for (Reduced& v : frame.values) {
      switch (random() % 8) {
        case 0:
          v = Reduced();
          break;
        case 1:
          v = One(static_cast<double>(random()), {5, Owner::kNobody});
          break;
        case 2:
          v = One(0.1, {2, static_cast<uint32_t>(random() % 9)});
          break;
        case 3:
          v.Merge(One(static_cast<double>(random() % 100), {7, 1}));
          break;
        case 4:  // a counter
          v = One(std::floor(v.sum) + static_cast<double>(random() % 5000), v.min_owner);
          break;
        case 5:
          v = One(-static_cast<double>(random() % 1000), {5, Owner::kNobody});
          break;
        case 6:
          v = One(std::pow(-2.0, static_cast<double>(random() % 60)), {5, Owner::kNobody});
          break;
        default:
          break;  // as it was
      }
    }
    std::string bytes;
    encoder.Encode(frame, frame.values, bytes);
    const auto decoded = decoder.Decode(bytes);
    ASSERT_TRUE(decoded.ok());
    EXPECT_EQ((*decoded)->tick, frame.tick);
    EXPECT_EQ((*decoded)->number, frame.number);
    EXPECT_EQ((*decoded)->nodes, frame.nodes);
    for (size_t i = 0; i < kSeries; ++i) {
      ASSERT_TRUE(Same((*decoded)->values[i], frame.values[i])) << tick << " " << i;
    }
  }
}

TEST(Frame, OnlyWhatChangedTakesRoom) {
  FrameEncoder encoder;
  encoder.Reset(*SchemaOf(400));
  Frame frame;
  frame.nodes = NodeSet(0);
  frame.tick = kSecond;
  frame.values.assign(400, One(1'000'000, {0, Owner::kNobody}));
  std::string first, second, third;
  encoder.Encode(frame, frame.values, first);
  frame.tick = 2 * kSecond;
  encoder.Encode(frame, frame.values, second);
  EXPECT_GT(first.size(), 400u * 9);
  EXPECT_LT(second.size(), 20u);
  for (Reduced& v : frame.values) v = One(v.sum + 50, v.min_owner);
  encoder.Encode(frame, frame.values, third);
  EXPECT_LT(third.size(), 400u * 2 + 20) << "counters that grew";
}

Schema::Ptr SpreadSchema() {
  std::vector<Series> series(6);
  for (size_t i = 0; i < series.size(); ++i) {
    series[i].metric.name = std::string(1, static_cast<char>('a' + i));
    series[i].metric.spread = i % 3 != 0;
    if (i % 2 == 1) series[i].metric.type = MetricType::kCounter;
  }
  return Schema::Make(std::move(series));
}

// Of a gauge the sketch is of the same values; of a counter of anything.
void FillSpreads(const Schema& schema, std::mt19937_64& random, Frame& frame) {
  frame.spreads.clear();
  for (size_t i = 0; i < schema.size(); ++i) {
    frame.values[i] = Reduced();
    QuantileSketch spread;
    const size_t count = random() % 3 == 0 ? random() % 40 : random() % 3;
    for (size_t n = 0; n < count; ++n) {
      const double value = std::round(static_cast<double>(random() % 9000)) - 100;
      frame.values[i].Add(value, {static_cast<uint32_t>(n), Owner::kNobody});
      spread.Add(schema[i].metric.type == MetricType::kGauge ? value : value / 8);
    }
    if (schema[i].metric.spread) frame.spreads.push_back(spread);
  }
}

TEST(Frame, SpreadsComeBackThroughManyTicks) {
  std::mt19937_64 random(3);
  const Schema::Ptr schema = SpreadSchema();
  FrameEncoder encoder;
  FrameDecoder decoder;
  encoder.Reset(*schema);
  decoder.Reset(*schema);
  Frame frame;
  frame.nodes = NodeSet(5);
  frame.values.resize(schema->size());
  for (int tick = 1; tick < 500; ++tick) {
    frame.tick = tick * kSecond;
    if (random() % 4 != 0) FillSpreads(*schema, random, frame);
    std::string bytes;
    encoder.Encode(frame, {frame.values, frame.spreads}, bytes);
    const auto decoded = decoder.Decode(bytes);
    ASSERT_TRUE(decoded.ok());
    for (size_t i = 0; i < frame.values.size(); ++i) {
      ASSERT_TRUE(Same((*decoded)->values[i], frame.values[i])) << tick << " " << i;
    }
    ASSERT_EQ((*decoded)->spreads, frame.spreads) << tick;
    for (size_t n = 0; tick % 50 == 0 && n < bytes.size(); ++n) {
      FrameDecoder other;
      other.Reset(*schema);
      EXPECT_FALSE(other.Decode(std::string_view(bytes).substr(0, n)).ok()) << n;
    }
  }
}

// What one task on a node measures costs no more with its spread than without; last values have
// none.
TEST(Frame, ASpreadThatAValueTellsTakesNoRoom) {
  const auto size = [](bool spread, Stream stream) {
    std::vector<Series> series(20);
    for (size_t i = 0; i < series.size(); ++i) series[i].metric.name = std::string(i + 1, 'a');
    if (spread) {
      for (Series& s : series) s.metric.spread = true;
    }
    const Schema::Ptr schema = Schema::Make(std::move(series));
    FrameEncoder encoder;
    encoder.Reset(*schema);
    Frame frame;
    frame.stream = stream;
    frame.nodes = NodeSet(5);
    frame.values.assign(20, One(1.5, {5, Owner::kNobody}));
    if (spread) {
      frame.spreads.resize(20);
      for (QuantileSketch& s : frame.spreads) s.Add(1.5);
    }
    std::string bytes;
    encoder.Encode(frame, {frame.values, frame.spreads}, bytes);
    return bytes.size();
  };
  EXPECT_LE(size(true, Stream::kOwn), size(false, Stream::kOwn) + 2);
  EXPECT_EQ(size(true, Stream::kEnded), size(false, Stream::kEnded));
}

TEST(Frame, ATruncatedOneIsRefused) {
  FrameEncoder encoder;
  encoder.Reset(*SchemaOf(3));
  Frame frame;
  frame.nodes = NodeSet(3);
  frame.values = {One(1, {0, 1}), Reduced(), One(2, {3, Owner::kNobody})};
  std::string bytes;
  encoder.Encode(frame, frame.values, bytes);
  for (size_t n = 0; n < bytes.size(); ++n) {
    FrameDecoder decoder;
    decoder.Reset(*SchemaOf(3));
    EXPECT_FALSE(decoder.Decode(std::string_view(bytes).substr(0, n)).ok()) << n;
  }
  FrameDecoder other;
  other.Reset(*SchemaOf(2));
  EXPECT_FALSE(other.Decode(bytes).ok());  // more values than series
}

TEST(Frame, OneOfNoNodesOrLostOnesThatAreManyIsRefused) {
  FrameDecoder decoder;
  decoder.Reset(*SchemaOf(0));
  FrameEncoder encoder;
  encoder.Reset(*SchemaOf(0));
  std::string bytes;
  encoder.Encode(FrameInfo{}, std::vector<Reduced>(), bytes);
  EXPECT_FALSE(decoder.Decode(bytes).ok());
  FrameInfo info;
  info.stream = Stream::kEnded;
  info.lost = true;
  info.nodes = SetOf({1});
  bytes.clear();
  encoder.Encode(info, std::vector<Reduced>(), bytes);
  EXPECT_TRUE(decoder.Decode(bytes).ok());
  info.nodes = SetOf({1, 2});
  bytes.clear();
  encoder.Encode(info, std::vector<Reduced>(), bytes);
  EXPECT_FALSE(decoder.Decode(bytes).ok());
}

TEST(Frame, WhatWasThereLastIsKnownThoughItIsNotThereNow) {
  FrameEncoder encoder;
  FrameDecoder decoder;
  encoder.Reset(*SchemaOf(2));
  decoder.Reset(*SchemaOf(2));
  FrameInfo info;
  info.nodes = NodeSet(1);
  const Owner self{1, Owner::kNobody};
  const std::vector<std::vector<Reduced>> ticks = {
      {One(5, self), One(1, self)}, {Reduced(), One(2, self)}, {Reduced(), One(3, self)}};
  for (const auto& values : ticks) {
    std::string bytes;
    encoder.Encode(info, values, bytes);
    ASSERT_TRUE(decoder.Decode(bytes).ok());
  }
  EXPECT_EQ(decoder.LastKnown()[0].sum, 5);
  EXPECT_EQ(decoder.LastKnown()[1].sum, 3);
}

// --- The window ---

class Window : public testing::Test {
 protected:
  void Add(uint64_t number, Stream stream = Stream::kOwn, size_t series = 1) {
    FrameInfo info;
    info.number = number;
    info.tick = static_cast<Nanos>(number) * kSecond;
    info.stream = stream;
    info.nodes = NodeSet(0);
    const std::vector<Reduced> values(series, One(static_cast<double>(number) + 0.5, {}));
    if (schema_->size() != series) schema_ = Schema::Make(std::vector<Series>(series));
    window_.Add(info, schema_, values, sent_);
  }
  std::vector<uint64_t> Numbers(uint64_t from = 0, size_t most = SIZE_MAX) {
    std::vector<uint64_t> numbers;
    window_.Replay(from, [&](const Frame& frame, const Schema::Ptr& schema) {
      EXPECT_EQ(frame.values.size(), schema->size());
      EXPECT_EQ(frame.values[0].sum, static_cast<double>(frame.number) + 0.5);
      numbers.push_back(frame.number);
      return numbers.size() < most;
    });
    return numbers;
  }

  // A frame of merged values, which takes about 40 bytes for each, at a tick of this period. All
  // frames before it are under way.
  void AddMerged(uint64_t number, const Schema::Ptr& schema, Nanos period) {
    FrameInfo info;
    info.number = number;
    info.tick = static_cast<Nanos>(number) * period;
    info.stream = Stream::kChildren;
    info.nodes = NodeSet(0);
    info.nodes.Add(NodeSet(1));
    std::vector<Reduced> values(schema->size());
    for (size_t i = 0; i < values.size(); ++i) {
      values[i].Add(static_cast<double>(number) + 0.25, {0, 0});
      values[i].Add(static_cast<double>(number) + 0.7 * static_cast<double>(i), {1, 1});
    }
    window_.Add(info, schema, values, number - 1);
  }

  Schema::Ptr schema_ = Schema::Make(std::vector<Series>(1));
  uint64_t sent_ = 0;
  FrameWindow window_;
};

// The head's children keep frames until the head has stored their rows, and while that takes time
// those that come meanwhile.
TEST_F(Window, KeepsWideFramesUntilTheHeadHasStoredTheirRows) {
  const Schema::Ptr wide = Schema::Make(std::vector<Series>(5000));
  constexpr auto kTicks = static_cast<uint64_t>(2 * head::HeadStore::kStoreAfter / kSecond);
  for (uint64_t n = 1; n <= kTicks; ++n) AddMerged(n, wide, kSecond);
  EXPECT_EQ(window_.CountAfter(0), kTicks);
  EXPECT_GT(window_.bytes(), FrameWindow::kBytes);
  for (uint64_t n = kTicks + 1; n <= 3 * kTicks; ++n) AddMerged(n, wide, kSecond);
  EXPECT_LE(window_.CountAfter(0), 2 * kTicks) << "not for ever";
}

TEST_F(Window, KeepsFramesOfFastTicksUntilTheHeadHasStoredTheirRows) {
  const Schema::Ptr wide = Schema::Make(std::vector<Series>(2000));
  constexpr uint64_t kTicks = 2 * head::HeadStore::kStoreAfterRows;
  for (uint64_t n = 1; n <= kTicks; ++n) AddMerged(n, wide, 10 * kMillisecond);
  EXPECT_EQ(window_.CountAfter(0), kTicks);
  for (uint64_t n = kTicks + 1; n <= FrameWindow::kMaxFrames; ++n) {
    AddMerged(n, wide, 10 * kMillisecond);
  }
  EXPECT_LE(window_.bytes(), FrameWindow::kMaxBytes) << "whatever comes";
}

// A tick is longer than the head takes to store its rows.
TEST_F(Window, KeepsSomeWideFramesOfSlowTicks) {
  const Schema::Ptr wide = Schema::Make(std::vector<Series>(5000));
  for (uint64_t n = 1; n <= 40; ++n) AddMerged(n, wide, 60 * kSecond);
  EXPECT_EQ(window_.CountAfter(0), FrameWindow::kLeastFrames);
}

TEST_F(Window, TellsHowManySamplesCannotBeSentAgain) {
  const Schema::Ptr wide = Schema::Make(std::vector<Series>(5000));
  for (uint64_t n = 1; n <= 40; ++n) AddMerged(n, wide, 60 * kSecond);
  const uint64_t gone = 40 - window_.CountAfter(0);
  EXPECT_EQ(window_.lost(), 0u) << "they are under way";
  window_.Drop(4);  // the head has these
  window_.LoseGone(5);
  EXPECT_EQ(window_.lost(), gone - 4);
  EXPECT_EQ(window_.lost_samples(), 2 * (gone - 4)) << "of two nodes each";
  window_.LoseGone(5);
  EXPECT_EQ(window_.lost(), gone - 4) << "once";
}

TEST_F(Window, KeepsWhatTheHeadHasNot) {
  for (uint64_t n = 1; n <= 5; ++n) Add(n);
  window_.Drop(2);
  EXPECT_THAT(Numbers(), ElementsAre(3, 4, 5));
  EXPECT_THAT(Numbers(5), ElementsAre(5));
  window_.Drop(5);
  EXPECT_TRUE(window_.empty());
  EXPECT_EQ(window_.bytes(), 0u);
  EXPECT_EQ(window_.lost(), 0u);
}

TEST_F(Window, IsBounded) {
  for (uint64_t n = 1; n <= FrameWindow::kMaxFrames + 10; ++n) Add(n);
  EXPECT_EQ(window_.lost(), 10u);
  EXPECT_EQ(Numbers().front(), 11u);
  for (uint64_t n = 2000; n < 2100; ++n) Add(n, Stream::kOwn, 2000);
  EXPECT_LE(window_.bytes(), FrameWindow::kBytes);
  EXPECT_EQ(Numbers().back(), 2099u);
}

TEST_F(Window, KeepsLastValuesLongerThanAllOthers) {
  Add(1, Stream::kEnded);
  Add(2);
  Add(3, Stream::kEnded);
  for (uint64_t n = 4; n <= FrameWindow::kMaxFrames + 10; ++n) Add(n);
  EXPECT_THAT(Numbers(0, 4), ElementsAre(1, 3, 13, 14));
  EXPECT_EQ(window_.lost(), 10u);
  for (uint64_t n = 2000; n < 2000 + FrameWindow::kMaxFrames; ++n) Add(n, Stream::kEnded);
  EXPECT_EQ(window_.CountAfter(0), FrameWindow::kMaxFrames) << "they are not without bound either";
  EXPECT_EQ(Numbers(0, 1).front(), 2000u);
}

// A schema takes ten times what a frame of it does.
TEST_F(Window, SchemasOfOneTickEachAreBounded) {
  const auto name = [](size_t i) { return fmt::format("a_metric_of_this_tick_alone_{}", i); };
  size_t one = 0;
  for (uint64_t n = 1; n <= 500; ++n) {
    std::vector<Series> series(500);
    for (size_t i = 0; i < series.size(); ++i) series[i].metric.name = name(1000 * n + i);
    schema_ = Schema::Make(std::move(series));
    one = schema_->text_bytes();
    Add(n, Stream::kOwn, 500);
  }
  EXPECT_LE(window_.CountAfter(0) * one, FrameWindow::kMaxSchemaBytes + one);
  EXPECT_GT(window_.CountAfter(0), 50u);
  EXPECT_EQ(window_.CountAfter(0) + window_.lost(), 500u);
  window_.Drop(500);
  for (uint64_t n = 501; n <= 520; ++n) Add(n, Stream::kOwn, 500);
  EXPECT_EQ(window_.CountAfter(0), 20u) << "one that stays costs once";
}

// With short ticks more frames than fit are under way until the head's word comes down.
TEST_F(Window, OnlyWhatWasNeverSentIsLost) {
  for (uint64_t n = 1; n <= FrameWindow::kMaxFrames + 10; ++n) {
    sent_ = n - 1;
    Add(n);
  }
  EXPECT_EQ(window_.lost(), 0u);
  EXPECT_EQ(Numbers().front(), 11u);
  sent_ = 13;  // a new link has had these
  for (uint64_t n = FrameWindow::kMaxFrames + 11; n <= FrameWindow::kMaxFrames + 18; ++n) Add(n);
  EXPECT_EQ(window_.lost(), 5u) << "14 to 18";
}

TEST_F(Window, LeavesOutEverySecondOfEachStreamButNoLastValues) {
  for (uint64_t n = 1; n <= 4; ++n) Add(n);
  for (uint64_t n = 5; n <= 8; ++n) Add(n, Stream::kChildren);
  Add(9, Stream::kEnded);
  Add(10, Stream::kEnded);
  window_.Thin(1);
  EXPECT_THAT(Numbers(), ElementsAre(1, 2, 4, 5, 7, 9, 10));
  EXPECT_EQ(window_.lost(), 3u);
  EXPECT_EQ(window_.CountAfter(4), 4u);
}

}  // namespace
}  // namespace sonde::tree::tree_frame_test
