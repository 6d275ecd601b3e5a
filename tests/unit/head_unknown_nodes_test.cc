// A node that has proved the key and lies: it names nodes of which the head has never heard. What
// that costs the head must not grow with the numbers that it says.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <malloc.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/bytes.h"
#include "daemon/head/head.h"
#include "daemon/loop.h"
#include "daemon/tree/blocks/block_joiner.h"
#include "daemon/tree/uplink.h"
#include "profiles/archive/open_archive.h"
#include "profiles/upkeep/verify.h"
#include "series/block/block.h"
#include "temp_dir.h"
#include "tests/unit/head_ends.h"
#include "tests/unit/links_carriers.h"

namespace sonde::head::head_unknown_nodes_test {
namespace {

using testing::HasSubstr;
using tree::NodeSet;
using tree::Type;

constexpr size_t kMuch = 8u << 20;

size_t Allocated() { return mallinfo2().uordblks + mallinfo2().hblkhd; }

// What a node that is still connected sees; the head destroys it when it closes the connection.
class WatchedEnd final : public HeadEnd {
 public:
  using Said = std::function<void(Type type, std::string_view payload)>;
  WatchedEnd(bool& open, Said said) : open_(open), said_(std::move(said)) { open_ = true; }
  ~WatchedEnd() override { open_ = false; }
  Status Send(uint8_t type, std::string_view payload) override {
    said_(static_cast<Type>(type), payload);
    return {};
  }

 private:
  bool& open_;
  const Said said_;
};

class UnknownNodes : public testing::Test {
 protected:
  explicit UnknownNodes(bool acting = false) {
    LaunchMessage launch;
    launch.acting = acting;
    launch.role = Role::kHead;
    launch.archive = directory_.path();
    launch.job.id = {"7", "0"};
    launch.job.start = Clock::System().Now();
    launch.job.expected_nodes = 2;
    launch.job.period = kSecond / 10;
    Config config;
    config.http = "off";
    config.report = "full";  // with all notes
    head_ = std::make_unique<Head>(loop_, clock_, launch, config,
                                   [this](std::string report) { report_ = std::move(report); });
    EXPECT_TRUE(head_->Start({}).ok());
    tree::Registration who{.job = "7", .step = "0", .nodes = 2, .host = "n1"};
    auto end = std::make_unique<WatchedEnd>(
        open_, [this](Type type, std::string_view payload) { Hear(type, payload); });
    end_ = end.get();
    if (acting) who.index = 0;
    EXPECT_EQ(*head_->AddNode(who, std::move(end)), 0u);
    link_ = std::make_unique<NodeEnd>(*end_);
    uplink_.Use(link_.get(), false);
    loop_.Post([this] { loop_.Stop(); });
    loop_.Run();
  }

  // `count` nodes from `first` on.
  static NodeSet Nodes(uint32_t first, uint32_t count) {
    std::string bytes;
    ByteWriter w(bytes);
    w.Varint(1);
    w.Varint(first);
    w.Varint(count - 1);
    NodeSet nodes;
    ByteReader r(bytes);
    nodes.Decode(r);
    EXPECT_EQ(nodes.size(), count);
    return nodes;
  }

  void Send(tree::Stream stream, const NodeSet& nodes, uint32_t owner = 0) {
    Series work;
    work.metric.name = "work_total";
    work.metric.type = MetricType::kCounter;
    tree::FrameInfo info;
    info.tick = Clock::System().Now();
    info.stream = stream;
    info.nodes = nodes;
    std::vector<Reduced> values(1);
    values[0].Add(5, {owner, Owner::kNobody});
    uplink_.AddFrame(info, Schema::Make({work}), {values, {}});
    uplink_.Flush();
  }

  void Hear(Type type, std::string_view payload) {
    ByteReader r(payload);
    if (type == Type::kRefused) refused_.push_back(r.Varint());
    if (type == Type::kAck) acknowledged_ = r.Varint();
  }
  // Up to which frame the head has taken all, once it tells that next.
  uint64_t Acknowledged() {
    loop_.After(tree::ChildLinks::kPulse + kSecond / 2, [this] { loop_.Stop(); });
    loop_.Run();
    return acknowledged_;
  }
  // What the profile tells its readers in the end.
  std::string Notes() {
    head_->Finish(false);
    EXPECT_TRUE(tree::RunUntil(loop_, [this] { return !report_.empty(); }));
    return report_;
  }

  // What the head takes meanwhile, once it has done what it does later.
  template <typename Say>
  size_t Cost(Say say) {
    const size_t before = Allocated();
    say();
    loop_.After(kSecond, [this] { loop_.Stop(); });  // rows are made of what came
    loop_.Run();
    const size_t after = Allocated();
    return after > before ? after - before : 0;
  }

  TempDir directory_;
  Loop loop_;
  StepClock clock_;
  bool open_ = false;
  std::vector<uint64_t> refused_;
  uint64_t acknowledged_ = 0;
  std::string report_;
  std::unique_ptr<Head> head_;
  WatchedEnd* end_ = nullptr;
  std::unique_ptr<NodeEnd> link_;
  tree::Uplink uplink_;
};

// The connection may be an honest parent's, which has merged what one of its children says.
TEST_F(UnknownNodes, OfAFrameAreLeftOut) {
  EXPECT_LT(Cost([this] { Send(tree::Stream::kChildren, Nodes(0, NodeSet::kMaxNodes)); }), kMuch);
  EXPECT_TRUE(open_);
  EXPECT_EQ(uplink_.last_number(), Acknowledged()) << "it does not come again";
  Send(tree::Stream::kOwn, NodeSet(0));
  EXPECT_THAT(Notes(), HasSubstr("16777216 samples of nodes that have never registered"));
}

TEST_F(UnknownNodes, OfOneFarAwayAsWell) {
  EXPECT_LT(Cost([this] { Send(tree::Stream::kChildren, NodeSet(NodeSet::kMaxNodes - 1)); }),
            kMuch);
  EXPECT_TRUE(open_);
}

TEST_F(UnknownNodes, OfLastValuesAreLeftOut) {
  EXPECT_LT(Cost([this] { Send(tree::Stream::kEnded, Nodes(1, 1u << 22)); }), kMuch);
  EXPECT_TRUE(open_);
  EXPECT_THAT(refused_, testing::IsEmpty());
  EXPECT_EQ(uplink_.last_number(), Acknowledged());
}

// The parts come each by itself then, those of nodes that there are as well.
TEST_F(UnknownNodes, AmongLastValuesOfOthersAreRefusedAFewTimes) {
  EXPECT_LT(Cost([this] {
              for (int i = 0; i < 20; ++i) Send(tree::Stream::kEnded, Nodes(0, 1u << 22));
            }),
            kMuch);
  EXPECT_TRUE(open_);
  EXPECT_THAT(refused_, testing::SizeIs(8)) << "and after that left out, or it would never end";
  EXPECT_EQ(uplink_.last_number(), Acknowledged());
}

TEST_F(UnknownNodes, AsTheOwnersOfValuesAreLeftOut) {
  for (const uint32_t owner : {5u, 1u << 30}) Send(tree::Stream::kOwn, NodeSet(0), owner);
  Send(tree::Stream::kOwn, NodeSet(0), Owner::kNobody);
  EXPECT_TRUE(open_);
  EXPECT_THAT(Notes(), HasSubstr("2 samples of nodes that have never registered"));
}

TEST_F(UnknownNodes, InMomentsAreLeftOut) {
  collect::Moments moments;
  for (const uint32_t node : {0u, 1u, 1u << 30}) {
    Annotation remark;
    remark.text = "of node " + std::to_string(node);
    remark.node = node;
    remark.first = remark.last = Clock::System().Now();
    moments.annotations.push_back(std::move(remark));
  }
  uplink_.AddMoments(std::move(moments));
  uplink_.Flush();
  EXPECT_TRUE(open_);
  EXPECT_THAT(Notes(), HasSubstr("2 remarks, phases or figures of nodes that have never"))
      << "of three, that of node 0 is taken";
}

TEST_F(UnknownNodes, OfABlockAreLeftOut) {
  std::string payload;
  for (uint32_t i = 0; i < 100'000; ++i) {
    AppendTo(payload, tree::BlockMessage{.node = i * 40'000 + 1, .group = "os", .bytes = "x"});
  }
  EXPECT_LT(Cost([&] { end_->Hear(Type::kBlock, payload); }), kMuch);
  EXPECT_TRUE(open_);
  EXPECT_THAT(Notes(), HasSubstr("100000 blocks of nodes that have never registered"));
}

// An honest parent may have joined them with others', which stay.
TEST_F(UnknownNodes, OfJoinedBlocksAreLeftOut) {
  const Schema::Ptr schema = Schema::Make({Series{}});
  const double value = 1;
  tree::BlockJoiner joiner;
  for (const uint32_t node : {0u, 70'000u}) {
    tree::BlockMessage block{.node = node, .group = "os", .sequence = 1, .first = 1, .samples = 1};
    block.hurry = true;
    ASSERT_TRUE(BlockEncoder().Encode(schema->id(), {&kSecond, 1}, &value, 1, 1, block.bytes).ok());
    ASSERT_TRUE(joiner.Add(block));
  }
  end_->Hear(Type::kJoinedBlocks, joiner.Take().joined.at(0));
  EXPECT_TRUE(open_);
  EXPECT_THAT(Notes(), HasSubstr("1 blocks of nodes that have never registered"));
}

TEST_F(UnknownNodes, JoinedBlocksOfALaterVersionAreLeftOut) {
  end_->Hear(Type::kJoinedBlocks, std::string(1, 2) + "whatever it has");
  EXPECT_TRUE(open_);
  EXPECT_THAT(Notes(), HasSubstr("1 messages of joined blocks need a"));
}

// Releases that do not know joined blocks read all that is stored of a step that small.
TEST_F(UnknownNodes, JoinedBlocksThatNobodyAskedForAreStoredOneByOne) {
  Series work;
  work.metric.name = "work_total";
  const Schema::Ptr schema = Schema::Make({work});
  tree::BlockJoiner joiner;
  for (const uint64_t sequence : {1, 2, 3}) {
    tree::BlockMessage block{.group = "os", .sequence = sequence, .first = sequence, .samples = 1};
    block.hurry = true;
    const Nanos time = Clock::System().Now() + static_cast<Nanos>(sequence);
    const double value = 1;
    ASSERT_TRUE(BlockEncoder().Encode(schema->id(), {&time, 1}, &value, 1, 1, block.bytes).ok());
    if (sequence > 1) {
      ASSERT_TRUE(joiner.Add(block));
      continue;
    }
    block.schema = PackSchema(*schema);
    std::string payload;
    AppendTo(payload, block);
    end_->Hear(Type::kBlock, payload);
  }
  end_->Hear(Type::kJoinedBlocks, joiner.Take().joined.at(0));
  EXPECT_TRUE(open_);
  Notes();
  head_.reset();
  { const auto ingesting = *OpenArchive(directory_.path(), kSecond); }
  const auto report = VerifyArchive(directory_.path(), nullptr);
  ASSERT_TRUE(report.ok()) << report.status().message();
  EXPECT_EQ(report->blocks, 3u) << VerifyToJson(*report);
}

// The parent that failed may be one of which an acting head has not heard yet.
TEST_F(UnknownNodes, AsFailedParentsLeaveNothing) {
  const size_t cost = Cost([this] {
    for (uint32_t i = 0; i < 200'000; ++i) {
      std::string payload;
      ByteWriter(payload).Varint(i * 20'000 + 1);
      end_->Hear(Type::kWantParent, payload);
    }
  });
  EXPECT_LT(cost, kMuch / 2);
  EXPECT_TRUE(open_);
}

// Somebody on the wire who changes a bit of each connection does not fill the list of notes.
TEST_F(UnknownNodes, ConnectionsThatSomebodyChangesAreOneNoteOfTheirNode) {
  const tree::Registration who{.job = "7", .step = "0", .nodes = 2, .host = "n1", .index = 0};
  WatchedEnd* end = end_;
  bool open = false;
  for (int port = 40'000; port < 40'100; ++port) {
    end->Break({Code::kCorrupt, "10.0.0.9:" + std::to_string(port) + ": a message was changed"});
    auto next = std::make_unique<WatchedEnd>(open, [](Type, std::string_view) {});
    end = next.get();
    ASSERT_TRUE(head_->AddNode(who, std::move(next)).ok());
  }
  const std::string notes = Notes();
  EXPECT_THAT(notes, HasSubstr("n1: what it said was changed on its way"));
  EXPECT_THAT(notes, testing::Not(HasSubstr("10.0.0.9")));
}

// Another component of the step, of which this head has not heard: it may be larger than all that
// the head knows.
class EarlyNodes : public UnknownNodes {
 protected:
  EarlyNodes() : UnknownNodes(true) {}
};

TEST_F(EarlyNodes, ComeToAnActingHead) {
  constexpr uint32_t kEarly = 5000;
  Send(tree::Stream::kChildren, NodeSet(kEarly));
  const tree::Registration who{
      .job = "8", .step = "0", .nodes = 10'000, .host = "n5000", .index = kEarly};
  EXPECT_TRUE(head_->AddNode(who, std::make_unique<HeadEnd>()).ok());
  const tree::Registration far{
      .job = "8", .step = "0", .node_id = 1, .nodes = 10'000, .host = "far", .index = 1u << 20};
  EXPECT_FALSE(head_->AddNode(far, std::make_unique<HeadEnd>()).ok());
  EXPECT_TRUE(open_);
}

TEST_F(UnknownNodes, KnownOnesAreTakenAsBefore) {
  Send(tree::Stream::kOwn, NodeSet(0));
  Send(tree::Stream::kEnded, NodeSet(0));
  EXPECT_TRUE(open_);
}

}  // namespace
}  // namespace sonde::head::head_unknown_nodes_test
