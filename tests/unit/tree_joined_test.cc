// Joined blocks as they come from a child: whose they are, and what is refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "daemon/loop.h"
#include "daemon/tree/blocks/block_joiner.h"
#include "daemon/tree/children/children.h"
#include "series/block/block.h"
#include "series/block/schema.h"
#include "tests/unit/queue_link.h"
#include "tests/unit/tree_owners.h"

namespace sonde::tree::tree_joined_test {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

// Keeps what goes on up.
class KeepsBlocks final : public ChildrenAlone {
 public:
  void OnBlock(BlockMessage block) override { single.push_back(block.node); }
  void OnJoinedBlocks(const JoinedBlocks& /*joined*/, std::string_view bytes) override {
    joined.emplace_back(bytes);
  }
  std::vector<uint32_t> single;
  std::vector<std::string> joined;
};

class JoinedOfAChild : public testing::Test {
 protected:
  JoinedOfAChild() {
    children_.Add(link_, 3);
    children_.Add(other_, 4);
  }
  static std::string Joined(const std::vector<uint32_t>& nodes) {
    const Schema::Ptr schema = Schema::Make({Series{}});
    BlockJoiner joiner;
    for (const uint32_t node : nodes) {
      BlockMessage block{.node = node, .group = "os", .sequence = 1, .first = 1, .samples = 1};
      block.hurry = true;
      const Nanos time = kSecond + node;
      const double value = node;
      EXPECT_TRUE(BlockEncoder().Encode(schema->id(), {&time, 1}, &value, 1, 1, block.bytes).ok());
      EXPECT_TRUE(joiner.Add(block));
    }
    return joiner.Take().joined.at(0);
  }
  bool Take(const std::string& payload) {
    return children_.OnMessage(link_, Type::kJoinedBlocks, payload).ok();
  }

  Loop loop_;
  QueryFanout queries_{loop_};
  TickMerger merger_{16, [](const TickMerger::Row&, bool) {}};
  KeepsBlocks above_;
  Children children_{merger_, queries_, {kSecond, kSecond}, Keep::kUntilArrived, above_};
  QueueLink link_;
  QueueLink other_;
};

// Children takes them of whoever sends them: a child may have been asked by another parent before.
TEST_F(JoinedOfAChild, GoUpAsTheyCameAndAreAcknowledgedToThatChildOneByOne) {
  const std::string bytes = Joined({5, 6, 7});
  ASSERT_TRUE(Take(bytes));
  EXPECT_THAT(above_.joined, ElementsAre(bytes));
  EXPECT_THAT(above_.single, IsEmpty());
  for (const uint32_t node : {5, 6, 7}) {
    children_.SendBlockAck({node, "os", 1, BlockAck::kStored, true});
  }
  children_.FlushBlockAcks();
  std::vector<uint32_t> told;
  for (const auto& [type, payload] : link_.queue) {
    ASSERT_EQ(type, Type::kBlockAck);
    ASSERT_TRUE(
        DecodeEach<BlockAck>(payload, [&](const BlockAck& ack) { told.push_back(ack.node); }).ok());
  }
  EXPECT_THAT(told, ElementsAre(5, 6, 7));
  EXPECT_THAT(other_.queue, IsEmpty());
}

// The link is closed: the child sends all that is not acknowledged again over the next one.
TEST_F(JoinedOfAChild, ThatAreDamagedCostItsLinkAndGoNowhere) {
  const std::string good = Joined({5, 6});
  for (size_t i = 0; i < good.size(); ++i) {
    EXPECT_FALSE(Take(good.substr(0, i))) << "of which " << i << " bytes came";
  }
  const size_t list = good.find("os", good.find("os") + 1);
  for (size_t i = 1; i < list; ++i) {
    std::string bad = good;
    bad[i] = static_cast<char>(bad[i] ^ 4);
    EXPECT_FALSE(Take(bad)) << "byte " << i;
  }
  std::string none = good;
  none[0] = 0;
  EXPECT_FALSE(Take(none)) << "there is no version 0";
  EXPECT_THAT(above_.joined, IsEmpty());
  EXPECT_THAT(above_.single, IsEmpty());
  EXPECT_EQ(children_.unread_joined(), 0u);
}

TEST_F(JoinedOfAChild, OfALaterVersionAreCountedAndCostNoLink) {
  std::string later = Joined({5, 6});
  later[0] = 2;
  EXPECT_TRUE(Take(later));
  EXPECT_TRUE(Take(later));
  EXPECT_EQ(children_.unread_joined(), 2u);
  EXPECT_THAT(above_.joined, IsEmpty());
  EXPECT_TRUE(Take(Joined({5, 6})));
  EXPECT_THAT(above_.joined, SizeIs(1));
}

TEST_F(JoinedOfAChild, OfNodesThatAreNotThereLoseThoseAlone) {
  children_.LimitNodes(7);
  ASSERT_TRUE(Take(Joined({5, 6, 7, 70'000})));
  EXPECT_THAT(above_.joined, IsEmpty());
  EXPECT_THAT(above_.single, ElementsAre(5, 6));
  EXPECT_EQ(children_.unknown_blocks(), 2u);
}

}  // namespace
}  // namespace sonde::tree::tree_joined_test
