// What a step of several hours had counted by then is the same wherever the range of a question
// begins: docs/queries.md, "Counters".
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <future>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "profiles/archive/open_archive.h"
#include "profiles/live/live_archive.h"
#include "series/query/aggregate.h"
#include "serve/archive_source.h"
#include "tests/unit/profiles_fixture.h"

namespace sonde::counters_hours_test {
namespace {

constexpr char kWork[] = "work_total";
constexpr double kRounding = 1e-6;
constexpr Nanos kMinute = 60 * kSecond;  // of the ticks
constexpr Nanos kHour = 60 * kMinute;

Nanos Tick(int tick) { return kTestStart + tick * kMinute; }

// What one task of a node had counted at each tick from `first` on; NaN: it was not sampled.
struct Task {
  int rank = 0;
  int first = 1;
  std::vector<double> counted;
  bool ended(int tick) const { return tick >= first + static_cast<int>(counted.size()); }
};

// A daemon of a node, and what it stored.
struct Daemon {
  std::string host;
  std::vector<Task> tasks;
  Nanos left = 0;
  bool lost = false;
  bool keeps_columns = false;  // of tasks that have ended
  int rows = 20;               // of a block
};

class CountersOfHours : public testing::Test {
 protected:
  void Store(const std::vector<Daemon>& daemons, int ticks) {
    JobDescription job = TestJob();
    job.period = kMinute;
    job.nodes.clear();
    for (const Daemon& daemon : daemons) {
      NodeInfo& info = job.nodes.emplace_back();
      info.host = daemon.host;
      info.left = daemon.left;
      info.lost = daemon.lost;
    }
    job.expected_nodes = static_cast<uint32_t>(daemons.size());
    live_ = *LiveArchive::Create(dir_.path(), job);
    for (uint32_t i = 0; i < daemons.size(); ++i) StoreDaemon(i, daemons[i]);
    job.end = Tick(ticks) + kSecond;
    job.state = EndState::kCompleted;
    Profile profile;
    profile.job = job;
    ASSERT_TRUE(live_->PutProfile(profile).ok());
    ASSERT_TRUE(live_->Finish().ok());
    ASSERT_TRUE(OpenArchive(dir_.path()).ok());
    source_ = std::make_shared<serve::ArchiveSource>(*Archive::Open(dir_.path()));
    end_ = Tick(ticks + 5);
  }

  // The points of the only result.
  std::vector<Point> Ask(Aggregator aggregator, Nanos start, const char* downsample = "") {
    QuerySpec spec;
    spec.metric = kWork;
    spec.aggregator = aggregator;
    spec.start = start;
    spec.end = end_;
    if (*downsample != '\0') spec.downsample = *ParseDownsample(downsample);
    std::promise<Result<web::Answer>> promise;
    source_->Query(spec, [&](Result<web::Answer> answer) { promise.set_value(std::move(answer)); });
    const Result<web::Answer> answer = promise.get_future().get();
    EXPECT_TRUE(answer.ok()) << answer.status().message();
    if (!answer.ok() || answer->results.size() != 1) return {};
    return answer->results.front().points;
  }

  // What it says at the ticks from `start` on.
  std::map<Nanos, double> At(const std::vector<Point>& points, Nanos start) {
    std::map<Nanos, double> values;
    for (const Point& p : points) {
      if (p.time >= start) values[p.time] = p.value;
    }
    return values;
  }

 private:
  // A block for so many rows, or until a task begins or ends.
  void StoreDaemon(uint32_t index, const Daemon& daemon) {
    int first = INT32_MAX;
    int last = 0;
    for (const Task& task : daemon.tasks) {
      first = std::min(first, task.first);
      last = std::max(last, task.first + static_cast<int>(task.counted.size()) - 1);
    }
    uint64_t sequence = 0;
    for (int from = first, to = first; from <= last; from = to) {
      const std::vector<const Task*> there = There(daemon, from);
      for (to = from; to <= last && to < from + daemon.rows; ++to) {
        if (There(daemon, to) != there) break;
      }
      std::vector<Series> columns;
      columns.reserve(there.size());
      for (const Task* task : there) {
        columns.push_back(
            TestSeries(kWork, MetricType::kCounter, {{"task", std::to_string(task->rank)}}));
      }
      std::vector<Nanos> times;
      for (int tick = from; tick < to; ++tick) times.push_back(Tick(tick));
      std::vector<double> values;
      for (const Task* task : there) {
        for (int tick = from; tick < to; ++tick) values.push_back(Counted(*task, tick));
      }
      if (there.empty()) continue;
      const auto schema = Schema::Make(columns);
      const BlockKey key{index, "task", ++sequence};
      ASSERT_TRUE(live_->PutBlock(key, *schema, MakeBlock(*schema, times, values)).ok());
    }
  }
  static std::vector<const Task*> There(const Daemon& daemon, int tick) {
    std::vector<const Task*> there;
    for (const Task& task : daemon.tasks) {
      if (tick >= task.first && (daemon.keeps_columns || !task.ended(tick))) there.push_back(&task);
    }
    return there;
  }
  static double Counted(const Task& task, int tick) {
    return task.ended(tick) ? std::nan("") : task.counted[static_cast<size_t>(tick - task.first)];
  }

  TempDir dir_{TempDir::Memory()};
  std::unique_ptr<LiveArchive> live_;
  std::shared_ptr<serve::ArchiveSource> source_;
  Nanos end_ = 0;
};

// `each` at every tick.
Task Steady(int rank, int first, int last, double each) {
  Task task{rank, first, {}};
  for (int tick = first; tick <= last; ++tick) task.counted.push_back(each * (tick - first + 1));
  return task;
}

// The node's first daemon was lost in the first hour, and the second counts from nothing.
TEST_F(CountersOfHours, ANodeWhoseDaemonWasStartedAnewCountsOnce) {
  Daemon before{"n1", {Steady(0, 1, 30, 10)}, Tick(31), true};
  Daemon after{"n1", {Steady(0, 40, 240, 1)}};
  Store({before, after, {"n2", {Steady(1, 1, 240, 1)}}}, 240);
  for (const int start : {0, 100, 200}) {
    auto sum = At(Ask(Aggregator::kSum, Tick(start)), Tick(start));
    EXPECT_EQ(sum[Tick(220)], 300 + 181 + 220) << "from minute " << start;
    EXPECT_EQ(sum[Tick(240)], 300 + 201 + 240) << "from minute " << start;
  }
}

// A counter of the whole node goes on where it was.
TEST_F(CountersOfHours, WhatGoesOnAfterItsDaemonIsNotCountedAgain) {
  Task rest = Steady(0, 40, 240, 1);
  for (double& value : rest.counted) value += 30;
  Store({{"n1", {Steady(0, 1, 30, 1)}, Tick(31), true}, {"n1", {rest}}}, 240);
  for (const int start : {0, 100, 200}) {
    EXPECT_EQ(At(Ask(Aggregator::kSum, Tick(start)), Tick(start))[Tick(220)], 211) << start;
  }
}

TEST_F(CountersOfHours, ATaskThatEndedWhileItsNodeGoesOnStays) {
  Daemon keeps{"n1", {Steady(0, 1, 30, 10), Steady(1, 1, 240, 1)}};
  keeps.keeps_columns = true;
  Daemon drops{"n2", {Steady(2, 1, 30, 10), Steady(3, 1, 240, 1)}};
  Store({keeps, drops}, 240);
  for (const int start : {0, 100, 200}) {
    auto sum = At(Ask(Aggregator::kSum, Tick(start)), Tick(start));
    EXPECT_EQ(sum[Tick(220)], 2 * (300 + 220)) << "from minute " << start;
  }
}

TEST_F(CountersOfHours, ALostNodeStaysThatIsToldGoneLongAfterItsLastSample) {
  Daemon lost{"n1", {Steady(0, 1, 30, 10)}, Tick(230), true};
  Store({lost, {"n2", {Steady(1, 1, 240, 1)}}}, 240);
  for (const int start : {0, 100, 200}) {
    auto sum = At(Ask(Aggregator::kSum, Tick(start)), Tick(start));
    EXPECT_EQ(sum[Tick(220)], 300 + 220) << "from minute " << start;
  }
}

// Steps of some hours by chance: daemons that are lost and started anew, tasks that end, samples
// that are missing for long.
class CountersOfAnyHours : public CountersOfHours, public testing::WithParamInterface<int> {
 protected:
  void Make() {
    ticks_ = 130 + Below(170);
    const int hosts = 1 + Below(4);
    for (int host = 0; host < hosts; ++host) {
      const std::string name = "n" + std::to_string(host + 1);
      const bool from_boot = Below(2) == 0;
      std::vector<double> had(3, 0);
      for (int first = 1 + Below(20); first + 10 < ticks_;) {
        const int last = Below(3) == 0 ? ticks_ : std::min(ticks_, first + 1 + Below(100));
        AddDaemon(name, first, last, from_boot, had);
        first = last + 1 + Below(70);
        if (Below(3) == 0) break;
      }
    }
  }

  double total_ = 0;
  int ticks_ = 0;
  std::vector<Daemon> daemons_;

 private:
  int Below(int end) { return static_cast<int>(random_() % static_cast<uint64_t>(end)); }

  void AddDaemon(const std::string& host, int first, int last, bool from_boot,
                 std::vector<double>& had) {
    Daemon& daemon = daemons_.emplace_back();
    daemon.host = host;
    daemon.lost = Below(2) == 0;
    daemon.left = last == ticks_ ? 0 : Tick(last + 1 + (daemon.lost ? Below(100) : 0));
    daemon.keeps_columns = Below(2) == 0;
    daemon.rows = 5 + Below(40);
    for (int rank = 0; rank < 1 + Below(3); ++rank) {
      Task& task = daemon.tasks.emplace_back();
      task.rank = rank;
      task.first = first + Below(std::min(5, last - first + 1));
      const int end = Below(2) == 0 ? last : task.first + Below(last - task.first + 1);
      // Each is less than those before, so that what begins anew shows.
      double counted = from_boot ? had[static_cast<size_t>(rank)] : 0;
      const bool seldom = Below(3) == 0;
      const double began = counted;
      for (int tick = task.first; tick <= end; ++tick) {
        if (tick > task.first) counted += Below(11);
        const bool taken = tick == task.first || tick == end || !seldom || Below(20) == 0;
        task.counted.push_back(taken ? counted : std::nan(""));
      }
      had[static_cast<size_t>(rank)] = counted;
      total_ += counted - began;
    }
  }

  std::mt19937_64 random_{static_cast<uint64_t>(GetParam()) + 1};
};

TEST_P(CountersOfAnyHours, TheSumIsTheSameWhereverTheRangeBegins) {
  Make();
  Store(daemons_, ticks_);
  if (HasFatalFailure()) return;
  for (const auto& [aggregator, by] : {std::pair(Aggregator::kSum, ""),
                                       {Aggregator::kZimsum, ""},
                                       {Aggregator::kPfsum, ""},
                                       {Aggregator::kCount, ""},
                                       {Aggregator::kAvg, ""},
                                       {Aggregator::kMin, ""},
                                       {Aggregator::kMax, ""},
                                       {Aggregator::kSum, "10m-last"},
                                       {Aggregator::kSum, "7m-max"},
                                       {Aggregator::kSum, "45m-last"}}) {
    const std::string who = std::string(ToString(aggregator)) + " " + by;
    const std::vector<Point> whole = Ask(aggregator, kTestStart, by);
    // What is over before the first whole bucket has none.
    if (whole.empty() && *by != '\0') continue;
    ASSERT_FALSE(whole.empty()) << who;
    const bool rises = aggregator != Aggregator::kAvg && aggregator != Aggregator::kMin;
    for (size_t i = 1; rises && i < whole.size(); ++i) {
      ASSERT_GE(whole[i].value, whole[i - 1].value - kRounding) << who << " falls";
    }
    if (Basis(aggregator) == Aggregator::kSum) {
      ASSERT_DOUBLE_EQ(whole.back().value, total_) << who;
    }
    for (Nanos start = kTestStart; start < Tick(ticks_); start += kHour / 3 + 7 * kSecond) {
      const auto expected = At(whole, start);
      const auto found = At(Ask(aggregator, start, by), start);
      ASSERT_EQ(found.size(), expected.size()) << who;
      for (const auto& [time, value] : expected) {
        const auto at = found.find(time);
        ASSERT_NE(at, found.end());
        ASSERT_NEAR(at->second, value, kRounding)
            << who << ", asked from minute " << (start - kTestStart) / kMinute << ", at "
            << (time - kTestStart) / kMinute;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Steps, CountersOfAnyHours, testing::Range(0, 100));

}  // namespace
}  // namespace sonde::counters_hours_test
