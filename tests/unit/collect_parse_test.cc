#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "daemon/collect/job/task_files.h"
#include "daemon/collect/read/parse.h"

namespace sonde::collect::collect_parse_test {
namespace {

using testing::IsNan;

TEST(Cursor, TakesNumbersUpToTheLargest) {
  uint64_t value = 0;
  EXPECT_TRUE(Cursor(" \t18446744073709551615 ").Unsigned(value));
  EXPECT_EQ(value, UINT64_MAX);
  for (const char* bad : {"18446744073709551616", "99999999999999999999", "", "-1", "x", "\n1"}) {
    EXPECT_FALSE(Cursor(bad).Unsigned(value)) << bad;
  }
  EXPECT_EQ(value, UINT64_MAX);
}

TEST(Cursor, StaysWithinItsText) {
  const std::string text = "12345";
  Cursor cut(std::string_view(text).substr(0, 2));
  EXPECT_EQ(cut.Number(), 12);
  EXPECT_TRUE(cut.AtEnd());
  EXPECT_THAT(cut.Number(), IsNan());
  EXPECT_THAT(cut.Decimal(), IsNan());
  EXPECT_EQ(cut.Word(), "");
  EXPECT_EQ(cut.Line(), "");
  EXPECT_FALSE(cut.Skip("3"));
}

TEST(Cursor, SkipsWordsThatOneBlankStandsBefore) {
  Cursor at(" a -1 xyz 7");
  EXPECT_TRUE(at.SkipWords(3));
  EXPECT_EQ(at.Number(), 7);
  EXPECT_FALSE(at.SkipWords(1));
  Cursor few(" a b");
  EXPECT_FALSE(few.SkipWords(3));
  EXPECT_TRUE(few.AtEnd());
}

TEST(Cursor, GoesLineByLine) {
  Cursor at("a 1\n\nb 2");
  EXPECT_EQ(at.Line(), "a 1");
  EXPECT_EQ(at.Line(), "");
  EXPECT_EQ(at.Word(), "b");
  EXPECT_EQ(at.Line(), " 2");
  EXPECT_TRUE(at.AtEnd());
}

constexpr std::string_view kStat =
    "9737 (evil) R 1 (x\n) S 9721 9721 6105 34816 -1 4194304 100 20 3 4 50 60 7 8 20 0 5 0 198871 "
    "3133440 408 18446744073709551615 1 1 140722 0 0 0 0 4096 81922 1 0 0 17 37 0 0 0 0 0\n";

TEST(TaskStat, IsReadBehindWhateverTheProcessCallsItself) {
  TaskStat stat;
  ASSERT_TRUE(ParseTaskStat(kStat, stat));
  EXPECT_EQ(stat.state, 'S');
  EXPECT_EQ(stat.parent, 9721);
  EXPECT_EQ(stat.threads, 5u);
  EXPECT_EQ(stat.start, 198871u);
  EXPECT_EQ(stat.virtual_bytes, 3133440u);
  EXPECT_EQ(stat.resident_pages, 408u);
  EXPECT_EQ(stat.processor, 37);
  EXPECT_EQ(stat.waited_minor_faults, 20);
  EXPECT_EQ(stat.counters[kMinorFaults], 120);
  EXPECT_EQ(stat.counters[kMajorFaults], 7);
  EXPECT_EQ(stat.counters[kUserTicks], 57);
  EXPECT_EQ(stat.counters[kSystemTicks], 68);
}

TEST(TaskStat, CutShortIsNotTaken) {
  TaskStat stat;
  const size_t needed = kStat.find(" 18446744073709551615") - 3;  // within the last number needed
  for (size_t length = 0; length < needed; ++length) {
    EXPECT_FALSE(ParseTaskStat(kStat.substr(0, length), stat)) << length;
  }
  ASSERT_TRUE(ParseTaskStat(kStat.substr(0, kStat.find(" 37 ")), stat));
  EXPECT_THAT(stat.processor, IsNan());
}

TEST(TaskIo, IsTakenWholeOrNotAtAll) {
  const std::string_view text =
      "rchar: 6976\nwchar: 5\nsyscr: 10\nsyscw: 2\nread_bytes: 4096\nwrite_bytes: 8192\n"
      "cancelled_write_bytes: 1024\n";
  TaskCounters counters{};
  EXPECT_FALSE(ParseTaskIo(text.substr(0, 50), counters));
  EXPECT_EQ(counters[kCallReadBytes], 0);
  ASSERT_TRUE(ParseTaskIo(text, counters));
  EXPECT_EQ(counters[kCallReadBytes], 6976);
  EXPECT_EQ(counters[kWriteCalls], 2);
  EXPECT_EQ(counters[kReadBytes], 4096);
  EXPECT_EQ(counters[kWriteBytes], 8192);
  EXPECT_EQ(counters[kCancelledBytes], 1024);
}

TEST(TaskChildren, AreWholePids) {
  std::vector<pid_t> pids;
  ForEachChild("12 345 99999999999 0 7 x 8", [&](pid_t pid) { pids.push_back(pid); });
  EXPECT_THAT(pids, testing::ElementsAre(12, 345, 7));
}

}  // namespace
}  // namespace sonde::collect::collect_parse_test
