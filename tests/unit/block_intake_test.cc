// The head's end of the nodes' blocks: schemas asked for once, blocks replaced, notes for the
// reader.
#include "daemon/head/record/block_intake.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <map>

#include "daemon/loop.h"
#include "daemon/tree/blocks/block_shelf.h"
#include "profiles/archive/open_archive.h"
#include "series/block/thin.h"
#include "tests/unit/fake_clock.h"
#include "tests/unit/profiles_fixture.h"

namespace sonde::head::block_intake_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;
using tree::BlockAck;
using tree::BlockMessage;

class BlockIntakeTest : public testing::Test {
 protected:
  BlockIntakeTest() { writer_.Create(TestJob()); }

  BlockMessage Block(uint32_t node, uint64_t sequence, int first, int rows) const {
    BlockMessage block;
    block.node = node;
    block.group = "task";
    block.sequence = block.first = sequence;
    block.samples = static_cast<uint64_t>(rows);
    std::vector<double> columns;
    for (int i = 1; i <= rows; ++i) columns.push_back(TestCpu(first + i, node));
    for (int i = 1; i <= rows; ++i) columns.push_back(100.0 * i);
    block.bytes = MakeBlock(*base_, TestTimes(first, rows), columns);
    return block;
  }
  // The results of what was taken since the last call, once all is written.
  std::vector<uint32_t> Results() {
    writer_.WhenIdle([this] { loop_.Stop(); });
    loop_.Run();
    std::vector<uint32_t> results;
    for (const BlockAck& ack : std::exchange(acks_, {})) results.push_back(ack.result);
    return results;
  }
  void Take(BlockMessage block) { intake_.Take(std::move(block), 2, writer_); }
  std::vector<SeriesData> Stored(Thinned thinned = Thinned::kMean) {
    const auto archive = *OpenArchive(root(), 0);
    const auto read = archive.reader->Read(archive.reader->List()->at(0).key, SeriesScope::kNodes,
                                           nullptr, 0, std::numeric_limits<Nanos>::max(), thinned);
    EXPECT_TRUE(read.ok());
    return read.ok() ? *read : std::vector<SeriesData>();
  }
  std::string root() const { return dir_.path() + "/archive"; }

  TempDir dir_;
  Loop loop_;
  ArchiveWriter writer_{loop_, root()};
  std::vector<BlockAck> acks_;
  FakeClock clock_;
  BlockIntake intake_{64u << 20, [this](const BlockAck& ack) { acks_.push_back(ack); }, clock_};
  const Schema::Ptr base_ = Schema::Make(TaskSeries());
};

TEST_F(BlockIntakeTest, OfManyWithANewSchemaOneIsAskedAndTheOthersWait) {
  Take(Block(0, 1, 0, 4));
  Take(Block(1, 1, 0, 4));
  EXPECT_THAT(Results(), ElementsAre(BlockAck::kUnknownSchema));
  BlockMessage again = Block(0, 1, 0, 4);
  again.schema = PackSchema(*base_);
  Take(again);
  EXPECT_THAT(Results(), ElementsAre(BlockAck::kStored, BlockAck::kStored));
  Take(Block(1, 2, 4, 4));
  EXPECT_THAT(Results(), ElementsAre(BlockAck::kStored));
  EXPECT_THAT(Stored(), SizeIs(4));
}

TEST_F(BlockIntakeTest, WhenTheOneThatWasAskedIsSilentAnotherIs) {
  Take(Block(0, 1, 0, 4));
  clock_.time += BlockIntake::kAskAgain;
  Take(Block(1, 1, 0, 4));
  EXPECT_THAT(Results(), ElementsAre(BlockAck::kUnknownSchema));
  clock_.time += kMillisecond;
  Take(Block(1, 1, 0, 4));
  EXPECT_THAT(Results(), ElementsAre(BlockAck::kUnknownSchema));
}

// Nothing more may come: those that wait are asked one after the other.
TEST_F(BlockIntakeTest, WhenNobodyComesThoseThatWaitAreAsked) {
  EXPECT_EQ(intake_.AskAgain(), BlockIntake::kNever);
  const auto asked = [&] {
    std::vector<uint32_t> nodes;
    for (const BlockAck& ack : std::exchange(acks_, {})) {
      EXPECT_EQ(ack.result, BlockAck::kUnknownSchema);
      nodes.push_back(ack.node);
    }
    return nodes;
  };
  for (const uint32_t node : {0, 1, 2}) intake_.Take(Block(node, 1, 0, 4), 3, writer_);
  EXPECT_THAT(asked(), ElementsAre(0));
  const Nanos due = intake_.AskAgain();
  EXPECT_THAT(asked(), ElementsAre());
  EXPECT_EQ(due, clock_.time + BlockIntake::kAskAgain + 1);
  for (const uint32_t next : {1, 2, 1}) {
    clock_.time += BlockIntake::kAskAgain + 1;
    intake_.AskAgain();
    EXPECT_THAT(asked(), ElementsAre(next));
  }
  EXPECT_THAT(intake_.Notes(std::vector<NodeInfo>(3)),
              ElementsAre(HasSubstr("came without their names")));
  BlockMessage again = Block(2, 1, 0, 4);
  again.schema = PackSchema(*base_);
  intake_.Take(again, 3, writer_);
  EXPECT_EQ(intake_.AskAgain(), BlockIntake::kNever);
  EXPECT_THAT(Results(), testing::Each(BlockAck::kStored));
  EXPECT_THAT(intake_.Notes(std::vector<NodeInfo>(3)), SizeIs(0));
}

// What does not fit meanwhile is refused, and told unless it comes again.
TEST_F(BlockIntakeTest, WhatHasNoRoomToWaitIsTold) {
  Take(Block(0, 1, 0, 4));
  BlockMessage block = Block(1, 1, 0, 4);
  for (size_t bytes = 0; bytes <= 64u << 20 && acks_.size() < 2; bytes += block.bytes.size()) {
    Take(block);
    block.first = ++block.sequence;
  }
  EXPECT_THAT(Results(), ElementsAre(BlockAck::kUnknownSchema, BlockAck::kRefused));
  EXPECT_THAT(intake_.Notes(std::vector<NodeInfo>(2)),
              testing::Contains(HasSubstr("more came at a time than may wait")));
}

TEST_F(BlockIntakeTest, ABlockWithAnothersSchemaOrOfNoNodeIsDropped) {
  BlockMessage wrong = Block(0, 1, 0, 4);
  wrong.schema = PackSchema(*ThinnedSchema(*base_));
  Take(wrong);
  BlockMessage nobody = Block(7, 1, 0, 4);
  nobody.schema = PackSchema(*base_);
  Take(nobody);
  BlockMessage damaged = Block(0, 1, 0, 4);
  damaged.bytes[10] = static_cast<char>(damaged.bytes[10] ^ 1);
  Take(damaged);
  EXPECT_THAT(Results(), SizeIs(0));
}

// Whether they are written in turn, or wait for the disk together.
class Replacing : public BlockIntakeTest, public testing::WithParamInterface<bool> {};
INSTANTIATE_TEST_SUITE_P(InTurnOrTogether, Replacing, testing::Bool());

TEST_P(Replacing, AThinnedBlockReplacesTheFinerOnesAndHasTheirExtremes) {
  const bool together = GetParam();
  BlockMessage first = Block(0, 1, 0, 4);
  first.schema = PackSchema(*base_);
  Take(first);
  Take(Block(0, 2, 4, 4));
  Take(Block(0, 3, 8, 4));
  if (!together) {
    Results();
    EXPECT_EQ(Stored()[0].points.size(), 12u);
  }

  const Schema::Ptr thinned = ThinnedSchema(*base_);
  const std::string one = Block(0, 1, 0, 4).bytes;
  const std::string two = Block(0, 2, 4, 4).bytes;
  const std::vector<ThinSource> sources = {{one, {}}, {two, {}}};
  BlockEncoder encoder;
  const auto thin = Thin(*base_, ThinnedShape(*thinned), sources, 4, encoder);
  ASSERT_TRUE(thin.ok());
  BlockMessage block = Block(0, 2, 0, 8);
  block.first = 1;
  block.reasons = tree::kThinnedForShare;
  block.schema = PackSchema(*thinned);
  block.bytes = *thin->bytes;
  Take(block);
  EXPECT_THAT(Results(), together ? SizeIs(4) : SizeIs(1));

  const auto means = Stored();
  ASSERT_EQ(means.size(), 2u) << "extremes are no series of their own";
  EXPECT_EQ(means[0].points.size(), 6u);
  EXPECT_EQ(means[1].points.size(), 6u);
  const Nanos fourth = kTestStart + 4 * kSecond;
  EXPECT_EQ(means[0].points[0], (Point{fourth, TestCpu(4, 0)}));
  EXPECT_EQ(means[1].points[0], (Point{fourth, 250}));
  EXPECT_EQ(Stored(Thinned::kMin)[1].points[0], (Point{fourth, 100}));
  EXPECT_EQ(Stored(Thinned::kMax)[1].points[0], (Point{fourth, 400}));
  EXPECT_EQ(Stored(Thinned::kMax)[0].points[0], (Point{fourth, TestCpu(4, 0)}));

  const auto notes = intake_.Notes(TestJob().nodes);
  ASSERT_EQ(notes.size(), 1u);
  EXPECT_THAT(notes[0], testing::AllOf(HasSubstr("n1: per-node series are thinned"),
                                       HasSubstr("1 row for 4 samples"),
                                       HasSubstr("profile_limit (64 MiB)")));
}

TEST_F(BlockIntakeTest, SharesOfAllNodesFitTheProfile) {
  const tree::BlockBudget budget = intake_.Budget(10'000);
  EXPECT_EQ(budget.share, (48u << 20) / 10'000);
  EXPECT_LE(budget.rate * 10'000, BlockIntake::kRate);
  EXPECT_EQ(intake_.Budget(0).share, 48u << 20);
}

}  // namespace
}  // namespace sonde::head::block_intake_test
