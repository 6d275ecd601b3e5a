// What the head answers on its loop, and how much of the loop's time that may take.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "daemon/head/answers/loop_share.h"
#include "daemon/head/answers/step_question.h"

namespace sonde::head::head_little_time_test {
namespace {

constexpr Nanos kStart = 1'000'000 * kSecond;

// A record whose newest row is `ticks` after the start, of `series` series of the metric a.
class LittleTime : public testing::Test {
 protected:
  static JobDescription Job(size_t nodes) {
    JobDescription job;
    job.start = kStart;
    job.nodes.resize(nodes);
    return job;
  }
  static bool Takes(const QuerySpec& spec, size_t ticks, size_t series = 1, size_t nodes = 2) {
    StepRecord record(Job(nodes));
    std::vector<Series> all(series);
    for (size_t i = 0; i < series; ++i) {
      all[i].metric.name = "a";
      all[i].tags.Set("device", std::to_string(i));
    }
    std::vector<Reduced> row(series);
    for (Reduced& one : row) one.Add(1, {0, Owner::kNobody});
    record.Append(kStart + static_cast<Nanos>(ticks) * kSecond, row, all);
    return TakesLittleTime(record, kSecond, spec);
  }
  static QuerySpec Since(size_t tick) {
    QuerySpec spec;
    spec.metric = "a";
    spec.start = kStart + static_cast<Nanos>(tick) * kSecond;
    spec.end = spec.start + 60 * kSecond;
    return spec;
  }
};

TEST_F(LittleTime, AQuestionAboutTheLastMinutesDoes) {
  EXPECT_TRUE(Takes(Since(99'940), 100'000));
  EXPECT_TRUE(Takes(Since(0), 600)) << "the whole step is no longer than that";
}

TEST_F(LittleTime, RowsThatArePackedAlreadyTakeMore) {
  EXPECT_FALSE(Takes(Since(90'000), 100'000));
  QuerySpec all;
  all.metric = "a";
  all.start = 0;
  EXPECT_FALSE(Takes(all, 100'000));
}

TEST_F(LittleTime, ManySeriesAndManyNodesTakeMore) {
  EXPECT_TRUE(Takes(Since(940), 1000, 16));
  EXPECT_FALSE(Takes(Since(940), 1000, 400)) << "of the metric";
  EXPECT_FALSE(Takes(Since(940), 1000, 5000)) << "of the step";
  EXPECT_FALSE(Takes(Since(940), 1000, 1, 257));
}

TEST_F(LittleTime, APatternMayTakeAnyTime) {
  QuerySpec spec = Since(940);
  spec.filters.push_back({TagFilter::Type::kWildcard, "host", "*", true});
  EXPECT_TRUE(Takes(spec, 1000));
  spec.filters.push_back({TagFilter::Type::kRegexp, "device", "(a*)*b", false});
  EXPECT_FALSE(Takes(spec, 1000));
}

TEST(LoopShare, OfEachSpanThereIsAShare) {
  LoopShare share;
  const Nanos now = 1000 * kSecond;
  ASSERT_TRUE(share.IsLeft(now));
  share.Take(now, now + LoopShare::kMost - 1);
  EXPECT_TRUE(share.IsLeft(now + LoopShare::kMost));
  share.Take(now + LoopShare::kMost, now + LoopShare::kMost + 1);
  EXPECT_FALSE(share.IsLeft(now + LoopShare::kMost + 1));
  EXPECT_FALSE(share.IsLeft(now + LoopShare::kSpan - 1));
  EXPECT_TRUE(share.IsLeft(now + LoopShare::kSpan));
}

// One that took longer than the whole span is not held against the next.
TEST(LoopShare, ASpanBeginsWhenItIsAskedFor) {
  LoopShare share;
  ASSERT_TRUE(share.IsLeft(kSecond));
  share.Take(kSecond, 5 * kSecond);
  EXPECT_TRUE(share.IsLeft(5 * kSecond));
}

}  // namespace
}  // namespace sonde::head::head_little_time_test
