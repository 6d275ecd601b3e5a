#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "series/block/schema.h"
#include "series/store/reduced.h"
#include "series/store/store.h"

namespace sonde::series_store_test {
namespace {

using testing::ElementsAre;

Series Named(const std::string& name, const Tags& tags = {}) {
  Series s;
  s.metric.name = name;
  s.tags = tags;
  return s;
}

bool Everything(const Series&) { return true; }

TEST(Schema, ComesBackAndEqualOnesHaveOneId) {
  Series s = Named("disk_bytes_total", {{"device", "vda"}});
  s.metric.unit = "bytes";
  s.metric.help = "Bytes read.";
  s.metric.type = MetricType::kCounter;
  s.metric.level = 2;
  s.metric.reduction = Reduction::kMax;
  const Schema::Ptr schema = Schema::Make({s, Named("load1")});
  const Result<Schema::Ptr> back = Schema::Decode(schema->encoded());
  ASSERT_TRUE(back.ok()) << back.status().message();
  EXPECT_EQ((*back)->series(), schema->series());
  EXPECT_EQ((*back)->id(), schema->id());
  EXPECT_NE(Schema::Make({Named("load1"), s})->id(), schema->id());
}

// Ids stand in blocks on disk: they must never change.
TEST(Schema, TheIdIsFrozen) {
  EXPECT_EQ(Schema::Make({Named("load1")})->id(), 5556541704572934132u);
}

TEST(Schema, WhatASeriesHasLikeTheOneBeforeIsWrittenOnce) {
  Series s = Named("node_cpu_seconds_total", {{"mode", "user"}});
  s.metric.help = std::string(200, 'h');
  std::vector<Series> series;
  for (int i = 0; i < 100; ++i) {
    s.tags.Set("stat", std::to_string(i));
    series.push_back(s);
  }
  const Schema::Ptr schema = Schema::Make(series);
  EXPECT_LT(schema->encoded().size(), 300u + 100u * 6u);
  EXPECT_GT(schema->text_bytes(), 100u * 200u);
  EXPECT_GT(schema->memory(), schema->text_bytes() + 100 * sizeof(Series));
  const Result<Schema::Ptr> back = Schema::Decode(schema->encoded());
  ASSERT_TRUE(back.ok()) << back.status().message();
  EXPECT_EQ((*back)->series(), series);
}

// Few bytes may stand for many: each series another tag, all with the help of the first.
TEST(Schema, OneThatStandsForTooMuchIsRefused) {
  const auto with = [](size_t count) {
    Series s = Named("m");
    s.metric.help = std::string(kMaxTextLength, 'h');
    std::vector<Series> series;
    for (size_t i = 0; i < count; ++i) {
      s.tags.Set("n", std::to_string(i));
      series.push_back(s);
    }
    return Schema::Make(std::move(series));
  };
  EXPECT_TRUE(Schema::Decode(with(1000)->encoded()).ok());
  const Schema::Ptr large = with(kMaxSeries - 1);
  ASSERT_GT(large->text_bytes(), size_t{32} << 20);
  EXPECT_EQ(Schema::Decode(large->encoded()).status().code(), Code::kCorrupt);
}

TEST(Schema, ACacheGivesTheSameForTheSameBytes) {
  SchemaCache cache;
  const std::string bytes = PackSchema(*Schema::Make({Named("a")}));
  const Schema::Ptr first = *cache.Decode(bytes);
  EXPECT_EQ(*cache.Decode(bytes), first);
  EXPECT_FALSE(cache.Decode("nonsense").ok());
  for (int i = 0; i < 100; ++i) {
    const Schema::Ptr other = Schema::Make({Named("b" + std::to_string(i))});
    EXPECT_EQ((*cache.Decode(PackSchema(*other)))->id(), other->id());
  }
  EXPECT_EQ((*cache.Decode(bytes))->id(), first->id()) << "forgotten, and decoded anew";
}

TEST(Schema, PackedItIsAFractionAndComesBack) {
  std::vector<Series> series;
  for (int i = 0; i < 400; ++i) {
    series.push_back(Named("metric_" + std::to_string(i)));
    series.back().metric.help = "What the metric means, in a sentence that has some length.";
  }
  const Schema::Ptr schema = Schema::Make(series);
  const std::string packed = PackSchema(*schema);
  EXPECT_LT(packed.size(), schema->text_bytes() / 5);
  EXPECT_EQ((*SchemaCache().Decode(packed))->series(), series);
}

TEST(Schema, APackedOneThatIsDamagedIsRefused) {
  const std::string good = PackSchema(*Schema::Make({Named("a"), Named("b")}));
  for (size_t n = 0; n < good.size(); ++n) {
    EXPECT_FALSE(SchemaCache().Decode(good.substr(0, n)).ok()) << n;
    std::string damaged = good;
    damaged[n] = static_cast<char>(~damaged[n]);
    (void)SchemaCache().Decode(damaged);  // whatever it is: no harm
  }
  EXPECT_FALSE(SchemaCache().Decode(good + good).ok());
  // A frame that claims to hold much more than any schema: 2^40 bytes.
  const std::string huge("\x28\xb5\x2f\xfd\xe0\0\0\0\0\0\1\0\0\1\0\0", 16);
  EXPECT_FALSE(SchemaCache().Decode(huge).ok());
}

TEST(Schema, DamagedBytesAreRefused) {
  const std::string good = Schema::Make({Named("a", {{"k", "v"}, {"l", "w"}})})->encoded();
  for (size_t n = 0; n < good.size(); ++n) {
    EXPECT_FALSE(Schema::Decode(good.substr(0, n)).ok()) << n;
  }
  EXPECT_EQ(Schema::Decode(good + "x").status().code(), Code::kCorrupt);
  std::string newer = good;
  newer[0] = 4;
  EXPECT_EQ(Schema::Decode(newer).status().code(), Code::kUnsupported);
  // A count as a longer number than needed, tags out of order, a name with a blank.
  EXPECT_FALSE(Schema::Decode(std::string("\x03\x80\x00", 3)).ok());
  EXPECT_FALSE(Schema::Decode(std::string("\x01\x80\x00", 3)).ok());
  std::string swapped = good;
  std::swap(swapped[swapped.find('k')], swapped[swapped.find('l')]);
  EXPECT_FALSE(Schema::Decode(swapped).ok());
  std::string blank = good;
  blank[blank.find('a')] = ' ';
  EXPECT_FALSE(Schema::Decode(blank).ok());
}

// A series begins as the one before it as far as it does, and says so: neither more nor less.
TEST(Schema, WhatIsSharedIsToldInOneWay) {
  const std::string first("\x00\x09\x02mm\0\0\0\x01\0\0", 11);
  const auto with = [&](std::string_view second) {
    return Schema::Decode("\x03\x02" + first + std::string(second));
  };
  ASSERT_EQ(with(std::string_view("\x02\x07n\0\0\0\x01\0\0", 9)).status().message(), "");
  EXPECT_EQ((**with(std::string_view("\x02\x07n\0\0\0\x01\0\0", 9)))[1].metric.name, "mn");
  EXPECT_TRUE(with(std::string_view("\x09\x00", 2)).ok()) << "the same once more";
  // Less than they share; more than the first has; bytes behind a series; too few for one.
  EXPECT_FALSE(with(std::string_view("\x01\x08mn\0\0\0\x01\0\0", 10)).ok());
  EXPECT_FALSE(with(std::string_view("\x0b\x00", 2)).ok());
  EXPECT_FALSE(with(std::string_view("\x09\x01\0", 3)).ok());
  EXPECT_FALSE(with(std::string_view("\x08\x00", 2)).ok());
}

TEST(Reduced, OwnersPackToOneNumberAndBack) {
  for (const Owner owner : {Owner{0, Owner::kNobody}, Owner{0, 0}, Owner{9999, 123'456},
                            Owner{(1u << 26) - 1, (1u << 26) - 3}}) {
    EXPECT_EQ(Owner::Unpack(owner.Pack()), owner);
  }
  EXPECT_TRUE(std::isnan(Owner{}.Pack()));
  EXPECT_TRUE(std::isnan((Owner{1u << 26, 0}.Pack())));
  EXPECT_EQ(Owner::Unpack(Owner{3, (1u << 26) - 2}.Pack()), (Owner{3, Owner::kNobody}));
  for (const double bad : {-1.0, 0.5, 1e300, std::nan("")}) EXPECT_EQ(Owner::Unpack(bad), Owner{});
}

TEST(Reduced, ColumnsHoldEverything) {
  Reduced value;
  value.Add(3, {1, 5});
  value.Add(-4, {2, 6});
  value.Add(std::nan(""), {0, 0});
  double columns[kStatColumns];
  ToColumns(value, columns);
  const Reduced back = FromColumns(columns);
  EXPECT_EQ(back.count, 2);
  EXPECT_EQ(back.min_owner, (Owner{2, 6}));
  EXPECT_EQ(back.max_owner, (Owner{1, 5}));
  EXPECT_EQ(back.Value(Reduction::kSum), -1);
  EXPECT_EQ(back.Value(Reduction::kMean), -0.5);
  EXPECT_EQ(back.Value(Reduction::kMin), -4);
  EXPECT_EQ(back.Value(Reduction::kMax), 3);
  EXPECT_EQ(back.sum_sq, 25);
}

TEST(Reduced, NothingMeasuredIsMissingNotZero) {
  double columns[kStatColumns];
  ToColumns(Reduced{}, columns);
  for (const double c : columns) EXPECT_TRUE(std::isnan(c));
  EXPECT_EQ(FromColumns(columns).count, 0);
  EXPECT_TRUE(std::isnan(Reduced{}.Value(Reduction::kSum)));
}

TEST(Reduced, TheSchemaHasEveryStatisticOfEverySeries) {
  const Schema::Ptr schema = ReducedSchema({Named("a", {{"device", "x"}}), Named("b")});
  ASSERT_EQ(schema->size(), 2 * kStatColumns);
  EXPECT_EQ(SeriesName((*schema)[1].metric.name, (*schema)[1].tags),
            "a{device=\"x\",stat=\"sum\"}");
  EXPECT_EQ(*(*schema)[kStatColumns].tags.Find("stat"), "count");
}

Series Spreading(const char* name, MetricType type) {
  Series series = Named(name);
  series.metric.type = type;
  series.metric.spread = true;
  return series;
}

TEST(Reduced, WhatHasASpreadHasItsPercentilesBesides) {
  const std::vector<Series> base = {Named("a"), Spreading("b", MetricType::kGauge), Named("c"),
                                    Spreading("d_total", MetricType::kCounter)};
  const Schema::Ptr schema = ReducedSchema(base);
  ASSERT_EQ(schema->size(), 4 * kStatColumns + 2 * kSpreadColumns);
  EXPECT_EQ(*(*schema)[2 * kStatColumns].tags.Find("stat"), "p5");
  EXPECT_EQ(*(*schema)[2 * kStatColumns + 2].tags.Find("stat"), "p95");
  EXPECT_EQ(*(*schema)[schema->size() - 1].tags.Find("stat"), "rate_p99");
  EXPECT_EQ(BaseSeries(*schema), base);
  EXPECT_TRUE(BaseSeries(*Schema::Make(base)).empty());

  std::vector<Reduced> values(4);
  for (size_t i = 0; i < 4; ++i) values[i].Add(static_cast<double>(i), {1, 2});
  QuantileSketch sketch;
  for (int i = 1; i <= 100; ++i) sketch.Add(i);
  std::vector<double> row(schema->size());
  ToColumns(base, values, std::vector<Spread>{SpreadOf(sketch)}, row);
  std::vector<Reduced> back;
  std::vector<Spread> spreads;
  FromColumns(base, row, back, spreads);
  ASSERT_EQ(back.size(), 4u);
  EXPECT_EQ(back[3].sum, 3);
  ASSERT_EQ(spreads.size(), 2u);
  EXPECT_NEAR(spreads[0][1], 50.5, 0.5);
  EXPECT_NEAR(spreads[0][2], 95.95, 0.96);
  EXPECT_TRUE(std::isnan(spreads[1][0])) << "not measured";
}

// As profiles of earlier versions have them: 1 without, 2 with spreads. They keep their ids.
TEST(Schema, EarlierVersionsAreRead) {
  const std::string plain("\x01\x01\x05load1\0\0\0\x01\0\0", 14);
  std::string spread = plain;
  spread[0] = 2;
  spread[12] = 16;  // beside the reduction
  for (const std::string& bytes : {plain, spread}) {
    const auto schema = Schema::Decode(bytes);
    ASSERT_TRUE(schema.ok()) << schema.status().message();
    EXPECT_EQ((*schema)->encoded(), bytes);
    EXPECT_EQ((**schema)[0].metric.name, "load1");
    EXPECT_EQ((**schema)[0].metric.spread, bytes == spread);
    EXPECT_EQ((*SchemaCache().Decode(PackSchema(**schema)))->id(), (*schema)->id());
    EXPECT_EQ(Schema::Make((*schema)->series())->encoded()[0], 3);
    // Neither version says what is the other's.
    std::string other = bytes;
    other[0] = static_cast<char>(3 - other[0]);
    EXPECT_EQ(Schema::Decode(other).status().code(), Code::kCorrupt);
  }
  EXPECT_EQ((*Schema::Decode(plain))->id(), 16839665364891846674u);
}

GroupStore::Options Small() { return {.first_rows = 2, .max_rows = 4, .memory_limit = 1 << 20}; }

TEST(Store, BlocksStartShortAndGrow) {
  GroupStore store(Small());
  std::vector<size_t> sealed;
  store.OnSeal([&](const SealedBlock& b) {
    sealed.push_back(b.info.rows);
    EXPECT_EQ(b.sequence, sealed.size());
    EXPECT_EQ(b.schema->id(), b.info.schema_id);
    EXPECT_TRUE(DecodeBlock(*b.bytes).ok());
  });
  store.SetSchema(Schema::Make({Named("a")}));
  for (Nanos t = 1; t <= 15; ++t) store.Append(t, std::vector<double>{1});
  EXPECT_THAT(sealed, ElementsAre(2, 4, 4, 4));
  store.Seal();
  EXPECT_THAT(sealed, ElementsAre(2, 4, 4, 4, 1));
  store.Seal();
  EXPECT_EQ(sealed.size(), 5u);
  EXPECT_EQ(store.rows(), 15u);
  EXPECT_EQ(store.dropped_rows(), 0u);
}

TEST(Store, ReadsAcrossSealedAndOpenBlocksWithinTheRange) {
  GroupStore store(Small());
  store.SetSchema(Schema::Make({Named("a"), Named("b")}));
  for (Nanos t = 1; t <= 9; ++t) {
    store.Append(t, std::vector<double>{static_cast<double>(t), t == 5 ? std::nan("") : 0.5});
  }
  const auto data = store.Read(Everything, 4, 8);
  ASSERT_EQ(data.size(), 2u);
  EXPECT_THAT(data[0].points,
              ElementsAre(Point{4, 4}, Point{5, 5}, Point{6, 6}, Point{7, 7}, Point{8, 8}));
  EXPECT_THAT(data[1].points,
              ElementsAre(Point{4, 0.5}, Point{6, 0.5}, Point{7, 0.5}, Point{8, 0.5}));
  const auto one = store.Read([](const Series& s) { return s.metric.name == "b"; }, 0, 2);
  ASSERT_EQ(one.size(), 1u);
  EXPECT_EQ(one[0].points.size(), 2u);
  EXPECT_TRUE(store.Read(Everything, 10, 20).empty());
}

// However many of them fit, and also when what was asked first goes.
TEST(Store, WhatIsKeptDecompressedReadsTheSame) {
  GroupStore sealed(Small());
  const auto fill = [](GroupStore& store) {
    for (int change = 0; change < 3; ++change) {
      const Schema::Ptr schema =
          Schema::Make({Named("a"), Named("b" + std::to_string(change)), Named("c")});
      store.SetSchema(schema);
      for (Nanos t = 1; t <= 50; ++t) {
        const auto value = static_cast<double>(t * t % 17);
        store.Append(t + 100 * change,
                     std::vector<double>{value, t % 3 == 0 ? std::nan("") : value / 8, 7});
      }
    }
  };
  fill(sealed);
  for (const size_t limit : {1, 300, 1500, 1 << 20}) {
    GroupStore::Options options = Small();
    options.plain_limit = limit;
    GroupStore store(options);
    fill(store);
    for (const auto& [start, end] :
         {std::pair<Nanos, Nanos>{0, 400}, {20, 30}, {140, 260}, {0, 400}}) {
      const auto got = store.Read(Everything, start, end);
      const auto expected = sealed.Read(Everything, start, end);
      ASSERT_EQ(got.size(), expected.size());
      for (size_t i = 0; i < got.size(); ++i) {
        EXPECT_EQ(got[i].series, expected[i].series);
        EXPECT_EQ(got[i].points, expected[i].points) << limit;
      }
    }
  }
}

TEST(Store, ASeriesOutlivesAChangeOfSchemaInOnePiece) {
  GroupStore store(Small());
  store.SetSchema(Schema::Make({Named("a"), Named("gone")}));
  store.Append(1, std::vector<double>{1, 10});
  store.SetSchema(Schema::Make({Named("new"), Named("a")}));
  EXPECT_TRUE(store.last_row().empty());
  EXPECT_EQ(store.last_time(), 0);
  store.Append(2, std::vector<double>{20, 2});
  EXPECT_THAT(store.last_row(), ElementsAre(20, 2));
  EXPECT_EQ(store.last_time(), 2);

  const auto data = store.Read(Everything, 0, 10);
  ASSERT_EQ(data.size(), 3u);
  EXPECT_EQ(data[0].series.metric.name, "a");
  EXPECT_THAT(data[0].points, ElementsAre(Point{1, 1}, Point{2, 2}));
}

// An application may register a metric in each tick: a schema with each of them would be bytes by
// the square of their number.
TEST(Store, ABlockGoesOnWhenSeriesCome) {
  GroupStore store({});
  std::map<uint64_t, size_t> schemas;  // id -> series
  std::vector<size_t> rows;
  store.OnSeal([&](const SealedBlock& block) {
    schemas[block.schema->id()] = block.schema->size();
    rows.push_back(block.info.rows);
  });
  std::vector<Series> series = {Named("first"), Named("last")};
  constexpr Nanos kTicks = 1000;
  for (Nanos t = 1; t <= kTicks; ++t) {
    // Behind those of its source, and before those of the next one.
    series.insert(series.end() - 1, Named("metric" + std::to_string(t)));
    store.SetSchema(Schema::Make(series));
    std::vector<double> row(series.size());
    for (size_t c = 0; c < row.size(); ++c) row[c] = static_cast<double>(t) * 1000 + c;
    row.back() = static_cast<double>(-t);
    store.Append(t, row);
    EXPECT_EQ(store.last_row().size(), series.size());
  }
  store.Seal();
  EXPECT_THAT(rows, ElementsAre(16, 32, 64, 128, 128, 128, 128, 128, 128, 120));
  EXPECT_EQ(schemas.size(), rows.size());
  const auto data = store.Read(Everything, 0, kTicks);
  ASSERT_EQ(data.size(), series.size());
  for (const SeriesData& one : data) {
    const std::string& name = one.series.metric.name;
    if (name == "last") {
      EXPECT_EQ(one.points.size(), static_cast<size_t>(kTicks));
      EXPECT_EQ(one.points.front(), (Point{1, -1}));
    }
    if (!name.starts_with("metric")) continue;
    const Nanos came = std::stol(name.substr(6));
    EXPECT_EQ(one.points.size(), static_cast<size_t>(kTicks - came + 1)) << name;
    EXPECT_EQ(one.points.front(), (Point{came, static_cast<double>(came * 1000 + came)})) << name;
  }
}

TEST(Store, ABlockEndsWhenSeriesGoOrChangePlaces) {
  GroupStore store({});
  std::vector<std::pair<size_t, size_t>> sealed;  // rows, series
  store.OnSeal(
      [&](const SealedBlock& block) { sealed.emplace_back(block.info.rows, block.info.columns); });
  auto next = [&, t = Nanos{0}](const std::vector<Series>& series) mutable {
    store.SetSchema(Schema::Make(series));
    store.Append(++t, std::vector<double>(series.size(), 1));
  };
  next({Named("a"), Named("b")});
  next({Named("a"), Named("c")});                // b went
  next({Named("c"), Named("a")});                // the other order
  next({Named("c"), Named("a", {{"t", "1"}})});  // another a
  next({Named("b"), Named("c"), Named("a", {{"t", "1"}}), Named("d")});
  store.Seal();
  using Sealed = std::pair<size_t, size_t>;
  EXPECT_THAT(sealed, ElementsAre(Sealed{1, 2}, Sealed{1, 2}, Sealed{1, 2}, Sealed{2, 4}));
}

// What a counter had reached before the range, however long ago: also one that is sampled seldom,
// or that is not among the series any more.
TEST(Store, OfCountersTheLastPointBeforeTheRangeIsReadToo) {
  const auto counter = [](const char* name) {
    Series series = Named(name);
    series.metric.type = MetricType::kCounter;
    return series;
  };
  const double none = std::nan("");
  GroupStore store(Small());
  store.SetSchema(Schema::Make({counter("gone"), counter("seldom")}));
  store.Append(1, std::vector<double>{5, 7});
  store.Append(2, std::vector<double>{6, none});
  store.SetSchema(Schema::Make({Named("gauge"), counter("often"), counter("seldom")}));
  for (Nanos t = 3; t <= 20; ++t) {
    store.Append(t, std::vector<double>{1, static_cast<double>(t), t == 19 ? 9 : none});
  }
  const auto read = [&](Nanos start, Nanos end) {
    std::map<std::string, std::vector<Point>> points;
    for (const SeriesData& data : store.Read(Everything, start, end, Earlier::kCounted)) {
      points[data.series.metric.name] = data.points;
    }
    return points;
  };
  using All = std::map<std::string, std::vector<Point>>;
  EXPECT_EQ(read(18, 18), (All{{"gauge", {{18, 1}}},
                               {"gone", {{2, 6}}},
                               {"often", {{17, 17}, {18, 18}}},
                               {"seldom", {{1, 7}}}}));
  EXPECT_EQ(read(21, 30), (All{{"gone", {{2, 6}}}, {"often", {{20, 20}}}, {"seldom", {{19, 9}}}}))
      << "of the rows that are not sealed";
  EXPECT_EQ(read(1, 2), (All{{"gone", {{1, 5}, {2, 6}}}, {"seldom", {{1, 7}}}}));
}

TEST(Store, TheSameSchemaAgainChangesNothing) {
  GroupStore store(Small());
  size_t sealed = 0;
  store.OnSeal([&](const SealedBlock&) { ++sealed; });
  store.SetSchema(Schema::Make({Named("a")}));
  store.Append(1, std::vector<double>{1});
  store.SetSchema(Schema::Make({Named("a")}));
  store.Append(2, std::vector<double>{2});
  EXPECT_EQ(sealed, 1u);
}

TEST(Store, RowsThatRunBackwardsOrDoNotFitAreCounted) {
  GroupStore store(Small());
  store.SetSchema(Schema::Make({Named("a")}));
  store.Append(5, std::vector<double>{1});
  store.Append(4, std::vector<double>{1});
  store.Append(6, std::vector<double>{1, 2});
  store.SetSchema(Schema::Make({Named("b")}));
  store.Append(4, std::vector<double>{1});
  EXPECT_EQ(store.rows(), 1u);
  EXPECT_EQ(store.dropped_rows(), 3u);
}

TEST(Store, ARowMayBeAmendedWhileItsBlockIsOpen) {
  GroupStore store({.first_rows = 3});
  store.SetSchema(Schema::Make({Named("a"), Named("b")}));
  store.Append(10, std::vector{1.0, 2.0});
  store.Append(20, std::vector{3.0, 4.0});
  const auto add = [](std::span<double> row) {
    ASSERT_EQ(row.size(), 2u);
    row[1] += 100;
  };
  EXPECT_TRUE(store.Amend(10, add));
  EXPECT_TRUE(store.Amend(20, add));
  EXPECT_FALSE(store.Amend(15, add)) << "no such row";
  EXPECT_THAT(store.last_row(), ElementsAre(3, 104));
  store.Append(30, std::vector{5.0, 6.0});
  EXPECT_FALSE(store.Amend(30, add)) << "sealed";
  const auto data = store.Read([](const Series& s) { return s.metric.name == "b"; }, 0, 100);
  ASSERT_EQ(data.size(), 1u);
  EXPECT_THAT(data[0].points, ElementsAre(Point{10, 102}, Point{20, 104}, Point{30, 6}));
}

TEST(Store, TheNewestRowsStayOpenForWhatComesLate) {
  GroupStore store({.first_rows = 4, .max_rows = 8, .late_rows = 3});
  std::vector<size_t> sealed;
  store.OnSeal([&](const SealedBlock& block) { sealed.push_back(block.info.rows); });
  store.SetSchema(Schema::Make({Named("a"), Named("b")}));
  for (Nanos t = 1; t <= 40; ++t) {
    store.Append(t, std::vector{static_cast<double>(t), 2.0 * static_cast<double>(t)});
    const Nanos late = std::max<Nanos>(t - 2, 1);
    EXPECT_TRUE(store.Amend(late, [](std::span<double> row) { row[1] += 1000; })) << t;
  }
  EXPECT_THAT(sealed, ElementsAre(4, 8, 8, 8, 8));
  store.Seal();
  EXPECT_THAT(sealed, ElementsAre(4, 8, 8, 8, 8, 4));
  const auto data = store.Read(Everything, 0, 100);
  ASSERT_EQ(data.size(), 2u);
  ASSERT_EQ(data[1].points.size(), 40u);
  for (Nanos t = 2; t <= 38; ++t) {
    const auto at = static_cast<size_t>(t - 1);
    EXPECT_EQ(data[0].points[at], (Point{t, static_cast<double>(t)}));
    EXPECT_EQ(data[1].points[at], (Point{t, 2.0 * static_cast<double>(t) + 1000}));
  }
}

TEST(Store, ForgetsTheOldestBeyondItsMemoryAndSaysSo) {
  GroupStore::Options options = Small();
  options.memory_limit = 2000;
  GroupStore store(options);
  store.SetSchema(Schema::Make({Named("a")}));
  for (Nanos t = 1; t <= 400; ++t) store.Append(t, std::vector<double>{std::sqrt(t)});
  EXPECT_LE(store.sealed_bytes(), options.memory_limit);
  EXPECT_GT(store.dropped_rows(), 0u);
  const auto data = store.Read(Everything, 0, 1000);
  ASSERT_EQ(data.size(), 1u);
  EXPECT_EQ(data[0].points.size() + store.dropped_rows(), 400u);
  EXPECT_EQ(data[0].points.back().time, 400);
}

TEST(Store, SchemasCountAgainstTheMemoryToo) {
  GroupStore::Options options = Small();
  options.memory_limit = 100'000;
  GroupStore store(options);
  std::vector<Series> series;
  for (int i = 0; i < 100; ++i) {  // an application that registers one metric at a time
    series.push_back(Named("metric_" + std::to_string(i)));
    store.SetSchema(Schema::Make(series));
    store.Append(i, std::vector<double>(series.size(), 1));
  }
  EXPECT_GT(store.dropped_rows(), 0u);
}

}  // namespace
}  // namespace sonde::series_store_test
