// Lustre's client statistics of old and new versions, filesystems mounted twice, and none at all.
#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>

#include "daemon/collect/filesystems/filesystem_sources.h"
#include "daemon/collect/filesystems/lustre_stats.h"
#include "tests/unit/collect_tree.h"

// Counted in collect_allocations.cc.
extern std::atomic<size_t> allocations;

namespace sonde::collect::collect_lustre_test {
namespace {

using testing::IsEmpty;
using testing::IsNan;

constexpr std::string_view kOld =
    "snapshot_time             1694140455.278503 secs.usecs\n"
    "dirty_pages_hits          7 samples [regs]\n"
    "read_bytes                10 samples [bytes] 4096 1048576 5242880\n"
    "write_bytes               4 samples [bytes] 4096 1048576 2097152\n"
    "open                      21 samples [regs]\n"
    "close                     20 samples [regs]\n"
    "getattr                   300 samples [regs]\n"
    "unlink                    5 samples [regs]\n";
constexpr std::string_view kNew =
    "snapshot_time             1783960164.279418700 secs.nsecs\n"
    "start_time                1783705564.331211471 secs.nsecs\n"
    "elapsed_time              254599.948207229 secs.nsecs\n"
    "read_bytes                10 samples [bytes] 4096 1048576 5242880 123456\n"
    "read                      10 samples [usecs] 7 900 4500 2000000\n"
    "open                      2 samples [usecs] 14 134 148 18152\n"
    "mkdir                     3 samples [usecs] 10 20 50 900\n"
    "ioctl                     9 samples [reqs]\n";

std::string Named(std::string_view metric, std::string_view fs = "scratch") {
  return fmt::format("node_lustre_{}{{fs=\"{}\"}}", metric, fs);
}
std::string Operation(std::string_view metric, std::string_view operation) {
  return fmt::format("node_lustre_{}{{fs=\"scratch\",operation=\"{}\"}}", metric, operation);
}

class Lustre : public testing::Test {
 protected:
  void WriteOld(std::string_view instance, std::string_view text) const {
    tree_.Write(fmt::format("proc/fs/lustre/llite/{}/stats", instance), text);
  }
  void WriteNew(std::string_view instance, std::string_view text) const {
    tree_.Write(fmt::format("sys/kernel/debug/lustre/llite/{}/stats", instance), text);
  }
  void Make(int level) {
    source_ = MakeLustreSource(tree_.roots(), level, buffer_);
    Sample();
  }
  void Sample(Nanos after = kSecond) { source_->Sample(now_ += after); }
  double Get(std::string_view name) const { return Value(*source_, name); }

  Tree tree_;
  ReadBuffer buffer_;
  std::unique_ptr<Source> source_;
  Nanos now_ = 0;
};

TEST_F(Lustre, LevelTwoHasTrafficAndTheCommonestOperations) {
  WriteOld("scratch-ffff88085a6ed000", kOld);
  Make(2);
  EXPECT_EQ(Get(Named("read_bytes_total")), 5242880);
  EXPECT_EQ(Get(Named("reads_total")), 10);
  EXPECT_EQ(Get(Named("written_bytes_total")), 2097152);
  EXPECT_EQ(Get(Named("writes_total")), 4);
  EXPECT_EQ(Get(Named("opens_total")), 21);
  EXPECT_EQ(Get(Named("closes_total")), 20);
  EXPECT_EQ(Get(Named("getattrs_total")), 300);
  EXPECT_EQ(source_->series().size(), 7u);
}

TEST_F(Lustre, LevelFourHasTheOthersAndTheirTimes) {
  WriteNew("scratch-ffff9bc043537800", kNew);
  Make(4);
  EXPECT_EQ(Get(Named("read_bytes_total")), 5242880);
  EXPECT_EQ(Get(Operation("operations_total", "mkdir")), 3);
  EXPECT_DOUBLE_EQ(Get(Operation("operation_seconds_total", "mkdir")), 50e-6);
  EXPECT_DOUBLE_EQ(Get(Operation("operation_seconds_total", "read")), 4500e-6);
  EXPECT_DOUBLE_EQ(Get(Operation("operation_seconds_total", "open")), 148e-6);
  EXPECT_EQ(Get(Operation("operation_seconds_total", "rename")), 0);
  EXPECT_EQ(source_->series().size(), 7u + 5 + 2 * 21);
}

TEST_F(Lustre, AnOldVersionHasNoTimes) {
  WriteOld("scratch-ffff88085a6ed000", kOld);
  Make(4);
  EXPECT_EQ(Get(Operation("operations_total", "unlink")), 5);
  EXPECT_THAT(Get(Operation("operation_seconds_total", "unlink")), IsNan());
  EXPECT_THAT(Get(Operation("operation_seconds_total", "rename")), IsNan());
}

TEST_F(Lustre, WhatHasNotHappenedYetIsZero) {
  WriteOld("scratch-ffff88085a6ed000", "snapshot_time 1694140455.278503 secs.usecs\n");
  Make(2);
  EXPECT_EQ(Get(Named("read_bytes_total")), 0);
  EXPECT_EQ(Get(Named("opens_total")), 0);
}

TEST_F(Lustre, MountsOfOneFilesystemAreAddedUp) {
  WriteOld("scratch-ffff88085a6ed000", kOld);
  WriteOld("scratch-ffff88085a6ed800", kOld);
  WriteOld("scratch-2-ffff88085a6ed900", kOld);
  WriteOld("work-ffff88085a6eda00", kOld);
  Make(2);
  EXPECT_EQ(Get(Named("opens_total")), 42);
  EXPECT_EQ(Get(Named("opens_total", "scratch-2")), 21);
  EXPECT_EQ(Get(Named("opens_total", "work")), 21);
  EXPECT_EQ(source_->series().size(), 21u);
}

TEST_F(Lustre, WithoutItThereIsNothingUntilItIsMounted) {
  Make(2);
  EXPECT_TRUE(source_->series().empty());
  EXPECT_EQ(source_->generation(), 0u);
  WriteOld("scratch-ffff88085a6ed000", kOld);
  Sample(30 * kSecond);
  EXPECT_TRUE(source_->series().empty());
  Sample(30 * kSecond);
  EXPECT_EQ(Get(Named("opens_total")), 21);
  EXPECT_THAT(source_->TakeNotes(), IsEmpty());
}

TEST_F(Lustre, AnUnmountedOneIsMissingAndThenGone) {
  WriteOld("scratch-ffff88085a6ed000", kOld);
  WriteOld("work-ffff88085a6eda00", kOld);
  Make(2);
  WriteOld("work-ffff88085a6eda00", "");  // as its open file reads
  tree_.Remove("proc/fs/lustre/llite/work-ffff88085a6eda00");
  Sample();
  EXPECT_THAT(Get(Named("opens_total", "work")), IsNan());
  EXPECT_EQ(Get(Named("opens_total")), 21);
  Sample();
  EXPECT_FALSE(Has(*source_, Named("opens_total", "work")));
  EXPECT_EQ(Get(Named("opens_total")), 21);
}

TEST_F(Lustre, ATextThatIsNotWholeIsMissing) {
  WriteOld("scratch-ffff88085a6ed000", kOld);
  Make(2);
  WriteOld("scratch-ffff88085a6ed000", kOld.substr(0, kOld.size() - 60));
  Sample();
  EXPECT_THAT(Get(Named("getattrs_total")), IsNan());
  WriteOld("scratch-ffff88085a6ed000",
           "snapshot_time 1.0 secs.usecs\nopen x samples [regs]\nclose 5 things [regs]\n"
           "getattr 99999999999999999999 samples [regs]\nread_bytes 3 samples [bytes] 1 2\n"
           "write_bytes 3 samples bytes 1 2 3\n");
  Sample();
  EXPECT_THAT(Get(Named("opens_total")), IsNan());
  EXPECT_THAT(Get(Named("closes_total")), IsNan());
  EXPECT_THAT(Get(Named("getattrs_total")), IsNan());
  EXPECT_EQ(Get(Named("reads_total")), 3);
  EXPECT_THAT(Get(Named("read_bytes_total")), IsNan());
}

TEST_F(Lustre, StatisticsThatMayNotBeReadAreNothing) {
  tree_.Write("sys/fs/lustre/llite/scratch-ffff88085a6ed000/fstype", "lustre\n");
  Make(4);
  for (int i = 0; i < 5; ++i) Sample(61 * kSecond);
  EXPECT_TRUE(source_->series().empty());
  EXPECT_THAT(source_->TakeNotes(), IsEmpty());
}

TEST_F(Lustre, AWarmTickAllocatesNothing) {
  WriteNew("scratch-ffff9bc043537800", kNew);
  Make(4);
  Sample();
  const size_t before = allocations;
  for (int i = 0; i < 50; ++i) Sample();
  EXPECT_EQ(allocations, before);
}

TEST(LustreStats, TheSmallestMayBeNegative) {
  Cursor at("x 2 samples [usecs] -5 -1 18446744073709551610 9\ny 1 samples [reqs]\n");
  LustreLine line;
  ASSERT_TRUE(TakeLustreLine(at, line));
  EXPECT_EQ(line.name, "x");
  EXPECT_EQ(line.unit, "usecs");
  EXPECT_EQ(line.samples, 2);
  ASSERT_TRUE(TakeLustreLine(at, line));
  EXPECT_EQ(line.name, "y");
  EXPECT_THAT(line.sum, IsNan());
  EXPECT_FALSE(TakeLustreLine(at, line));
}

}  // namespace
}  // namespace sonde::collect::collect_lustre_test
