// What a tree of nodes answers is what one place answers that has all series, bit for bit: random
// data, queries and trees.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "series/query/part.h"
#include "series/query/query.h"
#include "series/query/steps.h"

namespace sonde::series_query_part_test {
namespace {

constexpr Nanos kPeriod = 10 * kSecond;
constexpr Nanos kBegin = 3500 * kSecond;  // an hour of the epoch ends among the data

constexpr uint64_t kAggregators = static_cast<uint64_t>(kLastAggregator) + 1;

using Random = std::mt19937_64;
using Nodes = std::vector<std::vector<SeriesData>>;

double RandomValue(Random& random) {
  switch (random() % 40) {
    case 0:
      return std::nan("");
    case 1:
      return random() % 2 == 0 ? 0.0 : -0.0;
    case 2:
      return std::ldexp(static_cast<double>(random() >> 11), static_cast<int>(random() % 900));
    case 3:
      return std::numeric_limits<double>::infinity() * (random() % 2 == 0 ? 1 : -1);
    case 4:
      return -1e308;
    default:
      // Thirds and tenths, which no sum of doubles keeps.
      return (static_cast<double>(random() % 100'000) - 20'000) / (random() % 2 == 0 ? 3 : 10);
  }
}

// A series' points: some of the ticks from its first to its last, and now and then one beside them.
std::vector<Point> RandomPoints(Random& random, bool beside_ticks) {
  std::vector<Point> points;
  const Nanos first = kBegin + static_cast<Nanos>(random() % 12) * kPeriod;
  const Nanos last = first + static_cast<Nanos>(random() % 40) * kPeriod;
  const uint64_t missing = random() % 3 == 0 ? 4 : 50;
  const uint64_t slow = random() % 5 == 0 ? 6 : 1;
  for (Nanos t = first; t <= last; t += kPeriod) {
    if (beside_ticks && random() % 25 == 0) {
      points.push_back({t - static_cast<Nanos>(1 + random() % 9) * kSecond, RandomValue(random)});
    }
    if (static_cast<uint64_t>(t / kPeriod) % slow == 0 && random() % missing != 0) {
      points.push_back({t, RandomValue(random)});
    }
  }
  return points;
}

// A counter never falls.
void LetCount(std::vector<Point>& points) {
  double counted = 0;
  for (Point& p : points) {
    const double more = std::fabs(p.value);
    if (more < 1e6) counted += more;
    p.value = counted;
  }
}

std::vector<SeriesData> RandomNode(Random& random, size_t index, bool counts = false) {
  std::vector<SeriesData> all;
  const bool beside_ticks = random() % 3 == 0;
  for (uint64_t n = random() % 5; n > 0; --n) {
    SeriesData& data = all.emplace_back();
    data.series.metric.name = "m";
    data.series.tags.Set("host", "n" + std::to_string(index));
    if (random() % 3 != 0) data.series.tags.Set("device", "d" + std::to_string(random() % 3));
    if (random() % 3 != 0) data.series.tags.Set("task", std::to_string(random() % 4));
    if (random() % 8 == 0) data.series.tags.Set("rare", "x");
    data.points = RandomPoints(random, beside_ticks);
    if (!counts) continue;
    data.series.metric.type = MetricType::kCounter;
    LetCount(data.points);
  }
  return all;
}

Aggregator RandomFunction(Random& random) {
  const auto function = static_cast<Aggregator>(random() % kAggregators);
  return function == Aggregator::kNone ? Aggregator::kAvg : function;
}

TagFilter RandomFilter(Random& random) {
  static const std::vector<std::pair<std::string, std::string>> kLiterals = {
      {"host", "n1|n2|n5"}, {"device", "d0|d1"}, {"task", "0|1|2"}};
  const auto& [key, some] = kLiterals[random() % kLiterals.size()];
  const bool group_by = random() % 2 == 0;
  switch (random() % 4) {
    case 0:
      return {TagFilter::Type::kLiteralOr, key, some, group_by};
    case 1:
      return {TagFilter::Type::kNotLiteralOr, key, some, group_by};
    case 2:
      return {TagFilter::Type::kRegexp, key, "[0-2]", group_by};
    default:
      return {TagFilter::Type::kWildcard, key, "*", group_by};
  }
}

QuerySpec RandomSpec(Random& random) {
  QuerySpec spec;
  spec.metric = "m";
  spec.aggregator = static_cast<Aggregator>(random() % kAggregators);
  spec.start = kBegin - 3 * kPeriod + static_cast<Nanos>(random() % 400) * kSecond;
  spec.end = spec.start + static_cast<Nanos>(1 + random() % 500) * kSecond;
  if (random() % 2 == 0) {
    static constexpr Nanos kIntervals[] = {0, 7 * kSecond, 10 * kSecond, 30 * kSecond,
                                           60 * kSecond};
    spec.downsample =
        Downsample{kIntervals[random() % std::size(kIntervals)], RandomFunction(random),
                   static_cast<Downsample::Fill>(random() % 4)};
    if (random() % 4 == 0) {
      const auto calendar = std::make_shared<Calendar>();
      *calendar = {static_cast<int64_t>(1 + random() % 50), Calendar::Unit::kSeconds, "", {}};
      spec.downsample->interval = calendar->count * kSecond;
      spec.downsample->calendar = calendar;
      EXPECT_TRUE(ResolveCalendar({}, "", spec.start, spec.end, *spec.downsample).ok());
    }
  }
  spec.rate = random() % 3 == 0;
  spec.rate_options.counter = random() % 2 == 0;
  spec.rate_options.counter_max = random() % 2 == 0 ? 0 : 5000;
  spec.rate_options.reset_value = random() % 2 == 0 ? 0 : 100;
  spec.rate_options.drop_resets = random() % 2 == 0;
  for (uint64_t n = random() % 3; n > 0; --n) spec.filters.push_back(RandomFilter(random));
  spec.explicit_tags = random() % 6 == 0;
  return spec;
}

// --- The tree ---

// What a node reads: of counters that are held also their last point before.
void KeepRead(const QuerySpec& spec, SeriesData& data) {
  const TimeRange range = DataRange(spec);
  std::optional<Point> before;
  std::erase_if(data.points, [&](const Point& p) {
    if (p.time < range.first && !std::isnan(p.value)) before = p;
    return p.time < range.first || p.time > range.last;
  });
  const bool holds = IsCounting(data.series.metric.type) && query_steps::HoldsCounters(spec);
  if (holds && before) data.points.insert(data.points.begin(), *before);
}

// What one node has to say, as its parent gets it.
std::string Leaf(const QuerySpec& spec, const QueryGrid& grid,
                 const std::vector<SeriesData>& node) {
  const Result<SeriesFilter> filter = SeriesFilter::Make(spec);
  std::vector<SeriesData> matching;
  for (SeriesData data : node) {
    if (!filter->Matches(data.series)) continue;
    KeepRead(spec, data);
    matching.push_back(std::move(data));
  }
  const Result<QueryPart> part = EvaluatePart(spec, std::move(matching), &grid);
  EXPECT_TRUE(part.ok()) << part.status().message();
  return *EncodePart(*part);
}

// Any number of them at a time, in any order, until one is left.
QueryPart MergeAll(const QuerySpec& spec, const QueryGrid& grid, std::vector<std::string> parts,
                   Random& random) {
  while (true) {
    std::shuffle(parts.begin(), parts.end(), random);
    const size_t children = std::min<size_t>(parts.size(), 1 + random() % 4);
    QueryPart merged = EmptyPart(spec);
    for (size_t i = 0; i < children; ++i) {
      Result<QueryPart> part = DecodePart(spec, parts.back());
      EXPECT_TRUE(part.ok()) << part.status().message();
      parts.pop_back();
      EXPECT_TRUE(MergePart(spec, grid, *std::move(part), merged).ok());
    }
    if (parts.empty()) return merged;
    parts.push_back(*EncodePart(merged));
  }
}

struct Asked {
  std::vector<QueryResult> results;
  int rounds = 0;
};

Asked AskTree(const QuerySpec& spec, const Nodes& nodes, QueryGrid grid, Random& random) {
  for (int round = 1;; ++round) {
    std::vector<std::string> parts;
    for (const auto& node : nodes) parts.push_back(Leaf(spec, grid, node));
    const QueryPart merged = MergeAll(spec, grid, std::move(parts), random);
    std::vector<Nanos> odd = OddTimes(spec, merged, grid);
    if (odd.empty()) return {FinishPart(spec, merged), round};
    grid.times.insert(grid.times.end(), odd.begin(), odd.end());
    std::sort(grid.times.begin(), grid.times.end());
  }
}

void ExpectSame(const std::vector<QueryResult>& got, const std::vector<QueryResult>& expected) {
  ASSERT_EQ(got.size(), expected.size());
  for (size_t i = 0; i < got.size(); ++i) {
    ASSERT_EQ(got[i].metric, expected[i].metric);
    ASSERT_EQ(got[i].tags, expected[i].tags);
    ASSERT_EQ(got[i].aggregate_tags, expected[i].aggregate_tags);
    ASSERT_EQ(got[i].points.size(), expected[i].points.size());
    for (size_t p = 0; p < got[i].points.size(); ++p) {
      const Point& a = got[i].points[p];
      const Point& b = expected[i].points[p];
      ASSERT_EQ(a.time, b.time);
      ASSERT_EQ(std::isnan(a.value), std::isnan(b.value)) << "at " << a.time;
      if (std::isnan(a.value)) continue;
      ASSERT_EQ(std::bit_cast<uint64_t>(a.value), std::bit_cast<uint64_t>(b.value))
          << "at " << a.time << ": " << a.value << ", expected " << b.value;
    }
  }
}

TEST(QueryPart, ATreeAnswersWhatOnePlaceAnswers) {
  Random random(21);
  int answered = 0, merged = 0;
  for (int round = 0; round < 30'000; ++round) {
    Nodes nodes;
    const bool counts = random() % 3 == 0;
    for (uint64_t n = 1 + random() % 9; n > 0; --n) nodes.push_back(RandomNode(random, n, counts));
    // Some nodes answer late or never: what is left is answered as if it were all.
    std::erase_if(nodes, [&](const auto&) { return random() % 10 == 0; });
    std::vector<SeriesData> all;
    for (const auto& node : nodes) all.insert(all.end(), node.begin(), node.end());
    std::shuffle(all.begin(), all.end(), random);

    const QuerySpec spec = RandomSpec(random);
    // Also without knowing the ticks, when every time is found by asking twice.
    const QueryGrid grid{random() % 4 == 0 ? 0 : kPeriod, {}};
    const Result<std::vector<QueryResult>> expected = Evaluate(spec, all);
    ASSERT_TRUE(expected.ok());
    const Asked got = AskTree(spec, nodes, grid, random);
    ExpectSame(got.results, *expected);
    ASSERT_FALSE(HasFatalFailure()) << "round " << round;
    ASSERT_LE(got.rounds, 2) << "round " << round;
    answered += expected->empty() ? 0 : 1;
    merged += expected->empty() || !GroupsSpanNodes(spec) ? 0 : 1;
  }
  EXPECT_GT(answered, 10'000);
  EXPECT_GT(merged, 4'000);
}

// Times that all have are found in one round: ticks, buckets, and hosts of their own.
TEST(QueryPart, OneRoundIsEnoughForPointsOnTicks) {
  Random random(22);
  for (int round = 0; round < 500; ++round) {
    Nodes nodes;
    for (size_t n = 0; n < 4; ++n) nodes.push_back(RandomNode(random, n));
    for (auto& node : nodes) {
      for (SeriesData& data : node) {
        std::erase_if(data.points, [](const Point& p) { return p.time % kPeriod != 0; });
      }
    }
    ASSERT_EQ(AskTree(RandomSpec(random), nodes, {kPeriod, {}}, random).rounds, 1);
  }
}

// --- Bytes and bounds ---

QuerySpec HourlySum() {
  QuerySpec spec;
  spec.metric = "m";
  spec.start = 0;
  spec.end = 3600 * kSecond;
  return spec;
}

SeriesData Line(const std::string& host, size_t points, Nanos step, double value) {
  SeriesData data;
  data.series.metric.name = "m";
  data.series.tags = {{"host", host}};
  for (size_t i = 0; i < points; ++i) {
    data.points.push_back(
        {static_cast<Nanos>(i) * step, std::sqrt(value + static_cast<double>(i))});
  }
  return data;
}

TEST(QueryPart, CutAndChangedBytesAreRefusedOrRead) {
  QuerySpec spec = HourlySum();
  spec.filters = {{TagFilter::Type::kWildcard, "host", "*", true}};
  const QueryGrid grid{kSecond, {}};
  const auto part = EvaluatePart(spec, {Line("a", 5, kSecond, 1), Line("b", 3, kSecond, 2)}, &grid);
  const std::string bytes = *EncodePart(*part);
  ASSERT_TRUE(DecodePart(spec, bytes).ok());
  EXPECT_FALSE(DecodePart(spec, bytes + "x").ok());
  for (size_t n = 0; n < bytes.size(); ++n) {
    EXPECT_FALSE(DecodePart(spec, bytes.substr(0, n)).ok()) << n;
    for (int bit = 0; bit < 8; ++bit) {
      std::string changed = bytes;
      changed[n] = static_cast<char>(changed[n] ^ (1 << bit));
      const auto read = DecodePart(spec, changed);
      if (read.ok()) {
        EXPECT_LE(read->Points(), kMaxPartPoints);
      }
    }
  }
}

TEST(QueryPart, GroupsOutOfOrderOrTwiceAreRefused) {
  QuerySpec spec = HourlySum();
  spec.filters = {{TagFilter::Type::kWildcard, "host", "*", true}};
  const QueryGrid grid{kSecond, {}};
  auto part = EvaluatePart(spec, {Line("a", 5, kSecond, 1), Line("b", 3, kSecond, 2)}, &grid);
  std::swap(part->groups[0], part->groups[1]);
  EXPECT_FALSE(DecodePart(spec, *EncodePart(*part)).ok());
  part->groups[0] = part->groups[1];
  EXPECT_FALSE(DecodePart(spec, *EncodePart(*part)).ok());
  // Alone, series with equal tags are as many as there are.
  spec.aggregator = Aggregator::kNone;
  part = EvaluatePart(spec, {Line("a", 5, kSecond, 1), Line("a", 3, kSecond, 2)}, &grid);
  const auto back = DecodePart(spec, *EncodePart(*part));
  ASSERT_TRUE(back.ok());
  EXPECT_EQ(back->groups.size(), 2u);
}

TEST(QueryPart, PointsOutsideTheRangeAreRefused) {
  const QuerySpec spec = HourlySum();
  const QueryGrid grid{kSecond, {}};
  const std::string bytes = *EncodePart(*EvaluatePart(spec, {Line("a", 5, kSecond, 1)}, &grid));
  QuerySpec shorter = spec;
  shorter.end = 3 * kSecond;
  EXPECT_TRUE(DecodePart(spec, bytes).ok());
  EXPECT_FALSE(DecodePart(shorter, bytes).ok());
}

// A few bytes stand for any number of equal points at equal steps: no more than the bound are made.
TEST(QueryPart, WhatUnfoldsBeyondTheBoundIsRefused) {
  QuerySpec spec = HourlySum();
  spec.end = kMaxQueryTime;
  for (const uint64_t count : {kMaxPartPoints, kMaxPartPoints + 1}) {
    std::string group;
    ByteWriter g(group);
    g.Varint(0);      // tags
    g.Varint(0);      // other keys
    g.Varint(count);  // times: one run
    g.Varint(0);
    g.Varint(count);
    g.Varint(1);
    g.Fixed<uint8_t>(1);  // all are points
    g.Fixed<uint8_t>(0);  // and not of counters
    g.Varint(1);          // counts: one run
    g.Varint(count);
    g.Fixed<uint8_t>(1);  // values: constant
    g.Fixed(1.5);
    g.Fixed<uint8_t>(0);
    g.Varint(0);
    std::string bytes;
    ByteWriter out(bytes);
    out.Fixed<uint8_t>(2);
    out.Varint(1);
    out.Text(group);
    EXPECT_EQ(DecodePart(spec, bytes).ok(), count == kMaxPartPoints);
  }
}

TEST(QueryPart, ALargerAnswerThanMayTravelIsRefusedWithItsLimit) {
  QuerySpec spec = HourlySum();
  spec.end = 3'000'000 * kSecond;
  const QueryGrid grid{kSecond, {}};
  const auto many = EvaluatePart(spec, {Line("a", kMaxPartPoints + 1, kSecond, 1)}, &grid);
  ASSERT_EQ(many.status().code(), Code::kLimit);
  EXPECT_NE(many.status().message().find("1048576 points"), std::string_view::npos);
  // Ticks that nobody has points at count as well.
  const auto sparse = EvaluatePart(spec, {Line("a", 3, 1'000'000 * kSecond, 1)}, &grid);
  EXPECT_EQ(sparse.status().code(), Code::kLimit);

  const auto half = [&](const std::string& host) {
    QuerySpec by_host = spec;
    by_host.filters = {{TagFilter::Type::kWildcard, "host", "*", true}};
    return EvaluatePart(by_host, {Line(host, kMaxPartPoints / 2 + 1, kSecond, 1)}, &grid);
  };
  auto merged = half("a");
  ASSERT_TRUE(merged.ok());
  EXPECT_TRUE(EncodePart(*merged).ok());
  EXPECT_EQ(MergePart(spec, grid, *half("b"), *merged).code(), Code::kLimit);
  const auto bytes = EncodePart(*merged);
  ASSERT_EQ(bytes.status().code(), Code::kLimit);
  EXPECT_NE(bytes.status().message().find("6291456 bytes"), std::string_view::npos);
}

TEST(QueryPart, AGridComesBackFromBytes) {
  const QueryGrid grid{kSecond, {5, 6, 7, 3 * kSecond, 9 * kSecond}};
  std::string bytes;
  EncodeGrid(grid, bytes);
  const auto back = DecodeGrid(bytes);
  ASSERT_TRUE(back.ok());
  EXPECT_EQ(back->step, grid.step);
  EXPECT_EQ(back->times, grid.times);
  EXPECT_TRUE(back->Has(40 * kSecond));
  EXPECT_TRUE(back->Has(6));
  EXPECT_FALSE(back->Has(8));
  for (size_t n = 0; n < bytes.size(); ++n) EXPECT_FALSE(DecodeGrid(bytes.substr(0, n)).ok()) << n;
  QueryGrid large;
  for (size_t i = 0; i <= kMaxGridTimes; ++i) large.times.push_back(static_cast<Nanos>(i * i));
  bytes.clear();
  EncodeGrid(large, bytes);
  EXPECT_FALSE(DecodeGrid(bytes).ok());
}

// One node's counter had its last point before another one of a third node, and that of a second
// node begins behind it: merged, the first two have no value at the time of the third.
TEST(QueryPart, ACounterCountsAtTimesBetweenItsLastPointAndAnothersFirst) {
  QuerySpec spec;
  spec.metric = "work";
  spec.start = kSecond;
  spec.end = 20 * kSecond;
  std::vector<SeriesData> nodes;
  const std::vector<std::vector<Nanos>> times = {{1, 3}, {9}, {5, 6}};
  for (size_t i = 0; i < times.size(); ++i) {
    SeriesData& node = nodes.emplace_back();
    node.series.metric.name = "work";
    node.series.metric.type = MetricType::kCounter;
    node.series.tags = {{"host", "n" + std::to_string(i)}};
    for (const Nanos time : times[i]) node.points.push_back({time * kSecond, 10.0 * (i + 1)});
  }
  const std::vector<QueryResult> expected = *Evaluate(spec, nodes);
  const QueryGrid grid{kSecond, {}};
  QueryPart merged = EmptyPart(spec);
  for (const SeriesData& node : nodes) {
    const std::string bytes = *EncodePart(*EvaluatePart(spec, {node}, &grid));
    ASSERT_TRUE(MergePart(spec, grid, *DecodePart(spec, bytes), merged).ok());
  }
  EXPECT_EQ(FinishPart(spec, merged), expected);
}

// Its last bucket's mean is not what it has counted.
TEST(QueryPart, WhatCountersCountAfterTheirLastTimeIsTheirLastValue) {
  QuerySpec spec;
  spec.metric = "work";
  spec.start = 0;
  spec.end = 20 * kSecond;
  spec.downsample = *ParseDownsample("4s-avg");
  std::vector<SeriesData> nodes(2);
  for (size_t i = 0; i < 2; ++i) {
    nodes[i].series.metric.name = "work";
    nodes[i].series.metric.type = MetricType::kCounter;
    nodes[i].series.tags = {{"host", "n" + std::to_string(i)}};
    for (int at = 1; at < (i == 0 ? 7 : 16); ++at) {
      nodes[i].points.push_back({at * kSecond, at * 1.0});
    }
  }
  const std::vector<QueryResult> expected = *Evaluate(spec, nodes);
  const QueryGrid grid{kSecond, {}};
  QueryPart merged = *EvaluatePart(spec, {nodes[0]}, &grid);
  ASSERT_TRUE(MergePart(spec, grid, *EvaluatePart(spec, {nodes[1]}, &grid), merged).ok());
  EXPECT_EQ(FinishPart(spec, merged), expected);
}

}  // namespace
}  // namespace sonde::series_query_part_test
