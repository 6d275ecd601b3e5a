#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "daemon/head/registry/head_state.h"
#include "daemon/head/registry/succession.h"

namespace sonde::head {
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
    tree::Frame& frame = state.ended.emplace_back();
    frame.number = state.ended.size();
    frame.tick = state.row;
    frame.stream = tree::Stream::kEnded;
    frame.lost = node == 9;
    frame.nodes = tree::NodeSet(node);
    frame.values.resize(1);
    frame.values[0].Add(100.0 * node, {node, 1});
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
  ASSERT_EQ(read.ended.size(), 2u);
  EXPECT_EQ(read.ended[0].values[0].sum, 300);
  EXPECT_FALSE(read.ended[0].lost);
  EXPECT_TRUE(read.ended[1].lost);
  EXPECT_TRUE(read.ended[1].nodes.Has(9));
  EXPECT_EQ(read.phases, state.phases);
  EXPECT_EQ(read.alarms, state.alarms);
}

// Two racks of a large step, such as when their switch fails, and then the head.
TEST(HeadStates, WithThousandsOfNodesThatWereLost) {
  HeadState state = State();
  const tree::Frame lost = state.ended.front();
  state.ended.assign(5000, lost);
  HeadState read;
  const Status decoded = Decode(Encode(state), read);
  ASSERT_TRUE(decoded.ok()) << decoded.message();
  ASSERT_EQ(read.ended.size(), 5000u);
  EXPECT_EQ(read.ended.back().values[0].sum, lost.values[0].sum);
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

}  // namespace
}  // namespace sonde::head
