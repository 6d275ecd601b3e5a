// The head's writer on a disk that is full for a time (broken_disk.h): what could be kept meanwhile
// is in the profile. Each run is a child: a process that has used LevelDB must not fork and go on.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <limits>
#include <map>
#include <numeric>
#include <vector>

#include "daemon/head/record/block_intake.h"
#include "daemon/loop.h"
#include "profiles/archive/open_archive.h"
#include "tests/unit/broken_disk.h"
#include "tests/unit/in_child.h"
#include "tests/unit/profiles_fixture.h"

namespace sonde::head::head_full_disk_test {
namespace {

using testing::IsEmpty;
using tree::BlockAck;
using tree::BlockMessage;

constexpr Nanos kForever = std::numeric_limits<Nanos>::max();
constexpr int kRows = 4;  // of a block
constexpr uint64_t kBlocks = 12;

// A node that keeps what is not stored and sends it again, and the head with its rows.
class FullDiskTest : public testing::Test {
 protected:
  std::string root() const { return dir_.path() + "/archive"; }

  TempDir dir_{TempDir::Memory()};
};

class Step {
 public:
  explicit Step(const std::string& root) : writer_(loop_, root, {}, /*pause=*/0) {
    writer_.Create(TestJob());
  }

  // The next block of the node, and of the head's rows.
  void Tick() {
    const uint64_t sequence = ++sequence_;
    const int first = static_cast<int>(sequence - 1) * kRows;
    std::vector<double> columns;
    for (int i = 1; i <= kRows; ++i) columns.push_back(TestCpu(first + i, 0));
    for (int i = 1; i <= kRows; ++i) columns.push_back(TestMemory(0));
    const std::string bytes = MakeBlock(*base_, TestTimes(first, kRows), columns);
    BlockMessage block;
    block.group = "task";
    block.sequence = block.first = sequence;
    block.samples = kRows;
    block.bytes = bytes;
    held_[sequence] = block;
    const auto schema = ReducedSchema(TaskSeries());
    const std::vector<double> rows(schema->size() * kRows, static_cast<double>(sequence));
    const auto reduced =
        std::make_shared<const std::string>(MakeBlock(*schema, TestTimes(first, kRows), rows));
    EXPECT_TRUE(writer_
                    .PutBlock({.key = {kReducedNode, "task", sequence},
                               .first = sequence,
                               .schema_id = schema->id(),
                               .schema = schema,
                               .bytes = reduced,
                               .limit = 64u << 20,
                               .keep = true},
                              [](const Status&) {})
                    .ok());
  }
  // Sends what is not stored, as often as the head asks for a schema.
  void Send() {
    for (bool asked = true; asked;) {
      asked = false;
      for (const auto& [sequence, block] : std::map(held_)) {
        intake_.Take(block, 1, writer_);
        writer_.WhenIdle([this] { loop_.Stop(); });
        loop_.Run();
      }
      for (const BlockAck& ack : std::exchange(acks_, {})) {
        const auto held = held_.find(ack.sequence);
        if (held == held_.end()) continue;  // it came twice
        if (ack.result == BlockAck::kStored) {
          held_.erase(held);
        } else if (ack.result == BlockAck::kUnknownSchema) {
          held->second.schema = PackSchema(*base_);
          asked = true;
        }
      }
    }
  }
  Status Finish() {
    Profile profile;
    profile.job = TestJob();
    profile.job.state = EndState::kCompleted;
    profile.job.end = kTestStart + 100 * kSecond;
    profile.job.notes = intake_.Notes(TestJob().nodes);
    Status finished;
    writer_.Finish(profile, [&](const Status& status) {
      finished = status;
      loop_.Stop();
    });
    loop_.Run();
    return finished;
  }
  size_t held() const { return held_.size(); }

 private:
  Loop loop_;
  ArchiveWriter writer_;
  std::vector<BlockAck> acks_;
  BlockIntake intake_{64u << 20, [this](const BlockAck& ack) { acks_.push_back(ack); }};
  const Schema::Ptr base_ = Schema::Make(TaskSeries());
  std::map<uint64_t, BlockMessage> held_;
  uint64_t sequence_ = 0;
};

size_t RowsOf(const Archive& archive, SeriesScope scope) {
  const auto data = archive.Read(
      archive.List()->at(0).key, scope,
      [](const Series& s) { return s.metric.name == "task_resident_memory_bytes"; }, 0, kForever);
  EXPECT_TRUE(data.ok()) << data.status().message();
  return data->empty() ? 0 : data->front().points.size();
}

void ExpectWhole(const std::string& root) {
  const auto archive = OpenArchive(root, kSecond);
  ASSERT_TRUE(archive.ok()) << archive.status().message();
  const auto list = archive->reader->List();
  ASSERT_EQ(list->size(), 1u);
  EXPECT_EQ(list->front().job.state, EndState::kCompleted);
  EXPECT_THAT(list->front().job.notes, IsEmpty());
  EXPECT_EQ(RowsOf(*archive->reader, SeriesScope::kNodes), kBlocks * kRows);
  EXPECT_EQ(RowsOf(*archive->reader, SeriesScope::kReduced), kBlocks * kRows);
}

TEST_F(FullDiskTest, WhatCouldNotBeWrittenForATimeIsInTheProfile) {
  uint64_t changes = 1;
  for (uint64_t n = 1; n <= changes; ++n) {
    std::filesystem::remove_all(root());
    int pipe[2];
    ASSERT_EQ(::pipe(pipe), 0);
    ASSERT_EQ(InChild([&] {
                broken_disk::Arm(root(), {broken_disk::Fault::kFull, n, ENOSPC});
                Step step(root());
                for (uint64_t i = 0; i < kBlocks - 1; ++i) {
                  step.Tick();
                  step.Send();
                }
                broken_disk::Repair();
                step.Tick();
                step.Send();
                EXPECT_EQ(step.held(), 0u) << "the node still waits";
                const Status finished = step.Finish();
                EXPECT_TRUE(finished.ok()) << finished.message();
                const uint64_t seen = broken_disk::Changes();
                EXPECT_EQ(::write(pipe[1], &seen, sizeof(seen)), ssize_t{sizeof(seen)});
              }),
              0)
        << "full from change " << n;
    uint64_t seen = 0;
    ASSERT_EQ(::read(pipe[0], &seen, sizeof(seen)), ssize_t{sizeof(seen)});
    ::close(pipe[0]);
    ::close(pipe[1]);
    changes = std::max(changes, std::min<uint64_t>(seen, 200));
    ASSERT_EQ(InChild([&] { ExpectWhole(root()); }), 0) << "full from change " << n;
  }
  EXPECT_GT(changes, 20u);
}

// Of the rows that wait for the disk some can be written and others not. What came behind them is
// not stored then, and its node is not told that it is.
TEST_F(FullDiskTest, WhatFailsByChanceIsStoredLaterAndToldToBeStoredOnlyThen) {
  std::vector<uint64_t> seeds(30);
  std::iota(seeds.begin(), seeds.end(), 1);
  seeds.push_back(840);  // one of the rows can be written, and one before it not
  for (const uint64_t seed : seeds) {
    std::filesystem::remove_all(root());
    ASSERT_EQ(InChild([&] {
                Step step(root());
                broken_disk::Arm(
                    root(),
                    {.fault = broken_disk::Fault::kOften, .seed = seed, .one_of = 8 + seed % 16});
                for (uint64_t i = 0; i < kBlocks; ++i) {
                  step.Tick();
                  step.Send();
                }
                broken_disk::Repair();
                step.Send();
                EXPECT_EQ(step.held(), 0u) << "the node still waits";
                const Status finished = step.Finish();
                EXPECT_TRUE(finished.ok()) << finished.message();
              }),
              0)
        << "seed " << seed;
    ASSERT_EQ(InChild([&] { ExpectWhole(root()); }), 0) << "seed " << seed;
  }
}

// As NFS tells that there is no room on the server: the profile is written once more.
TEST_F(FullDiskTest, WhatFailsWhenItsFileIsClosedIsWrittenAgain) {
  EXPECT_EQ(InChild([&] {
              broken_disk::Arm(root(), {});
              Step step(root());
              step.Tick();
              step.Send();
              broken_disk::Arm(
                  root(),
                  {.fault = broken_disk::Fault::kCloses, .error = EDQUOT, .suffix = ".log"});
              const Status finished = step.Finish();
              EXPECT_TRUE(finished.ok()) << finished.message();
            }),
            0);
  EXPECT_EQ(InChild([&] {
              const auto archive = OpenArchive(root());
              ASSERT_TRUE(archive.ok());
              const auto entries = archive->reader->List();
              ASSERT_TRUE(entries.ok() && entries->size() == 1);
              EXPECT_EQ(entries->front().job.state, EndState::kCompleted);
              EXPECT_THAT(entries->front().job.notes,
                          testing::Contains(testing::HasSubstr("read back differently")));
            }),
            0);
}

TEST_F(FullDiskTest, WithoutSpaceUntilTheEndWhatWasStoredIsKeptAndTold) {
  ASSERT_EQ(InChild([&] {
              Step step(root());
              step.Tick();
              step.Send();
              EXPECT_EQ(step.held(), 0u);
              broken_disk::Arm(root(), {broken_disk::Fault::kFull, 1, ENOSPC});
              step.Tick();
              step.Send();
              EXPECT_EQ(step.held(), 1u) << "refused, and so the node keeps it";
              EXPECT_FALSE(step.Finish().ok());
            }),
            0);
  ASSERT_EQ(InChild([&] {
              const auto archive = OpenArchive(root(), kSecond);
              ASSERT_TRUE(archive.ok());
              EXPECT_EQ(archive->reader->List()->front().job.state, EndState::kLost);
              EXPECT_EQ(RowsOf(*archive->reader, SeriesScope::kNodes), size_t{kRows});
              EXPECT_EQ(RowsOf(*archive->reader, SeriesScope::kReduced), size_t{kRows});
            }),
            0);
}

TEST_F(FullDiskTest, AFailureThatIsOverIsNotWhyAHeadEnded) {
  ASSERT_EQ(
      InChild([&] {
        broken_disk::Arm(root(), {});
        Step step(root());
        step.Tick();
        step.Send();
        broken_disk::Arm(root(), {broken_disk::Fault::kOnce, broken_disk::Changes() + 1, EIO});
        step.Tick();
        step.Send();
        EXPECT_EQ(step.held(), 1u) << "nothing failed";
        step.Send();
        EXPECT_EQ(step.held(), 0u);
      }),
      0);
  ASSERT_EQ(InChild([&] {
              const auto archive = OpenArchive(root(), kSecond);
              ASSERT_TRUE(archive.ok());
              const auto list = archive->reader->List();
              ASSERT_EQ(list->size(), 1u);
              EXPECT_EQ(list->front().job.state, EndState::kLost);
              EXPECT_THAT(list->front().job.notes,
                          testing::Contains(testing::HasSubstr("The head was killed")));
            }),
            0);
}

}  // namespace
}  // namespace sonde::head::head_full_disk_test
