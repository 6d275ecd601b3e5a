// Thousands of random queries against a second, naive implementation, written from the rules in
// docs/queries.md alone.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "series/query/query.h"
#include "series/query/steps.h"

namespace sonde::series_query_reference_test {
namespace {

constexpr Nanos kStep = 600 * kSecond;  // so that a few points span several hours
constexpr Nanos kHour = 6 * kStep;

using Line = std::map<Nanos, double>;

// The whole hours that OpenTSDB reads for a range, and a last bucket that is not cut off.
TimeRange Read(const QuerySpec& spec) {
  if (!spec.downsample) return {spec.start / kHour * kHour, (spec.end / kHour + 1) * kHour - 1};
  const Nanos interval = spec.downsample->interval;
  if (interval == 0) return {spec.start, spec.end};
  const Nanos end = (spec.end / interval + 1) * interval;
  return {spec.start / interval * interval / kHour * kHour, (end + kHour - 1) / kHour * kHour - 1};
}

double Fold(Aggregator aggregator, std::vector<double> values) {
  std::erase_if(values, [](double v) { return std::isnan(v); });
  if (aggregator == Aggregator::kCount) return static_cast<double>(values.size());
  if (values.empty()) return std::nan("");
  if (const double share = PercentileOf(aggregator); share > 0) {
    std::sort(values.begin(), values.end());
    const double n = static_cast<double>(values.size());
    const double position = std::clamp(share * (n + 1), 1.0, n);
    const auto below = static_cast<size_t>(position) - 1;
    const size_t above = std::min(below + 1, values.size() - 1);
    const double part = position - std::floor(position);
    return values[below] * (1 - part) + values[above] * part;
  }
  double sum = 0;
  for (const double v : values) sum += v;
  switch (aggregator) {
    case Aggregator::kAvg:
      return sum / static_cast<double>(values.size());
    case Aggregator::kMin:
      return *std::min_element(values.begin(), values.end());
    case Aggregator::kMax:
      return *std::max_element(values.begin(), values.end());
    default:
      return sum;
  }
}

Line ReferenceDownsample(const Line& line, const Downsample& how, Nanos start, Nanos end) {
  const auto values_in = [&](Nanos from, Nanos to) {
    std::vector<double> values;
    for (const auto& [time, value] : line) {
      if (time >= from && time < to) values.push_back(value);
    }
    return values;
  };
  Line out;
  if (how.interval == 0) {
    const auto values = values_in(start, end);
    if (!values.empty()) out[start] = Fold(how.function, values);
    return out;
  }
  for (Nanos bucket = 0; bucket <= end; bucket += how.interval) {
    if (bucket < start) continue;
    const auto values = values_in(bucket, bucket + how.interval);
    if (!values.empty())
      out[bucket] = Fold(how.function, values);
    else if (how.fill == Downsample::Fill::kZero)
      out[bucket] = 0;
    else if (how.fill != Downsample::Fill::kNone)
      out[bucket] = std::nan("");
  }
  return line.empty() ? Line{} : out;
}

Line ReferenceRate(const Line& line, const RateOptions& how) {
  Line out;
  for (auto now = line.begin(); now != line.end(); ++now) {
    if (now == line.begin()) continue;
    const auto before = std::prev(now);
    const double seconds = static_cast<double>(now->first - before->first) / 1e9;
    double rate = (now->second - before->second) / seconds;
    if (how.counter && now->second < before->second) {
      if (how.drop_resets) continue;
      const double top = how.counter_max;
      rate = (top - before->second + now->second) / seconds;
      if (how.reset_value > 0 && rate > how.reset_value) rate = 0;
    }
    out[now->first] = rate;
  }
  return out;
}

// What a series counts for at a time; nothing beyond its ends.
std::optional<double> At(const Line& line, Nanos time, const QuerySpec& spec) {
  if (line.empty() || time < line.begin()->first || time > line.rbegin()->first) return {};
  const auto after = line.lower_bound(time);
  if (after->first == time) return after->second;
  const auto before = std::prev(after);
  if (spec.rate) return before->second;
  if (spec.aggregator == Aggregator::kCount) return 0;
  const double share =
      static_cast<double>(time - before->first) / static_cast<double>(after->first - before->first);
  return before->second + share * (after->second - before->second);
}

using Answers = std::map<std::string, Line>;  // by the value of the tag `group`

Answers Reference(const QuerySpec& spec, const std::vector<SeriesData>& series) {
  std::map<std::string, std::vector<Line>> groups;
  for (const SeriesData& s : series) {
    Line line;
    for (const Point& p : s.points) {
      const bool near = p.time >= Read(spec).first && p.time <= Read(spec).last;
      if (near && !std::isnan(p.value)) line[p.time] = p.value;
    }
    if (spec.downsample) {
      line = ReferenceDownsample(line, *spec.downsample, Read(spec).first, Read(spec).last);
    }
    if (spec.rate) line = ReferenceRate(line, spec.rate_options);
    std::string group = spec.filters.empty() ? "" : *s.series.tags.Find("group");
    if (spec.aggregator == Aggregator::kNone) group = SeriesName("", s.series.tags);
    if (!line.empty()) groups[group].push_back(line);
  }
  Answers answers;
  for (const auto& [group, lines] : groups) {
    std::set<Nanos> times;
    for (const Line& line : lines) {
      for (const auto& point : line) {
        if (point.first >= spec.start && point.first <= spec.end) times.insert(point.first);
      }
    }
    for (const Nanos time : times) {
      std::vector<double> values;
      for (const Line& line : lines) {
        if (const auto value = At(line, time, spec)) values.push_back(*value);
      }
      answers[group][time] =
          spec.aggregator == Aggregator::kNone ? values[0] : Fold(spec.aggregator, values);
    }
  }
  return answers;
}

std::vector<SeriesData> RandomSeries(std::mt19937_64& random) {
  std::vector<SeriesData> all;
  const size_t count = random() % 6;
  for (size_t i = 0; i < count; ++i) {
    SeriesData& data = all.emplace_back();
    data.series.metric.name = "m";
    data.series.tags = {{"host", "n" + std::to_string(i)}, {"group", random() % 2 ? "x" : "y"}};
    std::set<Nanos> times;
    for (uint64_t n = random() % 12; n > 0; --n) {
      times.insert(static_cast<Nanos>(random() % 40) * kStep / (random() % 2 + 1));
    }
    for (const Nanos time : times) {
      const double value = static_cast<double>(random() % 2000) / 8 - 100;
      data.points.push_back({time, random() % 12 == 0 ? std::nan("") : value});
    }
  }
  return all;
}

Aggregator RandomAggregator(std::mt19937_64& random) {
  static constexpr Aggregator kKnown[] = {
      Aggregator::kSum,  Aggregator::kAvg, Aggregator::kMin, Aggregator::kMax, Aggregator::kCount,
      Aggregator::kNone, Aggregator::kP5,  Aggregator::kP50, Aggregator::kP95, Aggregator::kP999};
  return kKnown[random() % std::size(kKnown)];
}

// Any but none.
Aggregator RandomFunction(std::mt19937_64& random) {
  const Aggregator function = RandomAggregator(random);
  return function == Aggregator::kNone ? Aggregator::kP75 : function;
}

QuerySpec RandomSpec(std::mt19937_64& random) {
  QuerySpec spec;
  spec.metric = "m";
  spec.aggregator = RandomAggregator(random);
  spec.start = static_cast<Nanos>(random() % 30) * kStep / 2;
  spec.end = spec.start + static_cast<Nanos>(1 + random() % 60) * kStep / 2;
  if (random() % 3 != 0) {
    Downsample& d = spec.downsample.emplace();
    d.interval = static_cast<Nanos>(random() % 5) * kStep;
    d.function = RandomFunction(random);
    d.fill = static_cast<Downsample::Fill>(random() % 4);
  }
  spec.rate = random() % 3 == 0;
  spec.rate_options.counter = random() % 2 == 0;
  spec.rate_options.counter_max = random() % 2 == 0 ? 0 : 500;
  spec.rate_options.reset_value = random() % 2 == 0 ? 0 : 0.5;
  spec.rate_options.drop_resets = random() % 2 == 0;
  if (random() % 2 == 0) spec.filters = {{TagFilter::Type::kWildcard, "group", "*", true}};
  return spec;
}

Answers ByGroup(const QuerySpec& spec, const std::vector<QueryResult>& results) {
  Answers answers;
  for (const QueryResult& r : results) {
    std::string group = spec.filters.empty() ? "" : *r.tags.Find("group");
    if (spec.aggregator == Aggregator::kNone) group = SeriesName("", r.tags);
    for (const Point& p : r.points) answers[group][p.time] = p.value;
  }
  return answers;
}

void ExpectSame(const Answers& got, const Answers& expected) {
  ASSERT_EQ(got.size(), expected.size());
  for (const auto& [group, line] : expected) {
    ASSERT_TRUE(got.contains(group)) << group;
    const Line& other = got.at(group);
    ASSERT_EQ(other.size(), line.size()) << group;
    for (const auto& [time, value] : line) {
      ASSERT_TRUE(other.contains(time)) << group << " at " << time;
      const double v = other.at(time);
      ASSERT_EQ(std::isnan(v), std::isnan(value)) << group << " at " << time;
      if (!std::isnan(v)) {
        ASSERT_NEAR(v, value, 1e-9 * (1 + std::fabs(value))) << group << time;
      }
    }
  }
}

TEST(QueryReference, RandomQueriesAgree) {
  std::mt19937_64 random(7);
  int answered = 0;
  for (int round = 0; round < 20'000; ++round) {
    const std::vector<SeriesData> series = RandomSeries(random);
    const QuerySpec spec = RandomSpec(random);
    const auto results = Evaluate(spec, series);
    ASSERT_TRUE(results.ok()) << results.status().message();
    ExpectSame(ByGroup(spec, *results), Reference(spec, series));
    ASSERT_FALSE(HasFatalFailure()) << "round " << round;
    answered += results->empty() ? 0 : 1;
  }
  EXPECT_GT(answered, 5'000);
}

TEST(QueryReference, TheOrderOfTheInputDoesNotMatter) {
  std::mt19937_64 random(8);
  for (int round = 0; round < 500; ++round) {
    std::vector<SeriesData> series = RandomSeries(random);
    const QuerySpec spec = RandomSpec(random);
    const auto first = Evaluate(spec, series);
    std::shuffle(series.begin(), series.end(), random);
    for (SeriesData& s : series) std::shuffle(s.points.begin(), s.points.end(), random);
    const auto second = Evaluate(spec, series);
    ASSERT_EQ(first->size(), second->size());
    for (size_t i = 0; i < first->size(); ++i) {
      const QueryResult& a = (*first)[i];
      const QueryResult& b = (*second)[i];
      ASSERT_EQ(a.tags, b.tags);
      ASSERT_EQ(a.aggregate_tags, b.aggregate_tags);
      ASSERT_EQ(a.points.size(), b.points.size());
      for (size_t p = 0; p < a.points.size(); ++p) {
        ASSERT_EQ(std::bit_cast<uint64_t>(a.points[p].value),
                  std::bit_cast<uint64_t>(b.points[p].value));
      }
    }
  }
}

// Steps that are asked one by one give what all of them give together.
TEST(QueryReference, SeriesThatShareNoResultMayBeEvaluatedByThemselves) {
  std::mt19937_64 random(10);
  int apart = 0;
  for (int round = 0; round < 3'000; ++round) {
    std::vector<SeriesData> series = RandomSeries(random);
    QuerySpec spec = RandomSpec(random);
    for (SeriesData& s : series) s.series.tags.Set("job", std::to_string(random() % 3));
    spec.filters.push_back({TagFilter::Type::kWildcard, "job", "*", random() % 4 != 0});
    if (!query_steps::IsSeparateBy(spec, "job")) {
      EXPECT_NE(spec.aggregator, Aggregator::kNone);
      EXPECT_FALSE(spec.filters.back().group_by);
      continue;
    }
    std::vector<QueryResult> parts;
    for (const char* job : {"2", "0", "1"}) {
      std::vector<SeriesData> own = series;
      std::erase_if(own, [&](const SeriesData& s) { return *s.series.tags.Find("job") != job; });
      const auto part = Evaluate(spec, std::move(own));
      ASSERT_TRUE(part.ok()) << part.status().message();
      parts.insert(parts.end(), part->begin(), part->end());
    }
    query_steps::SortResults(spec, parts);
    const auto whole = Evaluate(spec, series);
    ASSERT_EQ(parts.size(), whole->size());
    for (size_t i = 0; i < parts.size(); ++i) {
      ASSERT_EQ(parts[i].tags, (*whole)[i].tags);
      ASSERT_EQ(parts[i].aggregate_tags, (*whole)[i].aggregate_tags);
      ASSERT_EQ(parts[i].points.size(), (*whole)[i].points.size());
      for (size_t p = 0; p < parts[i].points.size(); ++p) {
        ASSERT_EQ(parts[i].points[p].time, (*whole)[i].points[p].time);
        ASSERT_EQ(std::bit_cast<uint64_t>(parts[i].points[p].value),
                  std::bit_cast<uint64_t>((*whole)[i].points[p].value));
      }
    }
    apart += whole->size() > 1 ? 1 : 0;
  }
  EXPECT_GT(apart, 500);
}

// What DataRange leaves out changes nothing: a node may read that much and no more.
TEST(QueryReference, TheDataRangeIsEnough) {
  std::mt19937_64 random(9);
  for (int round = 0; round < 2'000; ++round) {
    const std::vector<SeriesData> series = RandomSeries(random);
    const QuerySpec spec = RandomSpec(random);
    std::vector<SeriesData> cut = series;
    const TimeRange range = DataRange(spec);
    for (SeriesData& s : cut) {
      std::erase_if(s.points,
                    [&](const Point& p) { return p.time < range.first || p.time > range.last; });
    }
    const auto whole = Evaluate(spec, series);
    const auto part = Evaluate(spec, cut);
    ExpectSame(ByGroup(spec, *part), ByGroup(spec, *whole));
    ASSERT_FALSE(HasFatalFailure()) << "round " << round;
  }
}

}  // namespace
}  // namespace sonde::series_query_reference_test
