// A node that has proved the key and lies: it names nodes of which the head has never heard. What
// that costs the head must not grow with the numbers that it says.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <malloc.h>

#include <memory>
#include <string>
#include <utility>

#include "core/bytes.h"
#include "daemon/head/head.h"
#include "daemon/loop.h"
#include "daemon/tree/uplink.h"
#include "temp_dir.h"
#include "tests/unit/head_ends.h"

namespace sonde::head {
namespace {

using testing::HasSubstr;
using tree::NodeSet;
using tree::Type;

constexpr size_t kMuch = 8u << 20;

size_t Allocated() { return mallinfo2().uordblks + mallinfo2().hblkhd; }

// What a node that is still connected sees; the head destroys it when it closes the connection.
class WatchedEnd final : public HeadEnd {
 public:
  explicit WatchedEnd(bool& open) : open_(open) { open_ = true; }
  ~WatchedEnd() override { open_ = false; }

 private:
  bool& open_;
};

class UnknownNodes : public testing::Test {
 protected:
  UnknownNodes() {
    LaunchMessage launch;
    launch.role = Role::kHead;
    launch.archive = directory_.path();
    launch.job.id = {"7", "0"};
    launch.job.start = Clock::System().Now();
    launch.job.expected_nodes = 2;
    launch.job.period = kSecond / 10;
    Config config;
    config.http = "off";
    head_ = std::make_unique<Head>(loop_, clock_, launch, config,
                                   [this](std::string report) { report_ = std::move(report); });
    EXPECT_TRUE(head_->Start({}).ok());
    tree::Registration who{.job = "7", .step = "0", .nodes = 2, .host = "n1"};
    auto end = std::make_unique<WatchedEnd>(open_);
    end_ = end.get();
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

  void Send(tree::Stream stream, const NodeSet& nodes) {
    Series work;
    work.metric.name = "work_total";
    work.metric.type = MetricType::kCounter;
    tree::FrameInfo info;
    info.tick = Clock::System().Now();
    info.stream = stream;
    info.nodes = nodes;
    std::vector<Reduced> values(1);
    values[0].Add(5, {0, Owner::kNobody});
    uplink_.AddFrame(info, Schema::Make({work}), {values, {}});
    uplink_.Flush();
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
  std::string report_;
  std::unique_ptr<Head> head_;
  WatchedEnd* end_ = nullptr;
  std::unique_ptr<NodeEnd> link_;
  tree::Uplink uplink_;
};

TEST_F(UnknownNodes, WhoHasSealedIsTakenInNoEarlierVersion) {
  const tree::Registration who{.job = "7", .step = "0", .nodes = 2, .host = "n1", .index = 0};
  auto plain = std::make_unique<HeadEnd>();
  plain->SetSealed(false);
  EXPECT_FALSE(head_->AddNode(who, std::move(plain)).ok());
  EXPECT_TRUE(open_) << "the connection that there is stays";
  EXPECT_TRUE(head_->AddNode(who, std::make_unique<HeadEnd>()).ok());
}

TEST_F(UnknownNodes, OfAFrameCloseTheConnection) {
  EXPECT_LT(Cost([this] { Send(tree::Stream::kChildren, Nodes(0, NodeSet::kMaxNodes)); }), kMuch);
  EXPECT_FALSE(open_);
}

TEST_F(UnknownNodes, OfOneFarAwayAsWell) {
  EXPECT_LT(Cost([this] { Send(tree::Stream::kChildren, NodeSet(NodeSet::kMaxNodes - 1)); }),
            kMuch);
  EXPECT_FALSE(open_);
}

TEST_F(UnknownNodes, OfLastValuesCloseTheConnection) {
  EXPECT_LT(Cost([this] { Send(tree::Stream::kEnded, Nodes(1, 1u << 22)); }), kMuch);
  EXPECT_FALSE(open_);
}

TEST_F(UnknownNodes, OfABlockCloseTheConnection) {
  std::string payload;
  for (uint32_t i = 0; i < 100'000; ++i) {
    AppendTo(payload, tree::BlockMessage{.node = i * 40'000 + 1, .group = "os", .bytes = "x"});
  }
  EXPECT_LT(Cost([&] { end_->Hear(Type::kBlock, payload); }), kMuch);
  EXPECT_FALSE(open_);
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

TEST_F(UnknownNodes, KnownOnesAreTakenAsBefore) {
  Send(tree::Stream::kOwn, NodeSet(0));
  Send(tree::Stream::kEnded, NodeSet(0));
  EXPECT_TRUE(open_);
}

}  // namespace
}  // namespace sonde::head
