// What must not hold up the loop while others read: the record's lock, and their processor time.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <future>
#include <memory>
#include <utility>
#include <vector>

#include "daemon/head/step_record.h"
#include "daemon/head/worker.h"

namespace sonde::head {
namespace {

constexpr Nanos kStart = 1'000 * kSecond;
constexpr std::chrono::seconds kPatience(20);

class Reading : public testing::Test {
 protected:
  Reading() : record_(Job()) { series_[0].metric.name = "load"; }

  static JobDescription Job() {
    JobDescription job;
    job.start = kStart;
    return job;
  }
  // As the loop does. False: it had to wait for the reader.
  bool AppendMeanwhile(int rows) {
    auto done = std::async(std::launch::async, [this, rows] { Append(rows); });
    const bool went_on = done.wait_for(kPatience) == std::future_status::ready;
    if (!went_on) waiting_ = std::move(done);
    return went_on;
  }
  void Append(int rows) {
    for (int i = 0; i < rows; ++i) {
      std::vector<Reduced> row(1);
      row[0].Add(++count_, {0, Owner::kNobody});
      record_.Append(kStart + count_ * kSecond, row, series_);
    }
  }
  void ExpectTheRows(const std::vector<SeriesData>& read) const {
    ASSERT_FALSE(read.empty());
    ASSERT_EQ(read[0].points.size(), static_cast<size_t>(count_));
    for (int i = 0; i < count_; ++i) {
      EXPECT_EQ(read[0].points[static_cast<size_t>(i)],
                (Point{kStart + (i + 1) * kSecond, i + 1.0}));
    }
  }
  static bool IsSum(const Series& series) { return *series.tags.Find(kStatTag) == "sum"; }

  StepRecord record_;
  std::vector<Series> series_ = std::vector<Series>(1);
  int count_ = 0;
  std::future<void> waiting_;
};

TEST_F(Reading, RowsComeWhileAReaderLooksAtNames) {
  Append(100);
  bool went_on = false;
  bool first = true;
  const auto wanted = [&](const Series& series) {
    if (std::exchange(first, false)) went_on = AppendMeanwhile(1);
    return IsSum(series);
  };
  const std::vector<SeriesData> read = record_.Read(wanted, 0, 2 * kStart);
  EXPECT_TRUE(went_on) << "a reader that is not scheduled would hold up the ticks";
  ExpectTheRows(read);
}

// The reader has what was sealed before, and the open rows are others now.
TEST_F(Reading, NothingIsMissingOrTwiceWhenABlockIsSealedMeanwhile) {
  Append(100);
  bool first = true;
  const auto wanted = [&](const Series& series) {
    if (std::exchange(first, false)) {
      EXPECT_TRUE(AppendMeanwhile(400));
    }
    return IsSum(series);
  };
  ExpectTheRows(record_.Read(wanted, 0, 2 * kStart));
}

TEST_F(Reading, NothingIsMissingWhenTheSeriesChangeMeanwhile) {
  Append(40);
  bool first = true;
  const auto wanted = [&](const Series& series) {
    if (std::exchange(first, false)) {
      series_.emplace_back().metric.name = "more";
      std::vector<Reduced> row(2);
      row[0].Add(++count_, {0, Owner::kNobody});
      auto done = std::async(std::launch::async, [this, row] {
        record_.Append(kStart + count_ * kSecond, row, series_);
      });
      EXPECT_EQ(done.wait_for(kPatience), std::future_status::ready);
    }
    return IsSum(series);
  };
  ExpectTheRows(record_.Read(wanted, 0, 2 * kStart));
}

TEST(HeadWorker, ClaimsLessOfABusyProcessorThanTheLoop) {
  const int own = getpriority(PRIO_PROCESS, 0);
  std::promise<int> niceness;
  {
    Worker worker(5);
    worker.Do([&] { niceness.set_value(getpriority(PRIO_PROCESS, 0)); });
    EXPECT_EQ(niceness.get_future().get(), std::min(own + 5, 19));
  }
  EXPECT_EQ(getpriority(PRIO_PROCESS, 0), own);
}

TEST(HeadWorker, DropsWhatItHasNotBegunWhenItEnds) {
  std::promise<void> begun;
  std::promise<void> go_on;
  int done = 0;
  {
    auto worker = std::make_unique<Worker>(0);
    worker->Do([&] {
      begun.set_value();
      go_on.get_future().wait();
      ++done;
    });
    begun.get_future().wait();
    for (int i = 0; i < 3; ++i) worker->Do([&] { ++done; });
    auto end = std::async(std::launch::async, [&] { worker.reset(); });
    go_on.set_value();
    EXPECT_EQ(end.wait_for(kPatience), std::future_status::ready);
  }
  EXPECT_GE(done, 1);
}

}  // namespace
}  // namespace sonde::head
