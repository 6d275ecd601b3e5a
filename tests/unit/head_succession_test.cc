#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "daemon/head/registry/head_state.h"
#include "daemon/head/registry/succession.h"
#include "profiles/live/live_archive.h"
#include "profiles/live/live_steps.h"
#include "tests/unit/temp_dir.h"

namespace sonde::head::head_succession_test {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

using tree::Type;

// What each node was sent, over connections that take all.
class Successions : public testing::Test {
 protected:
  void Run(Nanos time) {
    loop_.After(time, [this] { loop_.Stop(); });
    loop_.Run();
  }
  std::vector<uint32_t> Sent(Type type) const {
    std::vector<uint32_t> nodes;
    for (const auto& [node, sent, payload] : sent_) {
      if (sent == type) nodes.push_back(node);
    }
    return nodes;
  }
  // Of the list that a node was told last.
  std::vector<uint32_t> Told(uint32_t node) const {
    std::vector<uint32_t> places;
    for (auto at = sent_.rbegin(); at != sent_.rend(); ++at) {
      if (at->node != node || at->type != Type::kSuccessors) continue;
      tree::Successors list;
      EXPECT_TRUE(Decode(at->payload, list).ok());
      for (const tree::Place& place : list.places) places.push_back(place.index);
      break;
    }
    return places;
  }
  void Stand(Succession& succession, uint32_t node) {
    succession.OnStandingBy(node, Encode(tree::StandingBy{"10.0.0." + std::to_string(node),
                                                          static_cast<uint16_t>(40000 + node)}));
  }

  struct Message {
    uint32_t node;
    Type type;
    std::string payload;
  };
  Loop loop_;
  std::vector<Message> sent_;
  Succession::Send send_ = [this](uint32_t node, Type type, std::string_view payload) {
    sent_.push_back({node, type, std::string(payload)});
    return true;
  };
};

TEST_F(Successions, BeginWhenTheStepHasRunForAWhile) {
  Succession succession(loop_, 20 * kMillisecond, send_);
  for (uint32_t node = 0; node < 5; ++node) succession.Add(node);
  EXPECT_THAT(sent_, IsEmpty());
  Run(25 * kMillisecond);
  EXPECT_THAT(Sent(Type::kStandby), ElementsAre(0, 1, 2));
}

TEST_F(Successions, AreToldToAllAndToThoseThatComeLater) {
  Succession succession(loop_, 0, send_);
  for (uint32_t node = 0; node < 5; ++node) succession.Add(node);
  Run(kMillisecond);
  for (const uint32_t node : {1, 0, 2}) Stand(succession, node);
  Run(2 * Succession::kDelay);
  EXPECT_THAT(Sent(Type::kSuccessors), ElementsAre(0, 1, 2, 3, 4)) << "once, with all of them";
  EXPECT_THAT(Told(4), ElementsAre(0, 1, 2));
  succession.Add(5);
  EXPECT_THAT(Told(5), ElementsAre(0, 1, 2));
}

TEST_F(Successions, OneThatGoesIsReplaced) {
  Succession succession(loop_, 0, send_);
  for (uint32_t node = 0; node < 5; ++node) succession.Add(node);
  Run(kMillisecond);
  for (const uint32_t node : {0, 1, 2}) Stand(succession, node);
  Run(2 * Succession::kDelay);
  succession.Remove(1);
  EXPECT_EQ(Sent(Type::kStandby).back(), 3u);
  Stand(succession, 3);
  Run(2 * Succession::kDelay);
  EXPECT_THAT(Told(4), ElementsAre(0, 2, 3));
  // It is back and is asked again: its daemon may listen no more.
  succession.Add(1);
  EXPECT_EQ(Sent(Type::kStandby).back(), 1u);
}

// No port of the range is free there.
TEST_F(Successions, OnesThatCannotArePassedOver) {
  Succession succession(loop_, 0, send_);
  for (uint32_t node = 0; node < 20; ++node) succession.Add(node);
  Run(kMillisecond);
  const std::string cannot = Encode(tree::StandingBy{"10.0.0.1", 0});
  succession.OnStandingBy(1, cannot);
  EXPECT_EQ(Sent(Type::kStandby).back(), 3u);
  for (const uint32_t node : {0, 2, 3}) Stand(succession, node);
  Run(2 * Succession::kDelay);
  EXPECT_THAT(Told(4), ElementsAre(0, 2, 3));
}

TEST_F(Successions, NotEverybodyIsAskedWhereNobodyCan) {
  Succession succession(loop_, 0, send_);
  for (uint32_t node = 0; node < 20; ++node) succession.Add(node);
  Run(kMillisecond);
  for (uint32_t node = 0; node < 20; ++node) {
    succession.OnStandingBy(node, Encode(tree::StandingBy{"10.0.0.1", 0}));
  }
  EXPECT_THAT(Sent(Type::kStandby), ElementsAre(0, 1, 2, 3, 4, 5));
}

TEST_F(Successions, NobodyIsBelievedWhoWasNotAsked) {
  Succession succession(loop_, 0, send_);
  for (uint32_t node = 0; node < 5; ++node) succession.Add(node);
  Run(kMillisecond);
  Stand(succession, 4);
  succession.OnStandingBy(0, "garbage that is no message");
  succession.OnStandingBy(1, Encode(tree::StandingBy{"10.0.0.1", 0}));
  Run(2 * Succession::kDelay);
  EXPECT_THAT(Sent(Type::kSuccessors), IsEmpty());
}

struct LastValues {
  tree::FrameInfo info;
  std::vector<uint32_t> columns;
  std::vector<Reduced> values;
};
std::vector<LastValues> LastValuesOf(const HeadState& state) {
  std::vector<LastValues> all;
  ForEachLastValues(state, [&](const tree::FrameInfo& info, auto columns, auto values) {
    all.push_back({info, {columns.begin(), columns.end()}, {values.begin(), values.end()}});
  });
  return all;
}

HeadState State() {
  HeadState state;
  state.row = 1'800'000'000 * kSecond;
  state.byes = 2;
  state.ends.tasks_ended = 7;
  state.ends.exit_status = 256;
  Series series;
  series.metric.name = "work_total";
  state.schema = Schema::Make({series});
  for (const uint32_t node : {3u, 9u}) {
    tree::Frame frame;
    frame.number = node;
    frame.tick = state.row;
    frame.stream = tree::Stream::kEnded;
    frame.lost = node == 9;
    frame.nodes = tree::NodeSet(node);
    frame.values.resize(1);
    frame.values[0].Add(100.0 * node, {node, 1});
    state.ended.push_back(EncodeLastValues(frame, *state.schema));
  }
  state.phases = {{"solve", state.row, 7, {3, 1}}, {"io", state.row + 1, 1, {}}};
  state.alarms = "hot: temperature_celsius > 90\nidle_node: off\n";
  return state;
}

TEST(HeadStates, ComeBackAsTheyWere) {
  HeadState read;
  ASSERT_TRUE(Decode(Encode(State()), read).ok());
  const HeadState state = State();
  EXPECT_EQ(read.row, state.row);
  EXPECT_EQ(read.byes, 2u);
  EXPECT_EQ(read.ends.tasks_ended, 7u);
  EXPECT_EQ(read.ends.exit_status, 256);
  EXPECT_EQ(read.schema->id(), state.schema->id());
  const std::vector<LastValues> last = LastValuesOf(read);
  ASSERT_EQ(last.size(), 2u);
  EXPECT_THAT(last[0].columns, ElementsAre(0));
  EXPECT_EQ(last[0].values[0].sum, 300);
  EXPECT_FALSE(last[0].info.lost);
  EXPECT_TRUE(last[1].info.lost);
  EXPECT_TRUE(last[1].info.nodes.Has(9));
  EXPECT_EQ(read.phases, state.phases);
  EXPECT_EQ(read.alarms, state.alarms);
}

// Two racks of a large step, such as when their switch fails, and then the head.
TEST(HeadStates, WithThousandsOfNodesThatWereLost) {
  HeadState state = State();
  const std::string lost = state.ended.front();
  state.ended.assign(5000, lost);
  HeadState read;
  const Status decoded = Decode(Encode(state), read);
  ASSERT_TRUE(decoded.ok()) << decoded.message();
  ASSERT_EQ(read.ended.size(), 5000u);
  EXPECT_EQ(LastValuesOf(read).back().values[0].sum, 300);
}

// A step whose parents failed: thousands of nodes are the head's own children, with all series of a
// wide step.
TEST(HeadStates, OfAWideStepWithThousandsOfChildrenIsReadByTheNextHead) {
  constexpr uint32_t kNodes = 4000;
  constexpr uint32_t kSeries = 1600;
  HeadState state = State();
  std::vector<Series> series(kSeries);
  for (uint32_t i = 0; i < kSeries; ++i) {
    series[i].metric.name = "work_" + std::to_string(i) + "_total";
    series[i].metric.type = MetricType::kCounter;
  }
  state.schema = Schema::Make(std::move(series));
  state.ended.clear();
  tree::Frame frame;
  frame.stream = tree::Stream::kEnded;
  frame.lost = true;
  for (uint32_t node = 0; node < kNodes; ++node) {
    frame.nodes = tree::NodeSet(node);
    frame.values.assign(kSeries, Reduced());
    for (Reduced& value : frame.values) value.Add(1e9 + node / 7.0, {node, 1});
    state.ended.push_back(EncodeLastValues(frame, *state.schema));
  }
  const TempDir archive(TempDir::Memory());
  JobDescription job;
  job.id.job = "7";
  job.start = 1'800'000'000 * kSecond;
  auto live = LiveArchive::Create(archive.path(), job);
  ASSERT_TRUE(live.ok()) << live.status().message();
  size_t left_out = 0;
  const Status stored = (*live)->PutState(Encode(state, &left_out));
  ASSERT_TRUE(stored.ok()) << stored.message();
  const auto heritage = ReadHeritage(archive.path(), job);
  ASSERT_TRUE(heritage.ok()) << heritage.status().message();
  ASSERT_TRUE(heritage->state.ok()) << heritage->state.status().message();
  HeadState read;
  const Status decoded = Decode(*heritage->state, read);
  ASSERT_TRUE(decoded.ok()) << decoded.message();
  EXPECT_EQ(read.alarms, state.alarms);
  EXPECT_GT(left_out, 0u) << "the last ones, the head's own children";
  EXPECT_LT(left_out, kNodes / 3);
  EXPECT_EQ(read.ended.size() + left_out, kNodes);
  EXPECT_EQ(read.ended.front(), state.ended.front());
}

// Gauges are in no total: without them there is room for more nodes.
TEST(HeadStates, LastValuesMayGoWithoutGauges) {
  std::vector<Series> series(3);
  series[0].metric.type = series[2].metric.type = MetricType::kCounter;
  series[1].metric.type = MetricType::kGauge;
  for (size_t i = 0; i < series.size(); ++i) series[i].metric.name = "m" + std::to_string(i);
  HeadState state;
  state.schema = Schema::Make(std::move(series));
  tree::Frame frame;
  frame.stream = tree::Stream::kEnded;
  frame.nodes = tree::NodeSet(5);
  frame.values.resize(3);
  for (Reduced& value : frame.values) value.Add(7, {5, 1});
  state.ended = {EncodeLastValues(frame, *state.schema),
                 EncodeLastValues(frame, *state.schema, /*gauges=*/false)};
  const std::vector<LastValues> last = LastValuesOf(state);
  EXPECT_THAT(last[0].columns, ElementsAre(0, 1, 2));
  EXPECT_THAT(last[1].columns, ElementsAre(0, 2));
  EXPECT_EQ(last[1].values[1].sum, 7);
}

// A file of a few bytes names values that are not there by the million.
TEST(HeadStates, ValuesThatAreNotThereTakeNoMemory) {
  HeadState state = State();
  std::vector<Series> series(5000);
  for (size_t i = 0; i < series.size(); ++i) series[i].metric.name = "m" + std::to_string(i);
  state.schema = Schema::Make(std::move(series));
  tree::Frame frame;
  frame.stream = tree::Stream::kEnded;
  frame.nodes = tree::NodeSet(5);
  frame.values.resize(state.schema->size());
  state.ended.assign(20'000, EncodeLastValues(frame, *state.schema));  // decoded: 5.6 GB
  HeadState read;
  const Status decoded = Decode(Encode(state), read);
  ASSERT_TRUE(decoded.ok()) << decoded.message();
  size_t bytes = 0;
  for (const std::string& one : read.ended) bytes += one.capacity();
  EXPECT_LT(bytes, 1u << 20);
}

TEST(HeadStates, OfAHeadThatKnowsNothingYet) {
  HeadState read;
  EXPECT_TRUE(Decode(Encode(HeadState()), read).ok());
  EXPECT_EQ(read.schema, nullptr);
}

TEST(HeadStates, EveryCutOneIsRefused) {
  const std::string bytes = Encode(State());
  for (size_t length = 0; length < bytes.size(); ++length) {
    HeadState read;
    EXPECT_EQ(Decode(bytes.substr(0, length), read).code(), Code::kCorrupt) << length;
  }
}

TEST(HeadStates, OfAnotherReleaseIsSaidToBeThat) {
  std::string bytes = Encode(State());
  bytes[0] = HeadState::kVersion + 1;
  HeadState read;
  EXPECT_EQ(Decode(bytes, read).code(), Code::kUnsupported);
}

// It may have gone on as acting head, and comes back otherwise.
TEST_F(Successions, AnAwayNodeThatStoodByIsNamed) {
  std::vector<std::pair<uint32_t, bool>> standing;
  Succession succession(loop_, 0, send_, [&](const tree::Place& place, bool away) {
    standing.emplace_back(place.index, away);
  });
  for (uint32_t node = 0; node < 4; ++node) succession.Add(node);
  Run(kMillisecond);
  for (const uint32_t node : {0, 1, 2}) Stand(succession, node);
  Run(2 * Succession::kDelay);
  succession.Remove(3, false);
  EXPECT_THAT(standing, IsEmpty()) << "it did not stand by";
  succession.Remove(1, true);
  EXPECT_THAT(standing, IsEmpty()) << "it has said goodbye";
  succession.Remove(0, false);
  EXPECT_THAT(standing, ElementsAre(std::pair(0u, true)));
  succession.Add(0);
  EXPECT_THAT(standing, ElementsAre(std::pair(0u, true), std::pair(0u, false)));
}

TEST_F(Successions, WhoActsComesFirstWhereNodesLook) {
  Succession succession(loop_, 0, send_);
  for (uint32_t node = 0; node < 4; ++node) succession.Add(node);
  Run(kMillisecond);
  for (const uint32_t node : {0, 1, 2}) Stand(succession, node);
  Run(2 * Succession::kDelay);
  succession.Remove(1);
  succession.TellOf({1, "10.0.0.1", 40001});
  for (const uint32_t node : {0, 2, 3}) EXPECT_THAT(Told(node), ElementsAre(1, 0, 2)) << node;
  // One that says only now that it stands by. Would it see itself alone it would go on, too.
  Stand(succession, 3);
  Run(2 * Succession::kDelay);
  for (const uint32_t node : {0, 2, 3}) EXPECT_THAT(Told(node), ElementsAre(1, 0, 2, 3)) << node;
}

}  // namespace
}  // namespace sonde::head::head_succession_test
