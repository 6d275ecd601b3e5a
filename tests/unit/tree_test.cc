#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <random>

#include "daemon/launch_message.h"
#include "daemon/tree/auth.h"
#include "daemon/tree/frame.h"
#include "daemon/tree/handshake.h"
#include "daemon/tree/message.h"
#include "daemon/tree/own_reducer.h"
#include "daemon/tree/tick_merger.h"

namespace sonde::tree {
namespace {

using testing::HasSubstr;

StepKey KeyOf(unsigned char fill) {
  StepKey key;
  key.fill(fill);
  return key;
}

Registration Node3() {
  return {.job = "12", .step = "0", .node_id = 3, .nodes = 4, .tasks = 2, .host = "n3"};
}

// --- Authentication ---

TEST(Handshake, BothSidesProveTheKey) {
  const ConnectingHandshake node(KeyOf(1), Node3());
  AcceptingHandshake head(KeyOf(1));
  const auto challenge = head.OnMessage(1, node.Hello());
  ASSERT_TRUE(challenge.ok());
  const auto proof = node.OnMessage(2, *challenge);
  ASSERT_TRUE(proof.ok());
  EXPECT_FALSE(head.proven());
  ASSERT_TRUE(head.OnMessage(3, *proof).ok());
  EXPECT_TRUE(head.proven());
  EXPECT_EQ(head.registration().host, "n3");
  EXPECT_EQ(head.registration().node_id, 3u);
}

TEST(Handshake, AWrongKeyIsRefusedByEitherSide) {
  const ConnectingHandshake node(KeyOf(1), Node3());
  AcceptingHandshake wrong(KeyOf(2));
  const auto challenge = wrong.OnMessage(1, node.Hello());
  ASSERT_TRUE(challenge.ok());
  EXPECT_EQ(node.OnMessage(2, *challenge).status().code(), Code::kPermission);

  AcceptingHandshake head(KeyOf(1));
  const ConnectingHandshake stranger(KeyOf(2), Node3());
  const auto to_stranger = head.OnMessage(1, stranger.Hello());
  Challenge heard;
  ASSERT_TRUE(Decode(*to_stranger, heard).ok());
  // Without the key it can only guess, or send the head's own proof back.
  const std::string registration = Encode(Node3());
  EXPECT_EQ(head.OnMessage(3, Encode(Proof{heard.proof, registration})).status().code(),
            Code::kPermission);
  EXPECT_FALSE(head.proven());
}

TEST(Handshake, TheTokenIsAnHmacOfTheKey) {
  EXPECT_EQ(HttpToken(KeyOf(1)), "0db02060d3d6fad6672c92da77ce7f45");
}

TEST(Handshake, AProofIsGoodForOneRegistrationAndOneConnection) {
  const ConnectingHandshake node(KeyOf(1), Node3());
  AcceptingHandshake head(KeyOf(1));
  const auto proof = node.OnMessage(2, *head.OnMessage(1, node.Hello()));
  Proof changed;
  ASSERT_TRUE(Decode(*proof, changed).ok());
  Registration other = Node3();
  other.host = "n4";
  changed.registration = Encode(other);
  EXPECT_FALSE(head.OnMessage(3, Encode(changed)).ok());

  AcceptingHandshake again(KeyOf(1));
  ASSERT_TRUE(again.OnMessage(1, node.Hello()).ok());
  EXPECT_FALSE(again.OnMessage(3, *proof).ok());  // replayed: the nonce is another
}

TEST(Handshake, NothingElseIsTakenBeforeTheProof) {
  AcceptingHandshake head(KeyOf(1));
  EXPECT_EQ(head.OnMessage(static_cast<uint8_t>(Type::kFrame), "x").status().code(),
            Code::kCorrupt);
}

TEST(Handshake, AnotherVersionIsNamed) {
  AcceptingHandshake head(KeyOf(1));
  const auto answer = head.OnMessage(1, Encode(Hello{kProtocolVersion + 1, MakeNonce()}));
  ASSERT_FALSE(answer.ok());
  EXPECT_THAT(std::string(answer.status().message()), HasSubstr("install one version"));
}

TEST(Proof, IsHmacSha256) {
  // As another implementation gives it: HMAC-SHA256 of "node", 0, "firstsecond", 0, "body".
  const std::string proof = Prove(KeyOf(0x0b), "node", "first", "second", "body");
  std::string hex;
  for (const unsigned char c : proof)
    hex += "0123456789abcdef"[c >> 4], hex += "0123456789abcdef"[c & 15];
  EXPECT_EQ(hex, "6284ebeaaa731584f6aa66773d4951e699c570d056ef9b08c9b8bce79644d53c");
}

TEST(HttpToken, IsDerivedAndDoesNotShowTheKey) {
  EXPECT_EQ(HttpToken(KeyOf(1)).size(), 32u);
  EXPECT_EQ(HttpToken(KeyOf(1)), HttpToken(KeyOf(1)));
  EXPECT_NE(HttpToken(KeyOf(1)), HttpToken(KeyOf(2)));
}

// --- Messages ---

TEST(Message, ATruncatedOrLongerOneIsRefused) {
  const std::string bytes = Encode(BlockMessage{7, "os", 3, 2, 128, 1, 4096, "schema", "block"});
  BlockMessage block;
  ASSERT_TRUE(Decode(bytes, block).ok());
  EXPECT_EQ(block.sequence, 3u);
  EXPECT_EQ(block.bytes, "block");
  for (size_t n = 0; n < bytes.size(); ++n) {
    EXPECT_FALSE(Decode(std::string_view(bytes).substr(0, n), block).ok()) << n;
  }
  EXPECT_FALSE(Decode(bytes + "x", block).ok());
}

TEST(Message, AByeKeepsSignsAndFractions) {
  Bye bye;
  ASSERT_TRUE(Decode(Encode(Bye{.exit_status = -1, .ticks = 9, .cpu_seconds = 0.125}), bye).ok());
  EXPECT_EQ(bye.exit_status, -1);
  EXPECT_EQ(bye.ticks, 9u);
  EXPECT_EQ(bye.cpu_seconds, 0.125);
}

// --- Frames ---

Reduced One(double value, Owner owner) {
  Reduced r;
  r.Add(value, owner);
  return r;
}

bool Same(const Reduced& a, const Reduced& b) {
  return a.count == b.count && a.sum == b.sum && a.min == b.min && a.max == b.max &&
         a.sum_sq == b.sum_sq && a.min_owner == b.min_owner && a.max_owner == b.max_owner;
}

TEST(Frame, EveryValueComesBackThroughManyTicks) {
  std::mt19937_64 random(1);
  FrameEncoder encoder;
  FrameDecoder decoder;
  constexpr size_t kSeries = 50;
  encoder.Reset(kSeries);
  decoder.Reset(kSeries);
  Frame frame;
  frame.values.resize(kSeries);
  for (int tick = 1; tick < 200; ++tick) {
    frame.tick = tick * kSecond;
    frame.node = 5;
    frame.nodes = 3;
    frame.final = tick == 199;
    for (Reduced& v : frame.values) {
      switch (random() % 5) {
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
        default:
          break;  // as it was
      }
    }
    std::string bytes;
    encoder.Encode(frame, bytes);
    const auto decoded = decoder.Decode(bytes);
    ASSERT_TRUE(decoded.ok());
    EXPECT_EQ((*decoded)->tick, frame.tick);
    EXPECT_EQ((*decoded)->final, frame.final);
    for (size_t i = 0; i < kSeries; ++i) {
      ASSERT_TRUE(Same((*decoded)->values[i], frame.values[i])) << tick << " " << i;
    }
  }
}

TEST(Frame, AnUnchangedOneIsTiny) {
  FrameEncoder encoder;
  encoder.Reset(400);
  Frame frame;
  frame.tick = kSecond;
  frame.values.assign(400, One(1.5, {0, Owner::kNobody}));
  std::string first, second;
  encoder.Encode(frame, first);
  frame.tick = 2 * kSecond;
  encoder.Encode(frame, second);
  EXPECT_GT(first.size(), 400u * 9);
  EXPECT_LT(second.size(), 20u);
}

TEST(Frame, ATruncatedOneIsRefused) {
  FrameEncoder encoder;
  encoder.Reset(3);
  Frame frame;
  frame.values = {One(1, {0, 1}), Reduced(), One(2, {0, Owner::kNobody})};
  std::string bytes;
  encoder.Encode(frame, bytes);
  for (size_t n = 0; n < bytes.size(); ++n) {
    FrameDecoder decoder;
    decoder.Reset(3);
    EXPECT_FALSE(decoder.Decode(std::string_view(bytes).substr(0, n)).ok()) << n;
  }
  FrameDecoder other;
  other.Reset(2);
  EXPECT_FALSE(other.Decode(bytes).ok());  // more values than series
}

// --- Merging ---

Series Gauge(std::string name) {
  Series s;
  s.metric.name = std::move(name);
  return s;
}

Series Counter(std::string name) {
  Series s = Gauge(std::move(name));
  s.metric.type = MetricType::kCounter;
  return s;
}

struct Row {
  Nanos tick;
  uint32_t nodes;
  bool late;
  std::map<std::string, Reduced> values;
};

class Merging : public testing::Test {
 protected:
  TickMerger::Id Child(std::vector<Series> series, Nanos joined = 0) {
    const TickMerger::Id id = merger.AddContributor(joined);
    merger.SetSchema(id, Schema::Make(std::move(series)));
    return id;
  }
  void Send(TickMerger::Id id, uint32_t node, Nanos tick, std::vector<double> values,
            bool final = false, uint32_t nodes = 1) {
    Frame frame;
    frame.tick = tick;
    frame.node = node;
    frame.nodes = final ? 0 : nodes;
    frame.final = final;
    for (const double v : values) frame.values.push_back(One(v, {node, Owner::kNobody}));
    merger.Add(id, frame);
  }

  std::vector<Row> rows;
  TickMerger merger{99, [this](const Frame& frame, bool late) {
                      Row row{frame.tick, frame.nodes, late, {}};
                      for (size_t i = 0; i < frame.values.size(); ++i) {
                        row.values[merger.series()[i].metric.name] = frame.values[i];
                      }
                      rows.push_back(std::move(row));
                    }};
};

TEST_F(Merging, ATickIsCompleteWhenAllHaveSentTheirs) {
  const auto a = Child({Gauge("load"), Gauge("memory")});
  const auto b = Child({Gauge("memory"), Gauge("load")});  // another order
  Send(a, 0, 10, {1.0, 100});
  EXPECT_TRUE(rows.empty());
  Send(b, 1, 10, {300, 3.0});
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0].nodes, 2u);
  EXPECT_EQ(rows[0].values["load"].sum, 4.0);
  EXPECT_EQ(rows[0].values["memory"].max, 300);
  EXPECT_EQ(rows[0].values["memory"].max_owner.node, 1u);
  EXPECT_EQ(rows[0].values["load"].min_owner.node, 0u);
}

TEST_F(Merging, AMissingPartDoesNotHoldTheTickForEverAndIsNotLostWhenItComes) {
  const auto a = Child({Gauge("load")});
  const auto b = Child({Gauge("load")});
  Send(a, 0, 10, {1});
  EXPECT_EQ(merger.oldest(), 10);
  merger.EmitUpTo(10);
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0].nodes, 1u);
  Send(b, 1, 10, {5});
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_TRUE(rows[1].late);
  EXPECT_EQ(rows[1].values["load"].sum, 5);
}

TEST_F(Merging, TicksAreEmittedInOrderAndOneThatWasLeftOutIsNotWaitedFor) {
  const auto a = Child({Gauge("load")});
  const auto b = Child({Gauge("load")});
  Send(a, 0, 10, {1});
  Send(a, 0, 20, {1});
  EXPECT_TRUE(rows.empty());
  Send(b, 1, 20, {1});  // links keep their order: its 10 will not come
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0].tick, 10);
  EXPECT_EQ(rows[0].nodes, 1u);
  EXPECT_EQ(rows[1].tick, 20);
  EXPECT_EQ(rows[1].nodes, 2u);
}

TEST_F(Merging, ANewcomerIsNotWaitedForInTicksBeforeIt) {
  const auto a = Child({Gauge("load")});
  Send(a, 0, 10, {1});
  Child({Gauge("load")}, /*joined=*/15);
  ASSERT_EQ(rows.size(), 1u);
  Send(a, 0, 20, {1});
  EXPECT_EQ(rows.size(), 1u) << "20 waits for the newcomer";
}

TEST_F(Merging, CountersOfThoseThatEndedStayInTheTotals) {
  const auto a = Child({Counter("bytes_total"), Gauge("load")});
  const auto b = Child({Counter("bytes_total"), Gauge("load")});
  Send(a, 0, 10, {100, 1});
  Send(b, 1, 10, {10, 2});
  Send(a, 0, 14, {120, 7}, /*final=*/true);
  Send(b, 1, 20, {30, 2});
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0].values["bytes_total"].sum, 110);
  EXPECT_EQ(rows[1].values["bytes_total"].sum, 150);
  EXPECT_EQ(rows[1].nodes, 1u);
  EXPECT_EQ(rows[1].values["load"].sum, 2) << "gauges of the gone are gone";
  Send(b, 1, 25, {40, 3}, true);
  const Frame last = merger.Final(30);
  EXPECT_EQ(last.values[0].sum, 160);
  EXPECT_EQ(last.values[1].sum, 10);
}

// A metric that is not sampled at every tick has no value between, and not that of the gone alone.
TEST_F(Merging, CountersOfThoseThatEndedWaitForATickAtWhichTheOthersHaveThem) {
  const double none = std::nan("");
  const auto a = Child({Counter("faults_total"), Counter("only_a_total")});
  const auto b = Child({Counter("faults_total")});
  Send(a, 0, 10, {100, 1});
  Send(b, 1, 10, {10});
  Send(a, 0, 14, {120, 2}, /*final=*/true);
  Send(b, 1, 20, {none});
  Send(b, 1, 30, {15});
  ASSERT_EQ(rows.size(), 3u);
  EXPECT_EQ(rows[1].values["faults_total"].count, 0);
  EXPECT_EQ(rows[1].values["only_a_total"].sum, 2) << "nobody who is there has it";
  EXPECT_EQ(rows[2].values["faults_total"].sum, 135);
  EXPECT_EQ(rows[2].values["faults_total"].count, 2);
}

TEST_F(Merging, ALostOneKeepsWhatItHadBetweenTwoSamplesOfAMetric) {
  const auto a = Child({Counter("faults_total")});
  const auto b = Child({Counter("faults_total")});
  Send(a, 0, 10, {100});
  Send(b, 1, 10, {10});
  Send(a, 0, 20, {std::nan("")});
  Send(b, 1, 20, {std::nan("")});
  merger.Remove(a, /*keep_counters=*/true);
  Send(b, 1, 30, {11});
  ASSERT_EQ(rows.size(), 3u);
  EXPECT_EQ(rows[2].values["faults_total"].sum, 111);
}

TEST_F(Merging, AFinalFrameDoesNotCountTwiceInATickThatStillWaits) {
  const auto a = Child({Counter("bytes_total")});
  const auto b = Child({Counter("bytes_total")});
  Send(a, 0, 10, {100});
  Send(a, 0, 14, {120}, true);
  Send(b, 1, 10, {1});
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0].values["bytes_total"].sum, 101);
}

TEST_F(Merging, ALostOneStaysAsItWasLastSeenAndOneThatMovesDoesNot) {
  const auto a = Child({Counter("bytes_total")});
  const auto b = Child({Counter("bytes_total")});
  const auto c = Child({Counter("bytes_total")});
  for (const auto& [id, value] : {std::pair(a, 1.0), {b, 10.0}, {c, 100.0}})
    Send(id, id, 10, {value});
  merger.Remove(a, /*keep_counters=*/true);
  merger.Remove(b, /*keep_counters=*/false);
  Send(c, 2, 20, {200});
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[1].values["bytes_total"].sum, 201);
}

TEST_F(Merging, ALostOneThatPassedOnOthersIsNotKeptForTheyGoOn) {
  const auto a = Child({Counter("bytes_total")});
  const auto b = Child({Counter("bytes_total")});
  Send(a, 0, 10, {300}, false, /*nodes=*/3);
  Send(b, 1, 10, {1});
  EXPECT_FALSE(merger.Remove(a, /*keep_counters=*/true));
  Send(b, 1, 20, {2});
  EXPECT_EQ(rows[1].values["bytes_total"].sum, 2);
  EXPECT_TRUE(merger.Remove(b, /*keep_counters=*/true));
}

TEST_F(Merging, TicksWaitForOneThatIsOnItsWayToAnotherLink) {
  const auto a = Child({Counter("bytes_total")});
  const auto b = Child({Counter("bytes_total")});
  Send(a, 0, 10, {1});
  Send(b, 1, 10, {1});
  merger.Leave(a, /*until=*/25);
  Send(b, 1, 20, {2});
  EXPECT_EQ(rows.size(), 1u);
  const auto again = Child({Counter("bytes_total")}, 12);
  merger.Remove(a, /*keep_counters=*/false);
  EXPECT_EQ(rows.size(), 1u);
  Send(again, 0, 20, {2});
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[1].nodes, 2u);
}

TEST_F(Merging, TicksDoNotWaitForOneThatHasGoneElsewhere) {
  const auto a = Child({Counter("bytes_total")});
  const auto b = Child({Counter("bytes_total")});
  merger.Leave(a, /*until=*/15);
  Send(b, 1, 10, {1});
  EXPECT_TRUE(rows.empty());
  Send(b, 1, 20, {2});
  merger.EmitUpTo(10);
  ASSERT_EQ(rows.size(), 2u) << "one that was waited for in vain, and what had come meanwhile";
  Send(b, 1, 30, {3});
  EXPECT_EQ(rows.size(), 3u);
}

TEST_F(Merging, SeriesThatAppearLaterGoToTheEnd) {
  const auto a = Child({Gauge("load")});
  Send(a, 0, 10, {1});
  merger.SetSchema(a, Schema::Make({Gauge("temperature"), Gauge("load")}));
  Send(a, 0, 20, {55, 2});
  EXPECT_EQ(merger.series()[0].metric.name, "load");
  EXPECT_EQ(rows[1].values["temperature"].sum, 55);
  EXPECT_EQ(rows[1].values["load"].sum, 2);
}

TEST_F(Merging, OneThatComesBackOverAnotherLinkIsWaitedForAsBefore) {
  const auto a = Child({Gauge("load")});
  const auto b = Child({Gauge("load")});
  Send(a, 0, 10, {1});
  Send(b, 1, 10, {1});
  merger.Leave(a, 30);
  Send(b, 1, 20, {1});
  ASSERT_EQ(rows.size(), 1u) << "20 waits for a";
  merger.Leave(a, 0);
  merger.SetSchema(a, Schema::Make({Gauge("load")}));
  Send(b, 1, 40, {1});
  ASSERT_EQ(rows.size(), 1u) << "20 still does, and 40 as well";
  Send(a, 0, 20, {4});
  Send(a, 0, 40, {5});
  ASSERT_EQ(rows.size(), 3u);
  EXPECT_EQ(rows[1].values["load"].sum, 5);
  EXPECT_EQ(rows[2].nodes, 2u);
}

// --- A node's own values ---

TEST(OwnReducer, TasksBecomeOneWithTheRankOfTheExtremes) {
  Series rss0 = Gauge("task_resident_memory_bytes"), rss7 = rss0;
  rss0.tags.Set("task", "0");
  rss7.tags.Set("task", "7");
  const Schema::Ptr groups[] = {Schema::Make({Gauge("node_load1")}), Schema::Make({rss0, rss7})};
  OwnReducer reducer;
  EXPECT_TRUE(reducer.SetSchemas(groups));
  EXPECT_FALSE(reducer.SetSchemas(groups));
  reducer.SetNode(3);
  reducer.Begin();
  reducer.Add(0, std::vector<double>{0.5});
  reducer.Add(1, std::vector<double>{100, 400});
  ASSERT_EQ(reducer.schema()->size(), 2u);
  EXPECT_TRUE((*reducer.schema())[1].tags.empty());
  EXPECT_EQ(reducer.values()[1].sum, 500);
  EXPECT_EQ(reducer.values()[1].max_owner, (Owner{3, 7}));
  EXPECT_EQ(reducer.values()[0].max_owner, (Owner{3, Owner::kNobody}));
}

// --- Launch message ---

TEST(LaunchMessage, IsCheckedKeyByKey) {
  const std::string good =
      "role=node\njob=12\nstep=0\nlevel=2\nhost=n1\nhead_host=127.0.0.1\n"
      "head_port=4000\nnodes=4\nuid=1000\nkey=" +
      std::string(64, 'a') + "\n";
  const auto message = ParseLaunchMessage(good + "something_new=1\ngpus=0,2-3\n");
  ASSERT_TRUE(message.ok()) << message.status().message();
  EXPECT_EQ(message->job.id.ToString(), "12.0");
  EXPECT_EQ(message->job.expected_nodes, 4u);
  EXPECT_EQ(message->key[0], 0xaa);
  EXPECT_EQ(message->gpus, "0,2-3");
  EXPECT_EQ(ParseLaunchMessage(good)->gpus, "") << "all of the node";
  const std::pair<const char*, const char*> bad[] = {
      {"level=7\n", "level: expected 0"},    {"key=zz\n", "64 hexadecimal"},
      {"head_port=99999\n", "whole number"}, {"period=1\n", "10ms to 1h"},
      {"role=king\n", "head, node or solo"}, {"nodes=4x\n", "whole number"},
  };
  for (const auto& [line, text] : bad) {
    const auto result = ParseLaunchMessage(good + line);
    ASSERT_FALSE(result.ok()) << line;
    EXPECT_THAT(std::string(result.status().message()), HasSubstr(text));
  }
  EXPECT_FALSE(ParseLaunchMessage("role=node\njob=1\nlevel=2\nhost=n\n").ok()) << "no key";
}

}  // namespace
}  // namespace sonde::tree
