// Blocks on their way to the archive: pace, windows, acknowledgement, thinning.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "daemon/message/message.h"
#include "daemon/tree/blocks/block_sender.h"
#include "daemon/tree/blocks/block_shelf.h"
#include "daemon/tree/uplink.h"
#include "series/store/store.h"

namespace sonde::tree::tree_blocks_test {
namespace {

using testing::AllOf;
using testing::Ge;
using testing::Le;
using testing::SizeIs;

// Takes what it is given; `backlog` is what it says waits in it.
class TestLink : public Link {
 public:
  Status Send(uint8_t type, std::string_view payload) override {
    if (full) return {Code::kLimit, "full"};
    EXPECT_EQ(type, static_cast<uint8_t>(Type::kBlock));
    ++messages;
    EXPECT_TRUE(DecodeEach<BlockMessage>(payload, [this](BlockMessage block) {
                  blocks.push_back(std::move(block));
                }).ok());
    return {};
  }
  void ExpectMore() override { ++held_back; }
  void CloseWhenSent() override {}
  size_t queued() const override { return backlog; }
  void SetMaxMessage(size_t) override {}
  std::string peer() const override { return "test"; }

  bool full = false;
  size_t backlog = 0;
  int messages = 0;
  int held_back = 0;  // of them, to go with what follows
  std::vector<BlockMessage> blocks;
};

// A counter and gauges that are never the same, one row a second.
class Detail {
 public:
  explicit Detail(size_t gauges = 20, uint32_t seed = 1) : random_(seed) {
    std::vector<Series> series(gauges + 1);
    for (size_t i = 0; i < series.size(); ++i) {
      series[i].metric.name = "metric_" + std::to_string(seed) + "_" + std::to_string(i);
    }
    series[0].metric.type = MetricType::kCounter;
    schema_ = Schema::Make(std::move(series));
  }

  SealedBlock Block(size_t rows) {
    std::vector<double> columns(rows * schema_->size());
    for (double& value : columns) value = value_(random_);
    std::vector<Nanos> times;
    for (size_t r = 0; r < rows; ++r) {
      times.push_back(++second_ * kSecond);
      columns[r] = static_cast<double>(second_);
    }
    auto bytes = std::make_shared<std::string>();
    EXPECT_TRUE(
        encoder_.Encode(schema_->id(), times, columns.data(), schema_->size(), rows, *bytes).ok());
    SealedBlock block;
    block.sequence = ++sequence_;
    block.info = {schema_->id(), rows, schema_->size(), times.front(), times.back()};
    block.schema = schema_;
    block.bytes = bytes;
    return block;
  }
  Nanos second() const { return second_; }
  const Schema::Ptr& schema() const { return schema_; }

 private:
  std::mt19937 random_;
  std::uniform_real_distribution<double> value_{0, 1e6};
  BlockEncoder encoder_;
  Schema::Ptr schema_;
  Nanos second_ = 0;
  uint64_t sequence_ = 0;
};

BlockAck AckOf(const BlockMessage& block, uint32_t result = BlockAck::kStored) {
  return {block.node, block.group, block.sequence, result};
}

// What the archive has of one node: blocks by group and sequence, replaced as it would.
class TestArchive {
 public:
  void Store(const BlockMessage& block) {
    auto& group = groups_[block.group];
    group.erase(group.lower_bound(block.first), group.upper_bound(block.sequence));
    group[block.sequence] = block;
  }
  size_t bytes() const {
    size_t sum = 0;
    for (const auto& [name, group] : groups_) {
      for (const auto& [sequence, block] : group) sum += block.bytes.size();
    }
    return sum;
  }
  // Samples of all blocks; the last time of the first column (a counter of seconds) and its value.
  uint64_t samples() const {
    uint64_t sum = 0;
    for (const auto& [name, group] : groups_) {
      for (const auto& [sequence, block] : group) sum += block.samples;
    }
    return sum;
  }
  std::vector<Nanos> Times(const std::string& name) const {
    std::vector<Nanos> times;
    for (const auto& [sequence, block] : groups_.at(name)) {
      const auto decoded = DecodeBlock(block.bytes);
      EXPECT_TRUE(decoded.ok());
      for (size_t r = 0; r < decoded->times.size(); ++r) {
        times.push_back(decoded->times[r]);
        EXPECT_EQ(decoded->Column(0)[r] * 1e9, static_cast<double>(decoded->times[r]));
      }
    }
    return times;
  }

 private:
  std::map<std::string, std::map<uint64_t, BlockMessage>> groups_;
};

// --- The shelf ---

TEST(BlockShelf, ALongStepHasOneResolutionWithinItsShare) {
  BlockShelf shelf;
  shelf.SetLimits({.share = 60'000, .memory = 8u << 20});
  Detail detail;
  TestArchive archive;
  size_t most = 0;
  for (int i = 0; i < 200; ++i) {
    shelf.Add("os", detail.Block(128));
    while (true) {
      const auto next = shelf.NextToSend(0);
      if (next.item == nullptr) break;
      BlockMessage block{0,
                         *next.group,
                         next.item->last,
                         next.item->first,
                         next.item->samples,
                         0,
                         shelf.StoredWith(*next.item),
                         false,
                         "",
                         *next.item->bytes};
      archive.Store(block);
      EXPECT_EQ(archive.bytes(), block.stored);
      next.item->state = BlockShelf::State::kStored;
      next.item->archived = 0;
      most = std::max(most, archive.bytes());
    }
  }
  EXPECT_LE(most, 60'000u);
  EXPECT_GE(archive.bytes(), 20'000u) << "the share is used";
  EXPECT_EQ(archive.samples(), 200u * 128);
  EXPECT_EQ(shelf.dropped_samples(), 0u);
  // Rows of the same length, from the begin to the end of the step.
  const std::vector<Nanos> times = archive.Times("os");
  EXPECT_EQ(times.back(), 200 * 128 * kSecond);
  Nanos longest = times.front();
  for (size_t i = 1; i < times.size(); ++i) longest = std::max(longest, times[i] - times[i - 1]);
  EXPECT_LE(longest, 4 * 200 * 128 * kSecond / static_cast<Nanos>(times.size()));
}

TEST(BlockShelf, WhatWaitsIsThinnedAndWhatIsStoredStaysWhenTheArchiveIsSlow) {
  BlockShelf shelf;
  shelf.SetLimits({.share = 100u << 20, .memory = 100'000});
  Detail detail;
  shelf.Add("os", detail.Block(128));
  const auto first = shelf.NextToSend(0);
  ASSERT_NE(first.item, nullptr);
  first.item->state = BlockShelf::State::kStored;
  const auto stored = first.item->bytes;
  for (int i = 0; i < 100; ++i) shelf.Add("os", detail.Block(128));
  EXPECT_LE(shelf.fresh_bytes(), 50'000u);
  EXPECT_EQ(shelf.dropped_samples(), 0u);
  const auto next = shelf.NextToSend(0);
  ASSERT_NE(next.item, nullptr);
  EXPECT_EQ(next.item->first, 2u);
  EXPECT_GT(next.item->factor, 1u);
  EXPECT_EQ(next.item->reasons, kThinnedForSlow);
  EXPECT_GE(shelf.stored_bytes(), stored->size());
}

TEST(BlockShelf, AGroupWhoseSeriesChangeAllTheTimeStaysWithinItsMemory) {
  BlockShelf shelf;
  shelf.SetLimits({.share = 100u << 20, .memory = 300'000});
  uint64_t sequence = 0;
  for (uint32_t i = 0; i < 200; ++i) {
    SealedBlock block = Detail(20, i).Block(1);
    block.sequence = ++sequence;
    shelf.Add("app", block);
    EXPECT_LE(shelf.kept_bytes(), 300'000u);
  }
  EXPECT_GT(shelf.dropped_samples(), 0u);
}

TEST(BlockShelf, ANewArchiveGetsWhatTheFormerHadNotAndLeavesItsBlocksAlone) {
  BlockShelf shelf;
  Detail detail;
  shelf.Add("os", detail.Block(16));
  shelf.Add("os", detail.Block(16));
  shelf.NextToSend(0).item->state = BlockShelf::State::kStored;
  shelf.NewArchive();
  shelf.SetLimits({.share = 1, .memory = 8u << 20});  // thins whatever may be thinned
  const auto next = shelf.NextToSend(0);
  ASSERT_NE(next.item, nullptr);
  EXPECT_EQ(next.item->first, 2u);
  EXPECT_EQ(shelf.stored_bytes(), 0u);
}

// --- The sender ---

class BlockSenderTest : public testing::Test {
 protected:
  void SetUp() override {
    sender_.SetNode(7);
    sender_.SetBudget({.share = 48u << 20, .rate = 1000, .end_rate = 1u << 20});
    sender_.Use(&link_);
  }
  // Calls Run as often as it wants until `end`, acknowledging what arrives if `store`.
  void RunUntil(Nanos end, bool store) {
    while (true) {
      const size_t before = link_.blocks.size();
      const Nanos next = sender_.Run(now_);
      if (store) {
        for (size_t i = before; i < link_.blocks.size(); ++i) {
          archive_.Store(link_.blocks[i]);
          sender_.OnAck(AckOf(link_.blocks[i]));
        }
        if (link_.blocks.size() > before) continue;
      }
      if (next > end) break;
      ASSERT_GT(next, now_);
      now_ = next;
    }
    now_ = end;
  }
  static BlockMessage ChildsBlock(size_t gauges = 20) {
    BlockMessage child;
    child.node = 9;
    child.group = "os";
    child.bytes = *Detail(gauges).Block(16).bytes;
    return child;
  }
  size_t Sent() const {
    return std::accumulate(link_.blocks.begin(), link_.blocks.end(), size_t{0},
                           [](size_t sum, const BlockMessage& b) { return sum + b.bytes.size(); });
  }

  TestLink link_;
  BlockSender sender_;
  TestArchive archive_;
  Detail detail_;
  Nanos now_ = 1000 * kSecond;
};

TEST_F(BlockSenderTest, SendsAtItsRateAndNoSchemaUnasked) {
  for (int i = 0; i < 20; ++i) sender_.Add("os", detail_.Block(16));
  RunUntil(now_ + 10 * kSecond, true);
  const size_t block = detail_.Block(16).bytes->size();
  EXPECT_THAT(Sent(), AllOf(Ge(10'000u), Le(10'000 + 2 * block)));
  for (const BlockMessage& sent : link_.blocks) EXPECT_TRUE(sent.schema.empty());
  EXPECT_EQ(link_.blocks[0].node, 7u);
  EXPECT_FALSE(sender_.delivered());
  RunUntil(now_ + 100 * kSecond, true);
  EXPECT_TRUE(sender_.delivered());
  EXPECT_EQ(archive_.samples(), 20u * 16);
}

TEST_F(BlockSenderTest, NoMoreThanAWindowIsOnItsWayAndNothingIsSentTwiceInHaste) {
  sender_.SetBudget({.share = 48u << 20, .rate = 100u << 20, .end_rate = 1u << 20});
  Detail large(400);
  for (int i = 0; i < 20; ++i) sender_.Add("os", large.Block(16));
  RunUntil(now_ + BlockSender::kPatience - 1, false);
  EXPECT_LE(Sent(), BlockSender::kWindow);
  EXPECT_TRUE(sender_.pressure(now_).slow());
  const size_t sent = link_.blocks.size();
  RunUntil(now_ + 20 * kSecond, false);
  // After 5 s and after 10 s more.
  EXPECT_EQ(link_.blocks.size(), 3 * sent);
  for (size_t i = 0; i < sent; ++i)
    EXPECT_EQ(link_.blocks[i].sequence, link_.blocks[sent + i].sequence);
  RunUntil(now_ + 200 * kSecond, true);
  EXPECT_TRUE(sender_.delivered());
  EXPECT_FALSE(sender_.pressure(now_).slow());
  EXPECT_EQ(archive_.samples(), 20u * 16);
}

TEST_F(BlockSenderTest, WhatWasOnALostLinkGoesOverTheNextOneAndInItsPace) {
  for (int i = 0; i < 20; ++i) sender_.Add("os", detail_.Block(16));
  RunUntil(now_ + 10 * kSecond, false);
  const size_t lost = link_.blocks.size();
  ASSERT_GT(lost, 1u);
  sender_.Use(nullptr);
  EXPECT_EQ(sender_.Run(now_), BlockSender::kNever);
  link_.blocks.clear();
  TestLink other;
  sender_.Use(&other);
  sender_.Use(&link_);
  RunUntil(now_ + 10 * kSecond, true);
  ASSERT_FALSE(link_.blocks.empty());
  EXPECT_EQ(link_.blocks[0].sequence, 1u);
  // Those that waited were put together meanwhile; the last may borrow.
  EXPECT_LE(Sent(), 10'000 + BlockSender::kMayWait);
  EXPECT_THAT(other.blocks, SizeIs(0));
}

TEST_F(BlockSenderTest, AnArchiveThatDoesNotKnowTheSchemaGetsIt) {
  sender_.Add("os", detail_.Block(16));
  sender_.Add("os", detail_.Block(16));
  RunUntil(now_ + 60 * kSecond, true);
  ASSERT_EQ(link_.blocks.size(), 2u);
  sender_.Add("os", detail_.Block(16));
  sender_.Run(now_);
  ASSERT_EQ(link_.blocks.size(), 3u);
  EXPECT_TRUE(link_.blocks[2].schema.empty());
  sender_.OnAck(AckOf(link_.blocks[2], BlockAck::kUnknownSchema));
  RunUntil(now_ + 4 * kSecond, true);
  ASSERT_EQ(link_.blocks.size(), 4u);
  EXPECT_EQ(link_.blocks[3].schema, PackSchema(*detail_.schema()));
  EXPECT_TRUE(sender_.delivered());
}

TEST_F(BlockSenderTest, ARefusedBlockIsTriedLaterAndDoesNotHoldUpTheEnd) {
  sender_.Add("os", detail_.Block(16));
  sender_.Run(now_);
  ASSERT_EQ(link_.blocks.size(), 1u);
  sender_.OnAck(AckOf(link_.blocks[0], BlockAck::kRefused));
  EXPECT_TRUE(sender_.delivered());
  RunUntil(now_ + BlockSender::kPatience - 1, true);
  EXPECT_EQ(link_.blocks.size(), 1u);
  RunUntil(now_ + 2 * kSecond, true);
  EXPECT_EQ(link_.blocks.size(), 2u);
  EXPECT_EQ(archive_.samples(), 16u);
}

// A frame that is sent now waits behind kLinkWindow bytes and a block, not behind all of them.
TEST_F(BlockSenderTest, ChildrensBlocksWaitHereAndNotInTheLink) {
  BlockMessage child = ChildsBlock(200);
  const size_t count = BlockSender::kMaxRelayed / child.bytes.size() + 10;
  for (size_t i = 0; i < count; ++i) {
    child.sequence = i;
    sender_.PassOn(child);
  }
  EXPECT_EQ(sender_.Run(now_), now_ + BlockSender::kGather);
  now_ += BlockSender::kGather;
  EXPECT_EQ(sender_.Run(now_), now_ + BlockSender::kTurn);
  EXPECT_THAT(Sent(), AllOf(Ge(BlockSender::kLinkWindow - child.bytes.size()),
                            Le(BlockSender::kLinkWindow + child.bytes.size())));
  link_.backlog = BlockSender::kLinkWindow;
  const size_t before = link_.blocks.size();
  EXPECT_EQ(sender_.Run(now_ + kSecond), now_ + kSecond + BlockSender::kTurn);
  EXPECT_EQ(link_.blocks.size(), before) << "the link is slow";
  EXPECT_TRUE(sender_.pressure(now_).slow());
  link_.backlog = 0;
  RunUntil(now_ + 60 * kSecond, false);
  EXPECT_TRUE(sender_.delivered());
  // What found no room is the child's to send again.
  EXPECT_THAT(Sent(), AllOf(Ge(BlockSender::kMaxRelayed - child.bytes.size()),
                            Le(BlockSender::kMaxRelayed)));
}

// Or a slow link would be full of blocks for as long as there are any, and frames held back.
TEST_F(BlockSenderTest, BlocksGoWhenFramesNeedNotWaitForThem) {
  sender_.SetBudget({.share = 48u << 20, .rate = 1u << 30, .end_rate = 1u << 30});
  for (int i = 0; i < 20; ++i) sender_.Add("os", detail_.Block(128));
  sender_.YieldToFrames(true);
  EXPECT_EQ(sender_.Run(now_), now_ + BlockSender::kTurn);
  EXPECT_THAT(link_.blocks, SizeIs(0)) << "frames are held back";
  sender_.YieldToFrames(false);
  link_.backlog = Uplink::kBacklog;
  sender_.Run(now_ += BlockSender::kTurn);
  EXPECT_THAT(link_.blocks, SizeIs(0)) << "what waits already lets frames be held back soon";
  EXPECT_TRUE(sender_.pressure(now_).slow());
  link_.backlog = 0;
  sender_.Run(now_ += BlockSender::kTurn);
  EXPECT_THAT(link_.blocks, SizeIs(Ge(1u)));
  RunUntil(now_ + 60 * kSecond, true);
  EXPECT_TRUE(sender_.delivered());
  EXPECT_FALSE(sender_.pressure(now_).slow());
}

// Whoever is above wakes up once for what was sealed at one tick.
TEST_F(BlockSenderTest, BlocksThatComeTogetherGoUpInOneMessage) {
  BlockMessage child;
  child.group = "os";
  child.bytes = *Detail(20).Block(16).bytes;
  for (child.node = 1; child.node <= 8; ++child.node) {
    sender_.PassOn(child);
    EXPECT_EQ(sender_.Run(now_ + child.node * kMillisecond),
              now_ + kMillisecond + BlockSender::kGather);
  }
  sender_.Add("os", detail_.Block(16));
  now_ += kMillisecond + BlockSender::kGather;
  sender_.Run(now_);
  EXPECT_EQ(link_.blocks.size(), 9u);
  EXPECT_EQ(link_.messages, 1);
}

TEST_F(BlockSenderTest, ChildrensBlocksGoUpWithTheNextFrames) {
  BlockMessage child = ChildsBlock();
  sender_.PassOn(child);
  sender_.Run(now_);
  EXPECT_THAT(link_.blocks, SizeIs(0));
  sender_.Add("os", detail_.Block(16));
  sender_.RunBeforeFrames(now_ + kMillisecond);
  EXPECT_THAT(link_.blocks, SizeIs(2));
  EXPECT_EQ(link_.messages, 1);
  EXPECT_EQ(link_.held_back, 1) << "the frames follow";
  child.sequence = 2;
  sender_.PassOn(child);
  EXPECT_EQ(sender_.Run(now_ + 2 * kMillisecond), now_ + 2 * kMillisecond + BlockSender::kGather);
}

TEST_F(BlockSenderTest, FramesDoNotWaitForManyBlocks) {
  BlockMessage child = ChildsBlock(200);
  for (size_t bytes = 0; bytes < BlockSender::kLinkWindow; bytes += child.bytes.size()) {
    sender_.PassOn(child);
  }
  EXPECT_EQ(sender_.RunBeforeFrames(now_), now_ + BlockSender::kTurn);
  EXPECT_THAT(Sent(), AllOf(Ge(BlockSender::kBeforeFrames),
                            Le(BlockSender::kBeforeFrames + child.bytes.size())));
  const size_t before = Sent();
  sender_.Run(now_ + BlockSender::kTurn);
  EXPECT_THAT(Sent(), Ge(2 * before)) << "the rest comes after them";
}

// It has little time: no node on the way waits for a tick.
TEST_F(BlockSenderTest, BlocksOfANodeThatLeavesDoNotWaitForFrames) {
  BlockMessage child = ChildsBlock();
  sender_.PassOn(child);
  sender_.Run(now_);
  child.node = 10;
  child.hurry = true;
  sender_.PassOn(child);
  const Nanos soon = now_ + kMillisecond + BlockSender::kGatherInHurry;
  EXPECT_EQ(sender_.Run(now_ + kMillisecond), soon);
  sender_.Run(soon);
  ASSERT_THAT(link_.blocks, SizeIs(2));
  EXPECT_FALSE(link_.blocks[0].hurry);
  EXPECT_TRUE(link_.blocks[1].hurry);
  EXPECT_EQ(link_.held_back, 0);
  sender_.Add("os", detail_.Block(16));
  now_ = soon;
  sender_.Finish(now_, now_ + kSecond);
  RunUntil(now_ + kSecond, true);
  EXPECT_TRUE(link_.blocks.back().hurry);
}

// Word of it comes with the next pulse, which may be too late.
TEST_F(BlockSenderTest, WhatIsOnItsWayAtTheEndGoesAgainInAHurry) {
  sender_.Add("os", detail_.Block(16));
  RunUntil(now_ + kSecond, false);
  ASSERT_THAT(link_.blocks, SizeIs(1));
  EXPECT_FALSE(link_.blocks[0].hurry);
  sender_.Finish(now_, now_ + kSecond);
  RunUntil(now_ + kSecond, true);
  ASSERT_THAT(link_.blocks, SizeIs(2));
  EXPECT_EQ(link_.blocks[1].sequence, link_.blocks[0].sequence);
  EXPECT_TRUE(link_.blocks[1].hurry);
  EXPECT_TRUE(sender_.delivered());
}

// A parent that takes less than comes gets less detail; what comes when it takes all again has all.
TEST_F(BlockSenderTest, ASlowWayUpGetsLessDetailUntilItIsFree) {
  sender_.SetBudget({.share = 48u << 20, .rate = 1u << 30, .end_rate = 1u << 30});
  link_.backlog = BlockSender::kLinkWindow;
  for (int i = 0; i < 20; ++i) {
    sender_.Add("os", detail_.Block(128));
    now_ += kSecond;
    sender_.Run(now_);
  }
  EXPECT_THAT(link_.blocks, SizeIs(0));
  const size_t full = 20 * detail_.Block(128).bytes->size();
  EXPECT_LT(sender_.pressure(now_).waiting, full / 3);
  link_.backlog = 0;
  RunUntil(now_ + 60 * kSecond, true);
  EXPECT_TRUE(sender_.delivered());
  EXPECT_EQ(archive_.samples(), 20u * 128u) << "no time is left out";
  EXPECT_NE(link_.blocks[0].reasons & kThinnedForSlow, 0u);

  const size_t before = link_.blocks.size();
  sender_.Add("os", detail_.Block(128));
  RunUntil(now_ + 60 * kSecond, true);
  ASSERT_EQ(link_.blocks.size(), before + 1);
  EXPECT_EQ(link_.blocks.back().reasons, 0u);
}

// One that is slow for a moment, or by little, gets all of it.
TEST_F(BlockSenderTest, AShortDelayCostsNoDetail) {
  sender_.SetBudget({.share = 48u << 20, .rate = 1u << 30, .end_rate = 1u << 30});
  link_.backlog = BlockSender::kLinkWindow;
  for (int i = 0; i < 20; ++i) sender_.Add("os", detail_.Block(128));
  sender_.Run(now_);
  now_ += BlockSender::kSlowAfter - kMillisecond;
  sender_.Run(now_);
  link_.backlog = 0;
  RunUntil(now_ + 60 * kSecond, true);
  EXPECT_EQ(archive_.samples(), 20u * 128u);
  for (const BlockMessage& block : link_.blocks) EXPECT_EQ(block.reasons, 0u);
}

TEST_F(BlockSenderTest, TheEndIsThinnedToItsTimeAndNothingOfItIsCut) {
  sender_.SetBudget({.share = 48u << 20, .rate = 1, .end_rate = 20'000});
  for (int i = 0; i < 30; ++i) sender_.Add("os", detail_.Block(128));
  sender_.Run(now_);
  const size_t on_way = Sent();
  for (const BlockMessage& block : link_.blocks) {
    archive_.Store(block);
    sender_.OnAck(AckOf(block));
  }
  const Nanos deadline = now_ + kSecond;
  sender_.Finish(now_, deadline);
  RunUntil(deadline, true);
  EXPECT_TRUE(sender_.delivered());
  EXPECT_LE(Sent() - on_way, 10'000u);
  EXPECT_EQ(archive_.samples(), 30u * 128);
  EXPECT_EQ(archive_.Times("os").back(), 30 * 128 * kSecond);
  EXPECT_EQ(link_.blocks.back().reasons, kThinnedForEnd);
}

// Finer blocks are still to be replaced, and the share is used up: what the archive has nothing of
// goes all the same.
TEST_F(BlockSenderTest, AtTheEndNothingWaitsForRoom) {
  sender_.SetBudget({.share = 20'000, .rate = 100'000, .end_rate = 1u << 20});
  for (int i = 0; i < 30; ++i) {
    sender_.Add("os", detail_.Block(128));
    RunUntil(now_ + 10 * kSecond, true);
  }
  sender_.SetBudget({.share = 8'000, .rate = 1, .end_rate = 1u << 20});
  sender_.Add("os", detail_.Block(128));
  const size_t before = link_.blocks.size();
  sender_.Finish(now_, now_ + kSecond);
  RunUntil(now_ + kSecond, true);
  EXPECT_TRUE(sender_.delivered());
  EXPECT_EQ(archive_.Times("os").back(), 31 * 128 * kSecond);
  ASSERT_EQ(link_.blocks.size(), before + 1);
  EXPECT_EQ(link_.blocks[before].first, 31u);
}

TEST(BlockSender, NodesDoNotAllStartAtOnceAtTheEnd) {
  std::vector<Nanos> starts;
  for (uint32_t node = 0; node < 100; ++node) {
    TestLink link;
    BlockSender sender;
    sender.SetNode(node);
    sender.SetBudget({.share = 48u << 20, .rate = 1, .end_rate = 1000});
    sender.Use(&link);
    sender.Run(kSecond);
    sender.Add("os", Detail().Block(64));
    sender.Finish(kSecond, 2 * kSecond);
    const Nanos start = sender.Run(kSecond);
    starts.push_back(link.blocks.empty() ? start : kSecond);
  }
  std::sort(starts.begin(), starts.end());
  EXPECT_LE(starts.back(), kSecond + kSecond / 2);
  for (size_t i = 10; i < starts.size(); ++i) {
    EXPECT_GE(starts[i] - starts[i - 10], 30 * kMillisecond) << "no more than 10 in 30 ms";
  }
}

}  // namespace
}  // namespace sonde::tree::tree_blocks_test
