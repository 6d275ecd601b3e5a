// Queries and schemas as they travel through the tree.
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "series/block/schema.h"
#include "series/query/query.h"

namespace sonde::series_bytes_test {
namespace {

// Any but none.
Aggregator RandomFunction(std::mt19937_64& random) {
  const auto function = static_cast<Aggregator>(random() % (AggregatorNames().size() - 1));
  return function == Aggregator::kNone ? Aggregator::kP999 : function;
}

QuerySpec RandomSpec(std::mt19937_64& random) {
  QuerySpec spec;
  spec.metric = "metric_" + std::to_string(random() % 10);
  spec.aggregator = static_cast<Aggregator>(random() % AggregatorNames().size());
  if (random() % 2 == 0) {
    spec.downsample =
        Downsample{static_cast<Nanos>(1 + random() % 100) * kSecond, RandomFunction(random),
                   static_cast<Downsample::Fill>(random() % 4)};
  }
  spec.rate = random() % 2 == 0;
  spec.rate_options = {random() % 2 == 0, static_cast<double>(random()), 0.25, random() % 2 == 0};
  for (uint64_t n = random() % 4; n > 0; --n) {
    const auto type = static_cast<TagFilter::Type>(random() % 8);
    const bool bare = type == TagFilter::Type::kNotKey;
    spec.filters.push_back({type, "key" + std::to_string(n),
                            bare ? "" : "a*|b" + std::to_string(random() % 100),
                            random() % 2 == 0});
  }
  spec.explicit_tags = random() % 2 == 0;
  spec.start = static_cast<Nanos>(random() % 1'000'000'000'000);
  spec.end = spec.start + 1 + static_cast<Nanos>(random() % 1'000'000'000'000);
  if (spec.downsample && random() % 2 == 0) {
    auto calendar = std::make_shared<Calendar>();
    calendar->edges = {spec.start - spec.start % 7, spec.start + 1, spec.end + 1};
    spec.downsample->calendar = std::move(calendar);
  }
  return spec;
}

TEST(QueryBytes, AQueryComesBack) {
  std::mt19937_64 random(21);
  for (int round = 0; round < 1'000; ++round) {
    const QuerySpec spec = RandomSpec(random);
    std::string bytes;
    EncodeQuery(spec, bytes);
    const auto back = DecodeQuery(bytes);
    ASSERT_TRUE(back.ok()) << back.status().message();
    std::string again;
    EncodeQuery(*back, again);
    ASSERT_EQ(again, bytes);
    ASSERT_EQ(back->metric, spec.metric);
    ASSERT_EQ(back->aggregator, spec.aggregator);
    ASSERT_EQ(back->downsample.has_value(), spec.downsample.has_value());
    if (spec.downsample && spec.downsample->calendar != nullptr) {
      ASSERT_EQ(back->downsample->calendar->edges, spec.downsample->calendar->edges);
    }
    ASSERT_EQ(back->filters.size(), spec.filters.size());
    ASSERT_EQ(back->start, spec.start);
    ASSERT_EQ(back->end, spec.end);
    ASSERT_EQ(back->rate_options.counter_max, spec.rate_options.counter_max);
    for (size_t n = 0; n < bytes.size(); ++n) ASSERT_FALSE(DecodeQuery(bytes.substr(0, n)).ok());
  }
}

TEST(QueryBytes, AQueryThatMakesNoSenseIsRefused) {
  std::mt19937_64 random(22);
  QuerySpec spec = RandomSpec(random);
  spec.end = spec.start;
  std::string bytes;
  EncodeQuery(spec, bytes);
  EXPECT_EQ(DecodeQuery(bytes).status().code(), Code::kInvalid);
  bytes[0] = 1;
  EXPECT_EQ(DecodeQuery(bytes).status().code(), Code::kUnsupported);
}

TEST(QueryBytes, BucketsOfACalendarThatDoNotHoldTheRangeAreRefused) {
  std::mt19937_64 random(23);
  QuerySpec spec = RandomSpec(random);
  spec.start = 100;
  spec.end = 200;
  using Edges = std::vector<Nanos>;
  for (const Edges& edges :
       {Edges{101, 300}, Edges{0, 200}, Edges{0, 300, 300}, Edges{0, 50, 40, 300}, Edges{0},
        Edges(Calendar::kMaxBuckets + 2, 0)}) {
    auto calendar = std::make_shared<Calendar>();
    calendar->edges = edges;
    spec.downsample = Downsample{.interval = 1, .calendar = std::move(calendar)};
    std::string bytes;
    EncodeQuery(spec, bytes);
    EXPECT_FALSE(DecodeQuery(bytes).ok()) << edges.size();
  }
}

// What libsonde takes must be what every peer and reader takes: a node whose schema is refused is
// lost to the step.
TEST(SchemaBytes, AUnitMayBeAsLongAsAnApplicationMayRegisterIt) {
  Series series;
  series.metric.name = "m";
  series.metric.unit = std::string(kMaxNameLength, 'u');
  const Schema::Ptr schema = Schema::Make({series});
  const Result<Schema::Ptr> decoded = Schema::Decode(schema->encoded());
  ASSERT_TRUE(decoded.ok()) << decoded.status().message();
  EXPECT_EQ((**decoded)[0].metric.unit, series.metric.unit);
}

}  // namespace
}  // namespace sonde::series_bytes_test
