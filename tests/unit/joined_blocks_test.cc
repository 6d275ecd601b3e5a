// Joined blocks at the head: stored as one record, acknowledged block by block, read like others.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "daemon/head/record/block_intake.h"
#include "daemon/loop.h"
#include "daemon/tree/blocks/block_joiner.h"
#include "daemon/tree/blocks/block_sender.h"
#include "profiles/archive/open_archive.h"
#include "profiles/live/live_archive.h"
#include "profiles/upkeep/verify.h"
#include "series/block/joined.h"
#include "tests/unit/fake_clock.h"
#include "tests/unit/profiles_fixture.h"

namespace sonde::head::joined_blocks_test {
namespace {

using testing::AllOf;
using testing::AnyOf;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using testing::SizeIs;
using tree::BlockAck;
using tree::BlockJoiner;
using tree::BlockMessage;

constexpr Nanos kLater = std::numeric_limits<Nanos>::max();
constexpr uint32_t kNodes = 8;

class JoinedBlocksTest : public testing::Test {
 protected:
  explicit JoinedBlocksTest(uint32_t nodes = kNodes) {
    job_ = TestJob();
    while (job_.nodes.size() < nodes) {
      NodeInfo node = job_.nodes[0];
      node.host = "n" + std::to_string(job_.nodes.size() + 1);
      job_.nodes.push_back(node);
    }
    job_.expected_nodes = nodes;
    writer_->Create(job_);
  }

  // Of one row, as at the end of a large step.
  BlockMessage Block(uint32_t node, uint64_t sequence = 1) const {
    BlockMessage block;
    block.node = node;
    block.group = "task";
    block.sequence = block.first = sequence;
    block.samples = 30;
    block.reasons = 4;
    block.hurry = true;
    const int row = static_cast<int>(sequence) * 4;
    block.bytes = MakeBlock(*base_, TestTimes(row, 1), {TestCpu(row + 1, node), 100.0 + node});
    return block;
  }
  std::string Joined(const std::vector<BlockMessage>& blocks) const {
    BlockJoiner joiner;
    for (BlockMessage block : blocks) EXPECT_TRUE(joiner.Add(block));
    BlockJoiner::Ready ready = joiner.Take();
    EXPECT_THAT(ready.joined, SizeIs(1));
    EXPECT_THAT(ready.single, SizeIs(0));
    return ready.joined.empty() ? std::string() : ready.joined[0];
  }
  std::string OfNodes(uint32_t first, uint32_t last) const {
    std::vector<BlockMessage> blocks;
    for (uint32_t node = first; node <= last; ++node) blocks.push_back(Block(node));
    return Joined(blocks);
  }
  void TakeJoined(const std::string& bytes) {
    const auto joined = ReadJoined(bytes);
    ASSERT_TRUE(joined.ok());
    intake_.TakeJoined(*joined, bytes, *writer_);
  }
  void Know() {
    BlockMessage first = Block(0, 9);
    first.schema = PackSchema(*base_);
    intake_.Take(first, kNodes, *writer_);
    EXPECT_THAT(Acks(), SizeIs(1));
  }
  std::vector<BlockAck> Acks() {
    writer_->WhenIdle([this] { loop_.Stop(); });
    loop_.Run();
    return std::exchange(acks_, {});
  }
  void Finish() {
    Profile profile;
    profile.job = job_;
    profile.job.end = kTestStart + 100 * kSecond;
    profile.job.state = EndState::kCompleted;
    writer_->Finish(profile, [this](const Status& status) {
      EXPECT_TRUE(status.ok()) << status.message();
      loop_.Stop();
    });
    loop_.Run();
    writer_.reset();
  }
  // Name, host and points of all series of nodes, as whoever reads the archive sees them.
  std::vector<std::string> Stored() const { return StoredIn(root()); }
  static std::vector<std::string> StoredIn(const std::string& root) {
    const auto archive = *OpenArchive(root, 0);
    const auto read = archive.reader->Read(archive.reader->List()->at(0).key, SeriesScope::kNodes,
                                           nullptr, 0, kLater);
    EXPECT_TRUE(read.ok()) << read.status().message();
    std::vector<std::string> all;
    if (!read.ok()) return all;
    for (const SeriesData& data : *read) {
      const std::string* host = data.series.tags.Find("host");
      std::string line = data.series.metric.name + " " + (host == nullptr ? "" : *host);
      for (const Point& point : data.points) {
        line += " " + std::to_string((point.time - kTestStart) / kSecond) + ":" +
                std::to_string(point.value);
      }
      all.push_back(line);
    }
    std::sort(all.begin(), all.end());
    return all;
  }
  std::string root() const { return dir_.path() + "/archive"; }

  TempDir dir_;
  JobDescription job_;
  Loop loop_;
  std::unique_ptr<ArchiveWriter> writer_ = std::make_unique<ArchiveWriter>(loop_, root());
  std::vector<BlockAck> acks_;
  FakeClock clock_;
  BlockIntake intake_{64u << 20, [this](const BlockAck& ack) { acks_.push_back(ack); }, clock_, 2};
  const Schema::Ptr base_ = Schema::Make(TaskSeries());
};

// Who is asked for the schema is not told as well that its block is not taken.
TEST_F(JoinedBlocksTest, ThatHaveNoRoomToWaitAreRefusedButForTheOneThatIsAsked) {
  BlockIntake small(
      1, [this](const BlockAck& ack) { acks_.push_back(ack); }, clock_, 2);
  const std::string bytes = OfNodes(0, 2);
  const auto joined = *ReadJoined(bytes);
  std::vector<uint32_t> results;
  const auto take = [&] {
    small.TakeJoined(joined, bytes, *writer_);
    results.clear();
    for (const BlockAck& ack : std::exchange(acks_, {})) results.push_back(ack.result);
  };
  take();
  EXPECT_THAT(results, ElementsAre(BlockAck::kUnknownSchema));
  for (size_t taken = 0; taken <= 8u << 20 && results.size() != 3; taken += bytes.size()) take();
  EXPECT_THAT(results, Each(BlockAck::kRefused));
  clock_.time += BlockIntake::kAskAgain + 1;
  take();
  EXPECT_THAT(results,
              ElementsAre(BlockAck::kUnknownSchema, BlockAck::kRefused, BlockAck::kRefused));
}

TEST_F(JoinedBlocksTest, AreReadAsIfEachHadComeByItself) {
  Know();
  for (uint32_t node = 0; node < kNodes; ++node) intake_.Take(Block(node), kNodes, *writer_);
  EXPECT_THAT(Acks(), SizeIs(kNodes));
  const auto alone = Stored();
  EXPECT_THAT(alone, SizeIs(2 * kNodes));

  TempDir other;
  Loop loop;
  ArchiveWriter writer(loop, other.path() + "/archive");
  writer.Create(job_);
  std::vector<BlockAck> acks;
  BlockIntake intake(
      64u << 20, [&](const BlockAck& ack) { acks.push_back(ack); }, clock_, 2);
  BlockMessage first = Block(0, 9);
  first.schema = PackSchema(*base_);
  intake.Take(first, kNodes, writer);
  const std::string bytes = OfNodes(0, kNodes - 1);
  intake.TakeJoined(*ReadJoined(bytes), bytes, writer);
  writer.WhenIdle([&] { loop.Stop(); });
  loop.Run();
  EXPECT_THAT(acks, SizeIs(1 + kNodes));
  for (const BlockAck& ack : acks) EXPECT_EQ(ack.result, BlockAck::kStored);
  const auto archive = *OpenArchive(other.path() + "/archive", 0);
  const std::string key = archive.reader->List()->at(0).key;
  const auto read = archive.reader->Read(key, SeriesScope::kNodes, nullptr, 0, kLater);
  ASSERT_TRUE(read.ok());
  EXPECT_THAT(*read, SizeIs(2 * kNodes));
  EXPECT_THAT(*archive.reader->AllSeries(key, SeriesScope::kNodes), SizeIs(2 * kNodes));
  for (const SeriesData& data : *read) {
    const bool of_first = *data.series.tags.Find("host") == job_.nodes[0].host;
    EXPECT_THAT(data.points, SizeIs(of_first ? 2 : 1));
  }
}

TEST_F(JoinedBlocksTest, SurviveTheIngestAndAreVerified) {
  Know();
  TakeJoined(OfNodes(0, kNodes - 1));
  EXPECT_THAT(Acks(), SizeIs(kNodes));
  const auto live = Stored();
  EXPECT_THAT(live, SizeIs(2 * kNodes));
  Finish();
  { const auto ingesting = *OpenArchive(root(), kSecond); }
  EXPECT_EQ(Stored(), live);
  const auto report = VerifyArchive(root(), nullptr);
  ASSERT_TRUE(report.ok()) << report.status().message();
  EXPECT_EQ(report->problem_count, 0u);
  EXPECT_EQ(report->foreign, 0u);
}

// A parent died with them under way, and the nodes sent some of them again over another.
TEST_F(JoinedBlocksTest, ThatComeTwiceInPartCountOnce) {
  Know();
  TakeJoined(OfNodes(0, 5));
  EXPECT_THAT(Acks(), SizeIs(6));
  const auto before = Stored();
  TakeJoined(OfNodes(2, 7));
  intake_.Take(Block(3), kNodes, *writer_);
  const auto acks = Acks();
  EXPECT_THAT(acks, SizeIs(7));
  for (const BlockAck& ack : acks) EXPECT_EQ(ack.result, BlockAck::kStored);
  auto after = Stored();
  EXPECT_THAT(after, SizeIs(2 * kNodes));
  for (const std::string& line : before) EXPECT_THAT(after, testing::Contains(line));
  Finish();
  { const auto ingesting = *OpenArchive(root(), kSecond); }
  EXPECT_EQ(Stored(), after);
}

TEST_F(JoinedBlocksTest, WaitForTheirSchemaAndAskOneNodeForIt) {
  TakeJoined(OfNodes(0, 3));
  TakeJoined(OfNodes(4, 7));
  auto acks = Acks();
  ASSERT_THAT(acks, SizeIs(1));
  EXPECT_EQ(acks[0].result, BlockAck::kUnknownSchema);
  EXPECT_EQ(acks[0].node, 0u);
  BlockMessage asked = Block(0);
  asked.schema = PackSchema(*base_);
  intake_.Take(asked, kNodes, *writer_);
  acks = Acks();
  EXPECT_THAT(acks, SizeIs(1 + kNodes));
  for (const BlockAck& ack : acks) EXPECT_EQ(ack.result, BlockAck::kStored);
  EXPECT_THAT(Stored(), SizeIs(2 * kNodes));
}

TEST_F(JoinedBlocksTest, ThatTheArchiveCannotTakeAreRefusedEach) {
  Know();
  BlockIntake small(
      1, [this](const BlockAck& ack) { acks_.push_back(ack); }, clock_, 2);
  BlockMessage first = Block(0, 9);
  first.schema = PackSchema(*base_);
  const std::string bytes = OfNodes(0, 3);
  small.TakeJoined(*ReadJoined(bytes), bytes, *writer_);
  EXPECT_THAT(Acks(), SizeIs(1)) << "its schema is asked for";
}

// Keeps what a node sends.
class SentLink : public tree::Link {
 public:
  Status Send(uint8_t type, std::string_view payload) override {
    sent.emplace_back(static_cast<tree::Type>(type), payload);
    return {};
  }
  void CloseWhenSent() override {}
  size_t queued() const override { return 0; }
  void SetMaxMessage(size_t) override {}
  std::string peer() const override { return "test"; }
  std::vector<std::pair<tree::Type, std::string>> sent;
};

// The node right below the head, or one whose head is of a release that does not know them.
TEST_F(JoinedBlocksTest, GoUpOnlyToAHeadThatTakesThem) {
  Know();
  for (const bool joins : {false, true}) {
    SentLink link;
    tree::BlockSender sender;
    sender.Use(&link);
    sender.SetJoins(joins ? tree::BlockSender::Joins::kForHead : tree::BlockSender::Joins::kNo);
    sender.Finish(kSecond, 2 * kSecond);
    for (uint32_t node = 0; node < kNodes; ++node) {
      sender.PassOn(Block(node));
      const Nanos next = sender.Run(kSecond + node);
      EXPECT_EQ(next > kSecond + node && link.sent.empty(), joins) << "they wait for each other";
    }
    EXPECT_EQ(sender.delivered(), !joins);
    sender.Run(kSecond + tree::BlockSender::kGatherToJoin);
    EXPECT_TRUE(sender.delivered());
    for (const auto& [type, payload] : link.sent) {
      EXPECT_EQ(type, joins ? tree::Type::kJoinedBlocks : tree::Type::kBlock);
      if (joins) {
        TakeJoined(payload);
        continue;
      }
      EXPECT_TRUE(tree::DecodeEach<BlockMessage>(payload, [&](BlockMessage block) {
                    intake_.Take(std::move(block), kNodes, *writer_);
                  }).ok());
    }
    EXPECT_THAT(link.sent, SizeIs(joins ? 1 : kNodes));
    EXPECT_THAT(Acks(), SizeIs(kNodes));
    EXPECT_THAT(Stored(), SizeIs(2 * kNodes));
  }
}

// Two levels below the head; and the way up of the node between changes to one that takes none.
TEST_F(JoinedBlocksTest, ArePassedOnAsTheyAreOrApart) {
  Know();
  const std::string bytes = OfNodes(0, kNodes - 1);
  for (const bool joins : {true, false}) {
    SentLink link;
    tree::BlockSender sender;
    sender.Use(&link);
    sender.SetJoins(tree::BlockSender::Joins::kForHead);
    sender.PassOn(*ReadJoined(bytes), bytes);
    EXPECT_FALSE(sender.delivered());
    if (!joins) sender.SetJoins(tree::BlockSender::Joins::kNo);
    for (Nanos now = kSecond; !sender.delivered() && now < 3 * kSecond; now += kSecond / 100) {
      sender.Run(now);
    }
    EXPECT_TRUE(sender.delivered());
    for (const auto& [type, payload] : link.sent) {
      if (type == tree::Type::kJoinedBlocks) {
        EXPECT_EQ(payload, bytes);
        TakeJoined(payload);
        continue;
      }
      EXPECT_TRUE(tree::DecodeEach<BlockMessage>(payload, [&](BlockMessage block) {
                    EXPECT_EQ(block.bytes, Block(block.node).bytes);
                    intake_.Take(std::move(block), kNodes, *writer_);
                  }).ok());
    }
    EXPECT_EQ(link.sent.size() == 1 && link.sent[0].first == tree::Type::kJoinedBlocks, joins);
    EXPECT_THAT(Acks(), SizeIs(kNodes));
    EXPECT_THAT(Stored(), SizeIs(2 * kNodes));
  }
}

// Below a child of the head, which is below it: a node with twelve blocks or more joins them, and
// leaves fewer to the head's child, which joins those with what comes from elsewhere.
class TwoLevelsTest : public JoinedBlocksTest {
 protected:
  static constexpr uint32_t kAll = 24;
  static constexpr Nanos kMoment = tree::BlockSender::kGatherToJoin;
  TwoLevelsTest() : JoinedBlocksTest(kAll) {}

  struct Level {
    explicit Level(tree::BlockSender::Joins joins) {
      sender.Use(&link);
      sender.SetJoins(joins);
    }
    // As the daemon of a parent takes it (Children).
    void Take(const SentLink& child) {
      for (const auto& [type, payload] : child.sent) {
        if (type == tree::Type::kJoinedBlocks) {
          sender.PassOn(*ReadJoined(payload), payload);
          continue;
        }
        ASSERT_EQ(type, tree::Type::kBlock);
        ASSERT_TRUE(tree::DecodeEach<BlockMessage>(payload, [&](BlockMessage block) {
                      sender.PassOn(std::move(block));
                    }).ok());
      }
    }
    void Run(Nanos now) {
      sender.Run(now);
      sender.Run(now + kMoment);
      EXPECT_TRUE(sender.delivered());
    }
    SentLink link;
    tree::BlockSender sender;
  };
};

TEST_F(TwoLevelsTest, JoinWhatIsEnoughAndLeaveTheRestToTheLevelAbove) {
  Know();
  for (uint32_t node = 0; node < kAll; ++node) intake_.Take(Block(node), kAll, *writer_);
  EXPECT_THAT(Acks(), SizeIs(kAll));
  const auto alone = Stored();

  Level many(tree::BlockSender::Joins::kForParent);
  Level few(tree::BlockSender::Joins::kForParent);
  Level above(tree::BlockSender::Joins::kForHead);
  constexpr uint32_t kFew = 5;
  for (uint32_t node = 0; node < kFew; ++node) few.sender.PassOn(Block(node));
  for (uint32_t node = kFew; node < kAll - 1; ++node) many.sender.PassOn(Block(node));
  above.sender.PassOn(Block(kAll - 1));
  few.Run(kSecond);
  many.Run(kSecond);
  ASSERT_THAT(many.link.sent, SizeIs(1));
  EXPECT_EQ(many.link.sent[0].first, tree::Type::kJoinedBlocks);
  for (const auto& [type, payload] : few.link.sent) EXPECT_EQ(type, tree::Type::kBlock);
  above.Take(many.link);
  above.Take(few.link);
  above.Run(2 * kSecond);
  ASSERT_THAT(above.link.sent, SizeIs(2)) << "what came joined, and the rest";
  EXPECT_EQ(above.link.sent[0], many.link.sent[0]) << "as it came";

  TempDir other;
  Loop loop;
  ArchiveWriter writer(loop, other.path() + "/archive");
  writer.Create(job_);
  size_t stored = 0;
  BlockIntake intake(
      64u << 20, [&](const BlockAck& ack) { stored += ack.result == BlockAck::kStored; }, clock_,
      2);
  BlockMessage first = Block(0, 9);
  first.schema = PackSchema(*base_);
  intake.Take(first, kAll, writer);
  std::vector<size_t> entries;
  for (const auto& [type, payload] : above.link.sent) {
    ASSERT_EQ(type, tree::Type::kJoinedBlocks);
    entries.push_back(ReadJoined(payload)->entries.size());
    intake.TakeJoined(*ReadJoined(payload), payload, writer);
  }
  EXPECT_THAT(entries, testing::ElementsAre(kAll - 1 - kFew, kFew + 1));
  writer.WhenIdle([&] { loop.Stop(); });
  loop.Run();
  EXPECT_EQ(stored, 1 + kAll);
  EXPECT_EQ(StoredIn(other.path() + "/archive"), alone);
}

// A node that has more than its share puts blocks together at its end, also some that are stored.
TEST_F(JoinedBlocksTest, ReplaceTheFinerOnesThatTheyStandFor) {
  Know();
  for (const uint64_t sequence : {10, 11}) intake_.Take(Block(0, sequence), kNodes, *writer_);
  EXPECT_THAT(Acks(), SizeIs(2));
  BlockMessage thinned = Block(0, 12);
  thinned.first = 10;
  TakeJoined(Joined({thinned, Block(1), Block(2)}));
  EXPECT_THAT(Acks(), SizeIs(3));
  for (const std::string& series : Stored()) {
    if (series.find(" n1 ") == std::string::npos) continue;
    EXPECT_THAT(series, AllOf(HasSubstr(" 37:"), HasSubstr(" 49:"))) << "the blocks 9 and 12";
    EXPECT_THAT(series, Not(AnyOf(HasSubstr(" 41:"), HasSubstr(" 45:"))));
  }
}

TEST_F(JoinedBlocksTest, OnlyLargeStepsHaveThem) {
  EXPECT_FALSE(BlockIntake(1, nullptr).Joins(1000));
  EXPECT_TRUE(BlockIntake(1, nullptr).Joins(100'000));
}

TEST(BlockJoiner, JoinsFewRowsOfNodesThatLeaveAndNothingElse) {
  const Schema::Ptr schema = Schema::Make(TaskSeries());
  const auto block = [&](int rows) {
    BlockMessage message;
    message.sequence = message.first = 1;
    message.hurry = true;
    std::vector<double> values(2 * static_cast<size_t>(rows), 1.0);
    message.bytes = MakeBlock(*schema, TestTimes(0, rows), values);
    return message;
  };
  const auto takes = [](BlockMessage message) { return BlockJoiner().Add(message); };
  EXPECT_TRUE(takes(block(1)));
  EXPECT_FALSE(takes(block(128)));
  BlockMessage later = block(1);
  later.hurry = false;
  EXPECT_FALSE(takes(later)) << "it may be replaced later";
  BlockMessage asked = block(1);
  asked.schema = "s";
  EXPECT_FALSE(takes(asked));
  BlockMessage damaged = block(1);
  damaged.bytes[3] = 'x';
  EXPECT_FALSE(takes(damaged));
}

// The header of a block may be good and its rows not.
TEST(BlockJoiner, OneBadBlockCostsTheOthersNothing) {
  const Schema::Ptr schema = Schema::Make(TaskSeries());
  BlockJoiner joiner;
  for (uint32_t node = 0; node < 6; ++node) {
    BlockMessage message;
    message.node = node;
    message.sequence = message.first = 1;
    message.hurry = true;
    message.bytes = MakeBlock(*schema, TestTimes(0, 1), {1.0, 2.0});
    if (node == 3) message.bytes.back() = static_cast<char>(message.bytes.back() ^ 1);
    ASSERT_TRUE(joiner.Add(message));
  }
  const auto ready = joiner.Take();
  EXPECT_THAT(ready.joined, SizeIs(0));
  EXPECT_THAT(ready.single, SizeIs(6));
  EXPECT_TRUE(joiner.empty());
}

TEST(BlockJoiner, ManyBlocksMakeSeveral) {
  const Schema::Ptr schema = Schema::Make(TaskSeries());
  BlockJoiner joiner;
  const size_t count = 2 * BlockJoiner::kMostJoinedRows + 1;
  for (uint32_t node = 0; node < count; ++node) {
    BlockMessage message;
    message.node = node;
    message.sequence = message.first = 1;
    message.hurry = true;
    message.bytes = MakeBlock(*schema, TestTimes(0, 1), {1.0 * node, 2.0});
    ASSERT_TRUE(joiner.Add(message));
  }
  const auto ready = joiner.Take();
  size_t blocks = ready.single.size();
  EXPECT_THAT(ready.joined, SizeIs(2));
  for (const std::string& bytes : ready.joined) {
    const auto joined = ReadJoined(bytes);
    ASSERT_TRUE(joined.ok());
    blocks += joined->entries.size();
  }
  EXPECT_EQ(blocks, count) << "one is left alone";
}

}  // namespace
}  // namespace sonde::head::joined_blocks_test
