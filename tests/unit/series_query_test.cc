#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <string>
#include <vector>

#include "series/query/query.h"

namespace sonde::series_query_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr Nanos kMinute = 60 * kSecond;

Series Named(const std::string& name, const Tags& tags) {
  Series s;
  s.metric.name = name;
  s.tags = tags;
  return s;
}

// Times in seconds.
SeriesData Data(const Tags& tags, const std::vector<std::pair<int, double>>& points) {
  SeriesData data{Named("m", tags), {}};
  for (const auto& [second, value] : points) data.points.push_back({second * kSecond, value});
  return data;
}

QuerySpec Spec(Aggregator aggregator, int start, int end) {
  QuerySpec spec;
  spec.metric = "m";
  spec.aggregator = aggregator;
  spec.start = start * kSecond;
  spec.end = end * kSecond;
  return spec;
}

// One group's points as "second:value ...".
std::string Points(const std::vector<Point>& points) {
  std::string text;
  for (const Point& p : points) {
    char item[64];
    std::snprintf(item, sizeof(item), "%s%g:%g", text.empty() ? "" : " ",
                  static_cast<double>(p.time) / kSecond, p.value);
    text += item;
  }
  return text;
}

std::string Ask(const QuerySpec& spec, const std::vector<SeriesData>& series) {
  const auto results = Evaluate(spec, series);
  if (!results.ok()) return std::string(results.status().message());
  if (results->size() != 1) return std::to_string(results->size()) + " groups";
  return Points(results->front().points);
}

Downsample By(const std::string& text) {
  const auto how = ParseDownsample(text);
  EXPECT_TRUE(how.ok()) << how.status().message();
  return how.ok() ? *how : Downsample{};
}

TEST(Query, ASeriesTakesPartBetweenItsOwnFirstAndLastPoint) {
  const std::vector<SeriesData> series = {Data({{"host", "a"}}, {{10, 1}, {20, 3}, {40, 5}}),
                                          Data({{"host", "b"}}, {{15, 10}, {30, 40}})};
  EXPECT_EQ(Ask(Spec(Aggregator::kSum, 0, 100), series), "10:1 15:12 20:23 30:44 40:5");
  EXPECT_EQ(Ask(Spec(Aggregator::kAvg, 0, 100), series), "10:1 15:6 20:11.5 30:22 40:5");
  EXPECT_EQ(Ask(Spec(Aggregator::kMin, 0, 100), series), "10:1 15:2 20:3 30:4 40:5");
  EXPECT_EQ(Ask(Spec(Aggregator::kMax, 0, 100), series), "10:1 15:10 20:20 30:40 40:5");
  EXPECT_EQ(Ask(Spec(Aggregator::kCount, 0, 100), series), "10:1 15:2 20:2 30:2 40:1");
}

TEST(Query, PointsOutsideTheRangeFeedRateAndInterpolationWithinTheirHour) {
  const std::vector<SeriesData> series = {
      Data({{"host", "a"}}, {{3590, 0}, {3610, 20}, {3640, 20}}),
      Data({{"host", "b"}}, {{3620, 1}})};
  // The point of the hour before does not count; that past the end does.
  EXPECT_EQ(Ask(Spec(Aggregator::kSum, 3605, 3630), series), "3610:20 3620:21");
  QuerySpec rate = Spec(Aggregator::kSum, 3620, 3650);
  rate.rate = true;
  EXPECT_EQ(Ask(rate, series), "3640:0");
}

TEST(Query, DownsamplingIsAlignedToTheEpoch) {
  const std::vector<SeriesData> series = {
      Data({}, {{59, 100}, {60, 1}, {119, 3}, {185, 8}, {239, 10}, {240, 50}})};
  QuerySpec spec = Spec(Aggregator::kSum, 30, 200);
  spec.downsample = By("1m-avg");
  // The bucket at 0 starts before the range; that at 180 holds the end and is filled past it.
  EXPECT_EQ(Ask(spec, series), "60:2 180:9");
  spec.downsample = By("1m-avg-nan");
  EXPECT_EQ(Ask(spec, series), "60:2 120:nan 180:9");
  spec.downsample = By("1m-max-zero");
  EXPECT_EQ(Ask(spec, series), "60:3 120:0 180:10");
  spec.downsample = By("1m-count-null");
  EXPECT_EQ(Ask(spec, series), "60:2 120:nan 180:2");
  spec.downsample = By("0all-sum");
  EXPECT_EQ(Ask(spec, series), "30:112");
}

TEST(Query, RatesArePerSecondAndOneFewer) {
  const std::vector<SeriesData> series = {Data({}, {{0, 10}, {10, 30}, {20, 20}, {30, 25}})};
  QuerySpec spec = Spec(Aggregator::kSum, 0, 100);
  spec.rate = true;
  EXPECT_EQ(Ask(spec, series), "10:2 20:-1 30:0.5");
  spec.rate_options.counter = true;
  spec.rate_options.counter_max = 100;
  EXPECT_EQ(Ask(spec, series), "10:2 20:9 30:0.5");
  spec.rate_options.reset_value = 5;
  EXPECT_EQ(Ask(spec, series), "10:2 20:0 30:0.5");
  spec.rate_options.drop_resets = true;
  EXPECT_EQ(Ask(spec, series), "10:2 30:0.5");
}

TEST(Query, ARateIsCarriedNotInterpolated) {
  const std::vector<SeriesData> series = {Data({{"host", "a"}}, {{0, 0}, {10, 10}, {30, 70}}),
                                          Data({{"host", "b"}}, {{0, 0}, {20, 100}})};
  QuerySpec spec = Spec(Aggregator::kSum, 0, 100);
  spec.rate = true;
  EXPECT_EQ(Ask(spec, series), "10:1 20:6 30:3");
}

TEST(Query, GroupsHaveTheirTagsAndTheOrderOfTheirValues) {
  const std::vector<SeriesData> series = {
      Data({{"host", "b"}, {"device", "x"}, {"job", "1"}}, {{1, 1}}),
      Data({{"host", "a"}, {"device", "x"}, {"job", "1"}}, {{1, 2}}),
      Data({{"host", "a"}, {"device", "y"}, {"job", "1"}, {"rack", "r"}}, {{1, 4}})};
  QuerySpec spec = Spec(Aggregator::kSum, 0, 10);
  spec.filters = {{TagFilter::Type::kWildcard, "host", "*", true}};
  const auto results = Evaluate(spec, series);
  ASSERT_TRUE(results.ok());
  ASSERT_EQ(results->size(), 2u);
  // As in OpenTSDB 2.4.1: a tag that only some of the series have differs from none.
  EXPECT_EQ((*results)[0].tags, (Tags{{"host", "a"}, {"job", "1"}, {"rack", "r"}}));
  EXPECT_THAT((*results)[0].aggregate_tags, ElementsAre("device"));
  EXPECT_EQ(Points((*results)[0].points), "1:6");
  EXPECT_EQ((*results)[1].tags, (Tags{{"host", "b"}, {"device", "x"}, {"job", "1"}}));
  EXPECT_THAT((*results)[1].aggregate_tags, IsEmpty());
}

TEST(Query, NoneLeavesEverySeriesAlone) {
  const std::vector<SeriesData> series = {Data({{"host", "b"}}, {{1, 1}, {70, 2}}),
                                          Data({{"host", "a"}}, {{2, 3}, {80, 5}})};
  QuerySpec spec = Spec(Aggregator::kNone, 0, 79);
  auto results = Evaluate(spec, series);
  ASSERT_EQ(results->size(), 2u);
  EXPECT_EQ(Points((*results)[0].points), "2:3");
  EXPECT_EQ(Points((*results)[1].points), "1:1 70:2");
  spec.downsample = By("1m-sum");
  results = Evaluate(spec, series);
  EXPECT_EQ(Points((*results)[0].points), "0:3 60:5");
}

TEST(Query, TheLastValueForATimeWinsAndMissingOnesAreMissing) {
  const std::vector<SeriesData> series = {Data({}, {{5, 2}, {1, 7}, {5, 3}, {3, std::nan("")}})};
  EXPECT_EQ(Ask(Spec(Aggregator::kSum, 0, 10), series), "1:7 5:3");
}

bool Matches(TagFilter::Type type, const std::string& pattern, const std::string& value) {
  QuerySpec spec = Spec(Aggregator::kSum, 0, 1);
  spec.filters = {{type, "host", pattern, false}};
  const auto filter = SeriesFilter::Make(spec);
  EXPECT_TRUE(filter.ok()) << filter.status().message();
  return filter.ok() && filter->Matches("m", Tags{{"host", value}, {"device", "x"}});
}

TEST(Filter, EveryTypeDoesWhatItsNameSays) {
  using T = TagFilter::Type;
  const struct {
    T type;
    const char* pattern;
    const char* yes;
    const char* no;
  } cases[] = {
      {T::kLiteralOr, "web1|web2", "web2", "web12"},
      {T::kLiteralOr, "|web1|", "web1", "WEB1"},
      {T::kNotLiteralOr, "web1|web2", "web3", "web1"},
      {T::kILiteralOr, "Web1|web2", "wEB1", "web3"},
      {T::kNotILiteralOr, "Web1|web2", "web3", "wEB2"},
      {T::kWildcard, "*", "anything", nullptr},
      {T::kWildcard, "web*", "web01", "Web01"},
      {T::kWildcard, "*.site", "n1.site", "n1.site.org"},
      {T::kWildcard, "w*b*1", "wabab1", "wab12"},
      {T::kWildcard, "a*a", "aba", "a"},
      {T::kIWildcard, "WEB*", "web01", "xweb01"},
      {T::kRegexp, "eb[0-9]", "web01", "web"},
      {T::kRegexp, "^n(1|2)$", "n2", "n21"},
      {T::kRegexp, "^.1$", "\u00fc1", "\u00fc\u00fc1"},
      {T::kRegexp, "x$", "\xff\xfex", "\xff\xfe"},
      {T::kRegexp, "(a+)+$", "aaa", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab"},
  };
  for (const auto& c : cases) {
    EXPECT_TRUE(Matches(c.type, c.pattern, c.yes)) << c.pattern << " " << c.yes;
    if (c.no != nullptr) {
      EXPECT_FALSE(Matches(c.type, c.pattern, c.no)) << c.pattern << " " << c.no;
    }
  }
}

TEST(Filter, EveryFilterNeedsItsKeyAndAllMustAgree) {
  QuerySpec spec = Spec(Aggregator::kSum, 0, 1);
  spec.filters = {{TagFilter::Type::kNotLiteralOr, "rack", "r1", false},
                  {TagFilter::Type::kWildcard, "host", "a*", false}};
  const auto filter = SeriesFilter::Make(spec);
  EXPECT_FALSE(filter->Matches("m", Tags{{"host", "a1"}}));
  EXPECT_TRUE(filter->Matches("m", Tags{{"host", "a1"}, {"rack", "r2"}}));
  EXPECT_FALSE(filter->Matches("m", Tags{{"host", "b1"}, {"rack", "r2"}}));
  EXPECT_FALSE(filter->Matches("other", Tags{{"host", "a1"}, {"rack", "r2"}}));
  EXPECT_TRUE(filter->Matches("m", Tags{{"host", "a1"}, {"job", "1"}, {"rack", "r2"}}));
  spec.explicit_tags = true;
  const auto exact = SeriesFilter::Make(spec);
  EXPECT_TRUE(exact->Matches("m", Tags{{"host", "a1"}, {"rack", "r2"}}));
  EXPECT_FALSE(exact->Matches("m", Tags{{"host", "a1"}, {"job", "1"}, {"rack", "r2"}}));
}

TEST(Filter, APatternThatDoesNotParseIsNamed) {
  using T = TagFilter::Type;
  for (const auto& [type, pattern] :
       std::vector<std::pair<T, std::string>>{{T::kNotKey, "web"},
                                              {T::kRegexp, "web("},
                                              {T::kRegexp, "^(?!web)"},
                                              {T::kWildcard, "web"},
                                              {T::kLiteralOr, "|"},
                                              {T::kLiteralOr, ""}}) {
    QuerySpec spec = Spec(Aggregator::kSum, 0, 1);
    spec.filters = {{type, "host", pattern, false}};
    const auto results = Evaluate(spec, {});
    EXPECT_EQ(results.status().code(), Code::kInvalid) << pattern;
    EXPECT_THAT(std::string(results.status().message()), HasSubstr("filter '" + pattern + "'"));
  }
}

TEST(Parse, DownsamplingsAsTheyAreWritten) {
  EXPECT_EQ(By("1m-avg").interval, kMinute);
  EXPECT_EQ(By("1M-avg").interval, kMinute);
  EXPECT_EQ(By("500ms-min").interval, 500 * kMillisecond);
  EXPECT_EQ(By("2n-sum").interval, 60 * 24 * 60 * kMinute);
  EXPECT_EQ(By("1m-avg-").fill, Downsample::Fill::kNone);
  EXPECT_EQ(By("1m-avg-NaN").fill, Downsample::Fill::kNan);
  EXPECT_EQ(By("30s-count-zero").function, Aggregator::kCount);
  for (const char* all : {"0all-max", "all-max", "1ALL-max"}) EXPECT_EQ(By(all).interval, 0) << all;
  const Downsample month = By("3nc-max-zero");
  ASSERT_NE(month.calendar, nullptr);
  EXPECT_EQ(month.calendar->count, 3);
  EXPECT_EQ(month.calendar->unit, Calendar::Unit::kMonths);
  EXPECT_EQ(month.fill, Downsample::Fill::kZero);
  EXPECT_NE(ParseDownsample("1d-max", true)->calendar, nullptr);
  EXPECT_EQ(ParseDownsample("0all-max", true)->calendar, nullptr);
  for (const char* bad : {"", "1m", "-avg", "0m-avg", "-1m-avg", "1x-avg", "m-avg", "1m-none",
                          "1m-what", "1m-avg-what", "1m-avg-nan-nan", "99999999999999y-avg",
                          "1-avg", "c-sum", "1c-sum", "0dc-sum", "xall-sum"}) {
    const auto how = ParseDownsample(bad);
    EXPECT_EQ(how.status().code(), Code::kInvalid) << bad;
  }
}

TEST(Parse, AggregatorsByName) {
  for (const auto name : AggregatorNames()) EXPECT_EQ(ToString(*ParseAggregator(name)), name);
  EXPECT_EQ(ParseAggregator("SUM").status().code(), Code::kInvalid);
}

// By themselves, for the tests of /api/query have no year of many buckets.
TEST(Query, CalendarsHaveBounds) {
  constexpr Nanos kYear = 365 * 86400 * kSecond;
  Downsample hours = By("1hc-avg");
  EXPECT_TRUE(ResolveCalendar({}, "", 0, 300 * 86400 * kSecond, hours).ok());
  const Status many = ResolveCalendar({}, "", 0, kYear, hours);
  EXPECT_EQ(many.code(), Code::kLimit);
  EXPECT_THAT(std::string(many.message()), HasSubstr("8191"));
  EXPECT_EQ(ResolveCalendar({}, "", 5, 5, hours).code(), Code::kInvalid);
  // The longest there can be.
  Downsample years = By("73yc-avg");
  EXPECT_TRUE(ResolveCalendar({}, "", kMaxQueryTime - 1, kMaxQueryTime, years).ok());
  EXPECT_EQ(years.calendar->edges.size(), 2u);
  // Who did not say of which range gets no answer.
  QuerySpec spec = Spec(Aggregator::kSum, 0, 10);
  spec.downsample = By("1dc-avg");
  EXPECT_EQ(Evaluate(spec, {}).status().code(), Code::kInvalid);
}

// Before anything is filled.
TEST(Query, FillingManySeriesIsRefusedWithTheirNumber) {
  std::vector<SeriesData> series(40);
  for (size_t i = 0; i < series.size(); ++i) {
    series[i].series.metric.name = "m";
    series[i].series.tags.Set("host", "n" + std::to_string(i));
    series[i].points = {{kSecond, 1}};
  }
  for (const Aggregator aggregator : {Aggregator::kSum, Aggregator::kNone}) {
    QuerySpec spec = Spec(aggregator, 0, 899'999);
    spec.metric = "m";
    spec.downsample = By("1s-avg-zero");
    const auto many = Evaluate(spec, series);
    EXPECT_EQ(many.status().code(), Code::kLimit);
    EXPECT_THAT(std::string(many.status().message()), HasSubstr("36000000 points of 40 series"));
    spec.downsample = By("1m-avg-zero");
    EXPECT_TRUE(Evaluate(spec, series).ok());
  }
}

TEST(Query, NonsenseIsRefused) {
  EXPECT_EQ(Evaluate(Spec(Aggregator::kSum, 5, 5), {}).status().code(), Code::kInvalid);
  QuerySpec many = Spec(Aggregator::kSum, 0, 2'000'000);
  many.downsample = By("1s-avg-nan");
  EXPECT_EQ(Evaluate(many, {}).status().code(), Code::kLimit);
}

}  // namespace
}  // namespace sonde::series_query_test
