// Queries and series as they travel through the tree.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "series/query.h"

namespace sonde {
namespace {

QuerySpec RandomSpec(std::mt19937_64& random) {
  QuerySpec spec;
  spec.metric = "metric_" + std::to_string(random() % 10);
  spec.aggregator = static_cast<Aggregator>(random() % 6);
  if (random() % 2 == 0) {
    spec.downsample = Downsample{static_cast<Nanos>(1 + random() % 100) * kSecond,
                                 static_cast<Aggregator>(random() % 5),
                                 static_cast<Downsample::Fill>(random() % 4)};
  }
  spec.rate = random() % 2 == 0;
  spec.rate_options = {random() % 2 == 0, static_cast<double>(random()), 0.25, random() % 2 == 0};
  for (uint64_t n = random() % 4; n > 0; --n) {
    spec.filters.push_back({static_cast<TagFilter::Type>(random() % 7), "key" + std::to_string(n),
                            "a*|b" + std::to_string(random() % 100), random() % 2 == 0});
  }
  spec.explicit_tags = random() % 2 == 0;
  spec.start = static_cast<Nanos>(random() % 1'000'000'000'000);
  spec.end = spec.start + 1 + static_cast<Nanos>(random() % 1'000'000'000'000);
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
  bytes[0] = 2;
  EXPECT_EQ(DecodeQuery(bytes).status().code(), Code::kUnsupported);
}

TEST(QueryBytes, SeriesComeBackBitForBit) {
  std::mt19937_64 random(23);
  for (int round = 0; round < 300; ++round) {
    std::vector<SeriesData> series;
    for (uint64_t n = random() % 5; n > 0; --n) {
      SeriesData& s = series.emplace_back();
      s.series.metric.name = "m" + std::to_string(n);
      s.series.metric.unit = "seconds";
      s.series.metric.type = static_cast<MetricType>(random() % 3);
      s.series.tags = {{"host", "n" + std::to_string(n)}, {"device", "ä"}};
      for (uint64_t p = random() % 20; p > 0; --p) {
        s.points.push_back({static_cast<Nanos>(random()), std::bit_cast<double>(random())});
      }
    }
    std::string bytes;
    EncodeSeriesData(series, bytes);
    const auto back = DecodeSeriesData(bytes);
    ASSERT_TRUE(back.ok()) << back.status().message();
    ASSERT_EQ(back->size(), series.size());
    for (size_t i = 0; i < series.size(); ++i) {
      ASSERT_EQ((*back)[i].series, series[i].series);
      ASSERT_EQ((*back)[i].points.size(), series[i].points.size());
      for (size_t p = 0; p < series[i].points.size(); ++p) {
        ASSERT_EQ((*back)[i].points[p].time, series[i].points[p].time);
        ASSERT_EQ(std::bit_cast<uint64_t>((*back)[i].points[p].value),
                  std::bit_cast<uint64_t>(series[i].points[p].value));
      }
    }
    for (size_t n = 0; n < bytes.size(); ++n) {
      ASSERT_FALSE(DecodeSeriesData(bytes.substr(0, n)).ok()) << n;
    }
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

TEST(QueryBytes, ACountOfPointsIsNotTrusted) {
  std::string bytes;
  EncodeSeriesData(
      {SeriesData{{Metric(MetricDecl{"m", "", MetricType::kGauge, 1, Reduction::kSum, ""}), {}},
                  {}}},
      bytes);
  bytes.pop_back();                     // the count of no points
  bytes += "\xff\xff\xff\xff\xff\x7f";  // and one of very many
  EXPECT_EQ(DecodeSeriesData(bytes).status().code(), Code::kCorrupt);
}

}  // namespace
}  // namespace sonde
