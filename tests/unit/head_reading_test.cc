// What must not hold up the loop while others read: the record's lock, and their processor time.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <future>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "daemon/head/record/step_record.h"
#include "daemon/head/record/worker.h"

namespace sonde::head::head_reading_test {
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

// What a reader makes of it grows with the step; he has it as it was, and the loop goes on.
TEST_F(Reading, EverythingElseGoesOnWhileAReaderHoldsWhatThereWas) {
  Append(3);
  record_.Update([](JobDescription& job) { job.nodes.resize(2); });
  const StepRecord::View view(record_);
  auto done = std::async(std::launch::async, [this] {
    Append(1);
    record_.Update([](JobDescription& job) { job.nodes.resize(3); });
    record_.AddNote("so it is");
    record_.UpdateCost([](OwnCost& cost) { cost.cpu_seconds = 7; });
    record_.SetCoverage({8, 8, 0});
    record_.AddAlarm({"hot", "warning", "it is hot", {}, kStart, 0, 1, {}});
    collect::Moments moments;
    moments.annotations.emplace_back().text = "a remark";
    record_.AddMoments(moments);
  });
  const bool went_on = done.wait_for(kPatience) == std::future_status::ready;
  EXPECT_TRUE(went_on) << "a reader that is not scheduled would hold up the ticks";
  if (!went_on) waiting_ = std::move(done);
  const Profile before = view.Snapshot();
  EXPECT_EQ(before.job.nodes.size(), 2u);
  EXPECT_EQ(before.footprint.at(0).ticks, 3u);
  EXPECT_TRUE(before.job.notes.empty());
  EXPECT_TRUE(before.moments.empty());
  EXPECT_EQ(before.job.coverage.got, 0u);
  const Profile after = record_.Snapshot();
  EXPECT_EQ(after.job.nodes.size(), 3u);
  EXPECT_EQ(after.footprint.at(0).ticks, 4u);
  EXPECT_EQ(after.job.notes.size(), 2u) << "the note, and that of the alarm";
  EXPECT_EQ(after.moments.alarms.size(), 1u);
  EXPECT_EQ(after.moments.remarks.size(), 1u);
  EXPECT_EQ(after.cost.cpu_seconds, 7);
  EXPECT_EQ(after.job.coverage.got, 8u);
}

// Many who look, one who changes: each sees a value that there was, and no later one twice.
TEST(SharedValue, IsWholeWhoeverLooksWhenever) {
  SharedValue<std::vector<int>> value(8, 0);
  std::atomic<bool> over = false;
  std::vector<std::thread> readers;
  for (int i = 0; i < 3; ++i) {
    readers.emplace_back([&] {
      for (int last = 0; !over;) {
        const auto look = value.Get();
        const int now = look->front();
        EXPECT_GE(now, last);
        EXPECT_EQ(std::count(look->begin(), look->end(), now), 8);
        last = now;
      }
    });
  }
  for (int i = 1; i <= 20'000; ++i) {
    value.Change([i](std::vector<int>& all) {
      for (int& one : all) one = i;
    });
  }
  over = true;
  for (std::thread& reader : readers) reader.join();
  EXPECT_EQ(value.Get()->back(), 20'000);
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
}  // namespace sonde::head::head_reading_test
