// Answers from reduced series are those of the raw ones, for every query that AnswersFromReduced
// lets through.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "series/query/group_values.h"
#include "series/query/query.h"
#include "series/query/steps.h"
#include "series/store/reduced.h"

namespace sonde::series_reduced_query_test {
namespace {

struct Step {
  std::vector<SeriesData> raw;
  std::vector<SeriesData> reduced;
};

// One device of every node: at each tick either all nodes have a value or none has.
void AddDevice(Step& step, const std::string& device, size_t nodes, const std::vector<Nanos>& ticks,
               std::mt19937_64& random) {
  const auto series = [&](Tags tags) {
    SeriesData data;
    data.series.metric.name = "m";
    tags.Set("device", device);
    data.series.tags = std::move(tags);
    return data;
  };
  const size_t first_raw = step.raw.size();
  const size_t first_reduced = step.reduced.size();
  for (size_t n = 0; n < nodes; ++n) {
    step.raw.push_back(series({{"host", "n" + std::to_string(n)}}));
  }
  for (const auto stat : kStatNames) {
    step.reduced.push_back(series({{"stat", std::string(stat)}}));
  }
  for (const Nanos tick : ticks) {
    Reduced reduced;
    for (size_t n = 0; n < nodes; ++n) {
      const double value = static_cast<double>(random() % 1000) / 4;
      step.raw[first_raw + n].points.push_back({tick, value});
      reduced.Add(value, {static_cast<uint32_t>(n), Owner::kNobody});
    }
    double columns[kStatColumns];
    ToColumns(reduced, columns);
    for (size_t c = 0; c < kStatColumns; ++c) {
      step.reduced[first_reduced + c].points.push_back({tick, columns[c]});
    }
  }
}

// A device that appears later, ends earlier or pauses is interpolated by sum, avg and count; for
// the extremes that is not exact, so for them only whole ticks are missing.
Step RandomStep(std::mt19937_64& random, bool devices_pause) {
  std::vector<Nanos> ticks;
  for (Nanos second = 10; second < 90; ++second) {
    if (random() % 4 != 0 && !(second > 40 && second < 56)) ticks.push_back(second * kSecond);
  }
  Step step;
  const size_t devices = 1 + random() % 3;
  for (size_t d = 0; d < devices; ++d) {
    std::vector<Nanos> own(ticks.begin() + static_cast<ptrdiff_t>(random() % 20),
                           ticks.end() - static_cast<ptrdiff_t>(random() % 20));
    if (devices_pause) std::erase_if(own, [&](Nanos) { return random() % 5 == 0; });
    AddDevice(step, "d" + std::to_string(d), 1 + random() % 4, own, random);
  }
  return step;
}

// Every query there is, as far as the steps differ.
std::vector<QuerySpec> AllSpecs() {
  std::vector<std::optional<Downsample>> downsamples = {std::nullopt};
  for (int function = 0; function < 5; ++function) {
    for (const Nanos interval : {Nanos{0}, 7 * kSecond}) {
      for (int fill = 0; fill < 4; ++fill) {
        downsamples.push_back(Downsample{interval, static_cast<Aggregator>(function),
                                         static_cast<Downsample::Fill>(fill)});
      }
    }
  }
  std::vector<QuerySpec> specs;
  for (int aggregator = 0; aggregator < 6; ++aggregator) {
    for (const auto& downsample : downsamples) {
      for (const bool rate : {false, true}) {
        for (const bool group : {false, true}) {
          QuerySpec& spec = specs.emplace_back();
          spec.metric = "m";
          spec.aggregator = static_cast<Aggregator>(aggregator);
          spec.downsample = downsample;
          spec.rate = rate;
          if (group) spec.filters = {{TagFilter::Type::kWildcard, "device", "*", true}};
          spec.start = 15 * kSecond;
          spec.end = 83 * kSecond;
        }
      }
    }
  }
  return specs;
}

void ExpectSame(const std::vector<QueryResult>& got, const std::vector<QueryResult>& expected) {
  ASSERT_EQ(got.size(), expected.size());
  for (size_t i = 0; i < got.size(); ++i) {
    Tags tags = expected[i].tags;
    tags.Erase("host");
    EXPECT_EQ(got[i].tags, tags);
    ASSERT_EQ(got[i].points.size(), expected[i].points.size());
    for (size_t p = 0; p < got[i].points.size(); ++p) {
      const Point& a = got[i].points[p];
      const Point& b = expected[i].points[p];
      ASSERT_EQ(a.time, b.time);
      ASSERT_EQ(std::isnan(a.value), std::isnan(b.value)) << "at " << a.time / kSecond;
      if (!std::isnan(a.value)) {
        ASSERT_NEAR(a.value, b.value, 1e-8 * (1 + std::fabs(b.value)));
      }
    }
  }
}

TEST(ReducedQuery, EveryQueryLetThroughIsExact) {
  std::mt19937_64 random(11);
  const std::vector<QuerySpec> specs = AllSpecs();
  size_t answered = 0;
  for (int round = 0; round < 30; ++round) {
    for (const bool devices_pause : {false, true}) {
      const Step step = RandomStep(random, devices_pause);
      for (const QuerySpec& spec : specs) {
        const bool extreme =
            spec.aggregator == Aggregator::kMin || spec.aggregator == Aggregator::kMax;
        if (!AnswersFromReduced(spec) || (extreme && devices_pause)) continue;
        const auto got = EvaluateReduced(spec, step.reduced);
        const auto expected = Evaluate(spec, step.raw);
        ASSERT_TRUE(got.ok()) << got.status().message();
        ExpectSame(*got, *expected);
        ASSERT_FALSE(HasFatalFailure())
            << "round " << round << ", " << ToString(spec.aggregator) << ", rate " << spec.rate
            << ", downsampled by "
            << (spec.downsample ? ToString(spec.downsample->function) : "nothing") << ", fill "
            << (spec.downsample ? static_cast<int>(spec.downsample->fill) : -1);
        ++answered;
      }
    }
  }
  EXPECT_GT(answered, 5'000u);
}

QuerySpec Ask(const std::string& aggregator, const std::string& downsample, bool rate = false) {
  QuerySpec spec;
  spec.metric = "m";
  spec.aggregator = *ParseAggregator(aggregator);
  if (!downsample.empty()) spec.downsample = *ParseDownsample(downsample);
  spec.rate = rate;
  spec.start = 1;
  spec.end = 2;
  return spec;
}

TEST(ReducedQuery, WhatADashboardAsksIsAnsweredAtTheHead) {
  EXPECT_TRUE(AnswersFromReduced(Ask("sum", "")));
  EXPECT_TRUE(AnswersFromReduced(Ask("sum", "1m-avg", true)));
  EXPECT_TRUE(AnswersFromReduced(Ask("avg", "1m-avg-nan")));
  EXPECT_TRUE(AnswersFromReduced(Ask("max", "1m-max")));
  EXPECT_TRUE(AnswersFromReduced(Ask("count", "1m-avg")));
}

TEST(ReducedQuery, WhatNeedsTheNodesIsLeftToThem) {
  EXPECT_FALSE(AnswersFromReduced(Ask("none", "")));
  EXPECT_FALSE(AnswersFromReduced(Ask("sum", "1m-max")));
  EXPECT_FALSE(AnswersFromReduced(Ask("max", "1m-avg")));
  EXPECT_FALSE(AnswersFromReduced(Ask("max", "", true)));
  EXPECT_FALSE(AnswersFromReduced(Ask("avg", "1m-avg-zero")));
  QuerySpec counter = Ask("sum", "", true);
  counter.rate_options.counter = true;
  EXPECT_FALSE(AnswersFromReduced(counter));
  for (const char* key : {"host", "task", "stat"}) {
    QuerySpec filtered = Ask("sum", "");
    filtered.filters = {{TagFilter::Type::kWildcard, key, "*", true}};
    EXPECT_FALSE(AnswersFromReduced(filtered)) << key;
    EXPECT_EQ(EvaluateReduced(filtered, {}).status().code(), Code::kInvalid);
  }
  QuerySpec exact = Ask("sum", "");
  exact.explicit_tags = true;
  EXPECT_FALSE(AnswersFromReduced(exact));
}

// --- Percentiles that are recorded ---

// A gauge and a counter of many tasks, as each has them and as they are recorded.
Step SpreadStep(std::mt19937_64& random, bool counter, size_t tasks) {
  Step step;
  Series base;
  base.metric.name = "m";
  base.metric.spread = true;
  if (counter) base.metric.type = MetricType::kCounter;
  const Schema::Ptr schema = ReducedSchema({base});
  for (const Series& series : schema->series()) step.reduced.push_back({series, {}});
  for (size_t t = 0; t < tasks; ++t) {
    Series series = base;
    series.tags.Set("task", std::to_string(t));
    step.raw.push_back({series, {}});
  }
  std::vector<double> row(schema->size());
  for (Nanos second = 10; second < 90; ++second) {
    if (random() % 5 == 0) continue;
    Reduced reduced;
    QuantileSketch sketch;
    for (SeriesData& task : step.raw) {
      double value = std::exp(static_cast<double>(random() % 1000) / 200);
      if (counter && !task.points.empty()) {
        const Point& before = task.points.back();
        const double seconds = static_cast<double>(second * kSecond - before.time) / kSecond;
        sketch.Add(value / seconds);
        value += before.value;
      } else if (!counter) {
        sketch.Add(value);
      }
      task.points.push_back({second * kSecond, value});
      reduced.Add(value, {});
    }
    ToColumns({base}, std::vector<Reduced>{reduced}, std::vector<Spread>{SpreadOf(sketch)}, row);
    for (size_t c = 0; c < row.size(); ++c) {
      if (!std::isnan(row[c])) step.reduced[c].points.push_back({second * kSecond, row[c]});
    }
  }
  return step;
}

QuerySpec AskSpread(const std::string& aggregator, bool counter, bool downsampled) {
  QuerySpec spec = Ask(aggregator, downsampled ? "1s-avg" : "", counter);
  spec.start = 15 * kSecond;
  spec.end = 83 * kSecond;
  return spec;
}

TEST(ReducedQuery, RecordedPercentilesAreThoseOfTheNodesWithinOnePercent) {
  std::mt19937_64 random(5);
  for (const bool counter : {false, true}) {
    for (const size_t tasks : {1u, 3u, 40u, 500u}) {
      const Step step = SpreadStep(random, counter, tasks);
      for (const char* aggregator : {"p5", "p50", "p95", "p99"}) {
        for (const bool downsampled : {false, true}) {
          const QuerySpec spec = AskSpread(aggregator, counter, downsampled);
          ASSERT_TRUE(SpreadAnswers(spec, kSecond));
          std::vector<SeriesData> needed;
          for (const SeriesData& data : step.reduced) {
            if (ReducedNeeds(spec, data.series)) needed.push_back(data);
          }
          EXPECT_EQ(needed.size(), 1u);
          const auto got = EvaluateReduced(spec, needed);
          const auto expected = Evaluate(spec, step.raw);
          ASSERT_TRUE(got.ok()) << got.status().message();
          ASSERT_EQ(got->size(), 1u);
          const std::vector<Point>& points = got->front().points;
          ASSERT_EQ(points.size(), expected->front().points.size());
          EXPECT_GT(points.size(), 30u);
          for (size_t i = 0; i < points.size(); ++i) {
            const Point& is = points[i];
            const Point& should = expected->front().points[i];
            ASSERT_EQ(is.time, should.time);
            // Both may be a sketch's.
            ASSERT_NEAR(is.value, should.value, 0.0157 * should.value) << aggregator;
          }
        }
      }
    }
  }
}

TEST(ReducedQuery, OfPercentilesOnlyWhatIsRecordedIsAnsweredAtTheHead) {
  EXPECT_TRUE(SpreadAnswers(Ask("p95", ""), kSecond));
  EXPECT_TRUE(SpreadAnswers(Ask("p95", "1s-avg"), kSecond));
  EXPECT_FALSE(SpreadAnswers(Ask("p95", "2s-avg"), kSecond)) << "not of one tick";
  EXPECT_FALSE(SpreadAnswers(Ask("p95", "1s-count"), kSecond));
  EXPECT_FALSE(SpreadAnswers(Ask("p95", "0all-avg"), kSecond));
  EXPECT_FALSE(SpreadAnswers(Ask("p75", ""), kSecond));
  EXPECT_FALSE(SpreadAnswers(Ask("sum", ""), kSecond));
  QuerySpec by_host = Ask("p95", "");
  by_host.filters = {{TagFilter::Type::kWildcard, "host", "*", true}};
  EXPECT_FALSE(SpreadAnswers(by_host, kSecond));
  // A counter's values are not recorded, nor a gauge's rates.
  std::mt19937_64 random(6);
  const auto nothing =
      EvaluateReduced(AskSpread("p95", false, false), SpreadStep(random, true, 3).reduced);
  EXPECT_TRUE(nothing.ok() && nothing->empty());
  // Percentiles of two series say nothing of both together.
  Step two = SpreadStep(random, false, 3);
  for (SeriesData data : std::vector<SeriesData>(two.reduced)) {
    data.series.tags.Set("device", "x");
    two.reduced.push_back(data);
  }
  EXPECT_EQ(EvaluateReduced(AskSpread("p95", false, false), two.reduced).status().code(),
            Code::kUnsupported);
}

// What takes no sum of one series gives the bits of one that does, which nodes give.
TEST(QuerySteps, ASeriesAloneIsWhatAGroupOfItWouldBe) {
  const std::vector<double> values = {-0.0, 0.0, 1.5, HUGE_VAL, -HUGE_VAL, -1e308, std::nan(""), 3};
  std::vector<Point> points;
  for (size_t i = 0; i < values.size(); ++i) {
    points.push_back({static_cast<Nanos>(i + 1) * kSecond, values[i]});
  }
  for (const Aggregator aggregator :
       {Aggregator::kSum, Aggregator::kZimsum, Aggregator::kPfsum, Aggregator::kMin,
        Aggregator::kMax, Aggregator::kMimmin, Aggregator::kMimmax}) {
    const auto alone = query_steps::Aggregate({points}, aggregator, query_steps::Between::kLine,
                                              kSecond, 7 * kSecond);
    ASSERT_EQ(alone.size(), 7u) << ToString(aggregator);
    for (size_t i = 0; i < alone.size(); ++i) {
      GroupValues group(aggregator, 1);
      group.Add(0, values[i]);
      EXPECT_EQ(alone[i].time, points[i].time);
      EXPECT_EQ(std::bit_cast<uint64_t>(alone[i].value), std::bit_cast<uint64_t>(group.Get(0)))
          << ToString(aggregator) << " of " << values[i];
    }
  }
}

}  // namespace
}  // namespace sonde::series_reduced_query_test
