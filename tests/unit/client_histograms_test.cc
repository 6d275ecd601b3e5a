// What an application observes is recorded once, whatever threads, processes and ticks do.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <map>
#include <string>
#include <thread>

#include "core/histogram_buckets.h"
#include "tests/unit/client_driver.h"
#include "tests/unit/client_fixture.h"

extern std::atomic<size_t> allocations;

// The sanitizers' own memory says nothing about libsonde's.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define SONDE_TEST_MEMORY
#endif

namespace sonde::collect::client_histograms_test {
namespace {

using testing::HasSubstr;

class AppHistogram : public ClientTest {
 protected:
  // Adds what came since the last call to what came before, by series; ends of ticks.
  void Take() {
    for (const NamedSketch& named : source_->TakeMoments().sketches) {
      EXPECT_FALSE(named.sketch.empty());
      came_[SeriesName(named.series.metric.name, named.series.tags)].Merge(named.sketch);
    }
  }
  const Metric& MetricOf(const std::string& name) const {
    static const Metric none;
    for (const Series& series : source_->series()) {
      if (series.metric.name == name) return series.metric;
    }
    return none;
  }

  std::map<std::string, Sketch> came_;
};

TEST_F(AppHistogram, IsRecordedAsSeriesOfItsRankAndAsASketch) {
  Start();
  ClientProcess app(Environment());
  EXPECT_EQ(app.Do("histogram wait_seconds 0 kind=a"), kOk + " new");
  EXPECT_EQ(Read("wait_seconds_count{kind=\"a\",task=\"3\"}"), 0);
  EXPECT_TRUE(std::isnan(Read("wait_seconds_p50{kind=\"a\",task=\"3\"}")));
  for (const char* value : {"0.25", "0.5", "4", "0.5"}) {
    app.Do(std::string("observe wait_seconds ") + value);
  }
  EXPECT_EQ(Read("wait_seconds_max{kind=\"a\",task=\"3\"}"), 4);
  EXPECT_EQ(source_->values()[0], 4) << "count";
  EXPECT_EQ(source_->values()[1], 5.25) << "sum";
  EXPECT_NEAR(source_->values()[2], 0.5, 0.5 / 64) << "median";
  EXPECT_EQ(source_->values()[3], 4) << "99th percentile";
  Take();
  const Sketch& sketch = came_["wait_seconds{kind=\"a\"}"];
  EXPECT_EQ(sketch.count(), 4u);
  EXPECT_EQ(sketch.sum(), 5.25);
  EXPECT_EQ(sketch.min(), 0.25);
  EXPECT_EQ(sketch.max(), 4);
  EXPECT_THAT(sketch.buckets(), testing::ElementsAre(Sketch::Bucket(histogram::BucketOf(0.25), 1),
                                                     Sketch::Bucket(histogram::BucketOf(0.5), 2),
                                                     Sketch::Bucket(histogram::BucketOf(4), 1)));
}

TEST_F(AppHistogram, SeriesSayWhatTheyAre) {
  Start();
  ClientProcess app(Environment());
  app.Do("histogram h");
  Read("");
  EXPECT_EQ(source_->series().size(), AppHistograms::kSeries);
  EXPECT_EQ(MetricOf("h_count").type, MetricType::kCounter);
  EXPECT_EQ(MetricOf("h_count").unit, "1");
  EXPECT_EQ(MetricOf("h_sum").type, MetricType::kCounter);
  EXPECT_EQ(MetricOf("h_sum").reduction, Reduction::kSum);
  EXPECT_EQ(MetricOf("h_p50").reduction, Reduction::kMean);
  EXPECT_EQ(MetricOf("h_p99").reduction, Reduction::kMax);
  EXPECT_EQ(MetricOf("h_max").reduction, Reduction::kMax);
  EXPECT_EQ(MetricOf("h_max").type, MetricType::kGauge);
  EXPECT_EQ(MetricOf("h_max").help, "help: largest since the last tick");
}

TEST_F(AppHistogram, QuantilesAreOfTheTickAndMissingWhereNothingCame) {
  Start();
  ClientProcess app(Environment());
  app.Do("histogram h");
  app.Do("observe h 1000");
  EXPECT_EQ(Read("h_max{task=\"3\"}"), 1000);
  EXPECT_TRUE(std::isnan(Read("h_max{task=\"3\"}")));
  EXPECT_TRUE(std::isnan(Read("h_p99{task=\"3\"}")));
  EXPECT_EQ(Read("h_sum{task=\"3\"}"), 1000);
  app.Do("observe h 2");
  EXPECT_NEAR(Read("h_max{task=\"3\"}"), 2, 2.0 / 64) << "not the largest of all time";
  app.Do("observe h 3");
  EXPECT_NEAR(Read("h_p50{task=\"3\"}"), 3, 3.0 / 64);
  EXPECT_EQ(Read("h_count{task=\"3\"}"), 3);
  Take();
  EXPECT_EQ(came_["h"].count(), 3u);
  EXPECT_NEAR(came_["h"].min(), 2, 2.0 / 64);
  EXPECT_EQ(came_["h"].max(), 1000);
}

TEST_F(AppHistogram, OutliersAreCountedAndWhatIsNoNumberIsNot) {
  Start();
  ClientProcess app(Environment());
  app.Do("histogram h");
  for (const char* value : {"0", "-1", "1e-12", "1e18", "inf", "-inf", "nan"}) {
    app.Do(std::string("observe h ") + value);
  }
  EXPECT_EQ(Read("h_count{task=\"3\"}"), 4);
  EXPECT_EQ(Read("h_sum{task=\"3\"}"), 1e18);
  Take();
  EXPECT_THAT(came_["h"].buckets(), testing::ElementsAre(Sketch::Bucket(histogram::kUnderflow, 3),
                                                         Sketch::Bucket(histogram::kOverflow, 1)));
  EXPECT_EQ(came_["h"].min(), -1);
  EXPECT_EQ(came_["h"].max(), 1e18);
  for (int i = 0; i < 5; ++i) app.Do("observe h 0");
  EXPECT_EQ(Read("h_count{task=\"3\"}"), 9) << "what does not change the sum";
}

TEST_F(AppHistogram, RanksComeTogetherInTheSketchAndProcessesOfARankInItsSeries) {
  Start();
  ClientProcess one(Environment(1)), two(Environment(2)), other_two(Environment(2));
  int value = 1;
  for (ClientProcess* app : {&one, &two, &other_two}) {
    app->Do("histogram h");
    app->Do("observe h " + std::to_string(value));
    value *= 10;
  }
  EXPECT_EQ(Read("h_max{task=\"1\"}"), 1);
  EXPECT_EQ(Read("h_count{task=\"2\"}"), 2);
  Take();
  EXPECT_EQ(came_.size(), 1u);
  EXPECT_EQ(came_["h"].count(), 3u);
  EXPECT_EQ(came_["h"].sum(), 111);
  Read("");
  EXPECT_TRUE(source_->TakeMoments().empty()) << "each once";
  two.Do("observe h 1");
  other_two.Do("observe h 9");
  EXPECT_NEAR(Read("h_max{task=\"2\"}"), 9, 9.0 / 64) << "of both processes";
}

TEST_F(AppHistogram, OfProcessesThatEndedBetweenTwoTicksIsNotLost) {
  Start();
  for (int i = 0; i < 3; ++i) {
    ClientProcess app(Environment());
    app.Do("histogram h");
    app.Do("observers 4 100 h");
    if (i == 0) Read("");
    app.Do("observe h 64");
    if (i == 1) app.Kill();
  }
  EXPECT_EQ(Read("h_count{task=\"3\"}"), 3 * 401);
  EXPECT_EQ(source_->processes(), 0u);
  EXPECT_EQ(Read("h_count{task=\"3\"}"), 3 * 401);
  Take();
  EXPECT_EQ(came_["h"].count(), 3u * 401);
  EXPECT_EQ(came_["h"].sum(), 3 * (100 * (1 + 2 + 4 + 8) + 64));
}

TEST_F(AppHistogram, WhatDoesNotChangeTheSumIsFoundAtTheLatestWhenItsProcessEnds) {
  Start();
  ClientProcess app(Environment());
  app.Do("histogram h");
  app.Do("observe h 1e17");
  for (int i = 0; i < 3; ++i) Read("");
  app.Do("observe h 1");
  app.End();
  EXPECT_EQ(Read("h_count{task=\"3\"}"), 2);
  Take();
  EXPECT_EQ(came_["h"].count(), 2u);
  EXPECT_EQ(came_["h"].min(), 1);
}

TEST_F(AppHistogram, CountsOfThreadsAreExact) {
  Start();
  ClientProcess app(Environment());
  app.Do("histogram h");
  // More at once than there are shards, then the same again in shards given back.
  for (int round = 1; round <= 2; ++round) {
    EXPECT_EQ(app.Do("observers 300 2000 h"), "ok");
    EXPECT_EQ(Read("h_count{task=\"3\"}"), round * 600'000);
  }
  Take();
  const Sketch& sketch = came_["h"];
  ASSERT_EQ(sketch.buckets().size(), 8u);
  double sum = 0;
  for (int i = 0; i < 8; ++i) {
    // 300 threads: the first four values have one thread more.
    const uint64_t count = 2 * 2000 * (i < 4 ? 38 : 37);
    EXPECT_EQ(sketch.buckets()[static_cast<size_t>(i)],
              Sketch::Bucket(histogram::BucketOf(1 << i), count));
    sum += static_cast<double>(count) * (1 << i);
  }
  EXPECT_EQ(sketch.sum(), sum);
  EXPECT_EQ(sketch.min(), 1);
  EXPECT_EQ(sketch.max(), 128);
}

TEST_F(AppHistogram, ThreadsShareWhenAllDistributionsAreTaken) {
  Start();
  ClientProcess app(Environment());
  std::string names;
  for (int i = 0; i < 40; ++i) {
    const std::string name = "h" + std::to_string(i);
    app.Do("histogram " + name);
    names += " " + name;
  }
  // 70 threads x 40 histograms are more than there are, with and without those that are shared.
  for (int round = 1; round <= 2; ++round) {
    EXPECT_EQ(app.Do("observers 70 50" + names), "ok");
    Read("");
  }
  Take();
  EXPECT_EQ(came_.size(), 40u);
  for (const auto& [name, sketch] : came_) {
    EXPECT_EQ(sketch.count(), 2u * 70 * 50) << name;
    EXPECT_EQ(sketch.sum(), 2 * 50 * (8 * 255 + 63)) << name;
    EXPECT_EQ(sketch.min(), 1) << name;
    EXPECT_EQ(sketch.max(), 128) << name;
  }
  app.Do("histogram shared");
  for (const char* value : {"1", "0.25", "1000"}) app.Do(std::string("observe shared ") + value);
  EXPECT_EQ(Read("shared_count{task=\"3\"}"), 3);
  Take();
  EXPECT_EQ(came_["shared"].min(), 0.25);
  EXPECT_EQ(came_["shared"].max(), 1000);
}

TEST_F(AppHistogram, IsTakenOnceWhileItIsWritten) {
  Start();
  ClientProcess app(Environment());
  app.Do("histogram h");
  std::thread writer([&] { app.Do("observers 3 1000000 h"); });
  for (double count = 0; count < 3'000'000;) {
    count = Read("h_count{task=\"3\"}");
    ASSERT_LE(count, 3'000'000);
    Take();
  }
  writer.join();
  Read("");
  Take();
  EXPECT_EQ(came_["h"].count(), 3'000'000u);
  EXPECT_EQ(came_["h"].sum(), 7'000'000);
  EXPECT_EQ(came_["h"].max(), 4);
}

TEST_F(AppHistogram, AThreadTakesOverWhereAnEndedOneObserved) {
  Start();
  ClientProcess app(Environment());
  app.Do("histogram h");
  const long grown = std::stol(app.Do("sequence 300 h"));
  EXPECT_EQ(Read("h_count{task=\"3\"}"), 300);
#ifdef SONDE_TEST_MEMORY
  EXPECT_LT(grown, 512) << "KiB; 20 KiB for every thread would be 6000";
#else
  (void)grown;
#endif
}

TEST_F(AppHistogram, OfAForkedChildBeginsAnew) {
  Start();
  ClientProcess app(Environment());
  app.Do("counter n_total");
  app.Do("gauge g");
  app.Do("histogram h");
  app.Do("observe h 1");
  Read("");
  EXPECT_EQ(app.Do("fork n_total g h"), "0 0 ");
  EXPECT_EQ(Read("h_count{task=\"3\"}"), 2) << "the parent's and the attached child's";
  EXPECT_EQ(Read("h_sum{task=\"3\"}"), 8);
  app.Do("observe h 1");
  EXPECT_EQ(Read("h_count{task=\"3\"}"), 3);
}

TEST_F(AppHistogram, NothingIsObservedIntoOtherTypesNorOthersIntoIt) {
  Start();
  ClientProcess app(Environment());
  app.Do("histogram h");
  app.Do("counter n_total");
  app.Do("gauge g");
  app.Do("observe n_total 5");
  app.Do("observe g 5");
  app.Do("observe none 5");
  app.Do("set h 5");
  app.Do("add h 5");
  app.Do("add h 0.5");
  app.Do("set_at h 5 5");
  EXPECT_EQ(Read("h_count{task=\"3\"}"), 0);
  EXPECT_EQ(Read("n_total{task=\"3\"}"), 0);
  EXPECT_TRUE(std::isnan(Read("g{task=\"3\"}")));
}

TEST_F(AppHistogram, HasLimitsThatAreToldInWords) {
  Start();
  ClientProcess app(Environment());
  EXPECT_EQ(app.Do("histogram " + std::string(122, 'h')), kOk + " new");
  EXPECT_EQ(app.Do("histogram " + std::string(123, 'h')), std::to_string(SONDE_INVALID) + " null");
  EXPECT_THAT(app.Do("error"), HasSubstr("has 123 bytes; 122 are allowed"));
  EXPECT_EQ(app.Do("gauge " + std::string(122, 'h')), std::to_string(SONDE_CONFLICT) + " null");
  EXPECT_THAT(app.Do("error"), HasSubstr("is a histogram already and cannot be a gauge"));
  EXPECT_THAT(app.Do("many histogram 600"), HasSubstr("511 " + std::to_string(SONDE_LIMIT)));
  EXPECT_THAT(app.Do("error"), HasSubstr("512 histograms"));
  EXPECT_EQ(Read("application_metric_number_510_sum{phase=\"main\",task=\"3\"}"), 510);
}

TEST_F(AppHistogram, ANodeHasALimitThatIsNoted) {
  options_.max_histograms = 3;
  Start();
  ClientProcess one(Environment(1)), two(Environment(2));
  one.Do("many histogram 2");
  two.Do("many histogram 2");
  Read("");
  EXPECT_EQ(source_->series().size(), 3 * AppHistograms::kSeries);
  EXPECT_THAT(source_->TakeNotes(), testing::ElementsAre(HasSubstr("have 3 histograms")));
  one.End();
  two.End();
  Read("");
  ClientProcess three(Environment(3));
  three.Do("histogram h");
  EXPECT_EQ(Read("h_count{task=\"3\"}"), 0) << "the ended made room";
}

TEST_F(AppHistogram, NamesOfItsSeriesBelongToIt) {
  Start();
  ClientProcess app(Environment()), other(Environment());
  app.Do("counter a_count");
  app.Do("histogram a");
  app.Do("histogram b");
  app.Do("counter b_sum");
  app.Do("observe a 1");
  app.Do("observe b 2");
  app.Do("add a_count 10");
  app.Do("add b_sum 10");
  Read("");
  other.Do("gauge b");
  EXPECT_EQ(Read("a_count{task=\"3\"}"), 10);
  EXPECT_EQ(Read("b_sum{task=\"3\"}"), 2);
  EXPECT_EQ(Read("b{task=\"3\"}"), -1);
  EXPECT_EQ(source_->counts().left_out, 3u);
  EXPECT_EQ(source_->counts().dropped, 0u);
}

TEST_F(AppHistogram, CostsNothingWhereNothingCame) {
  Start();
  ClientProcess app(Environment());
  app.Do("many histogram 50");
  for (int i = 0; i < 3; ++i) {
    Read("");
    Take();
  }
  const size_t before = allocations;
  source_->Sample(now_ += kSecond);
  source_->Sample(now_ += kSecond);
  EXPECT_TRUE(source_->TakeMoments().empty());
  EXPECT_EQ(allocations, before);
}

TEST_F(AppHistogram, AProcessWithoutOnePaysNothing) {
#ifdef SONDE_TEST_MEMORY
  Start();
  ClientProcess app(Environment());
  app.Do("gauge g");
  const std::string answer = app.Do("many histogram 1");
  long had = 0, status = 0, kib = 0;
  ASSERT_EQ(sscanf(answer.c_str(), "%ld %ld %ld", &had, &status, &kib), 3) << answer;
  EXPECT_LE(kib, 256) << "one histogram in one thread";
#endif
}

}  // namespace
}  // namespace sonde::collect::client_histograms_test
