// The small languages inside OpenTSDB's requests.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "web/opentsdb/ask.h"
#include "web/opentsdb/request.h"

namespace sonde::web::web_opentsdb_request_test {
namespace {

constexpr Nanos kNow = 1'800'000'000 * kSecond;

TEST(OpenTsdbTime, TakesEveryForm) {
  const std::pair<const char*, Nanos> cases[] = {
      {"1700000000", 1'700'000'000 * kSecond},
      {"1700000000123", 1'700'000'000 * kSecond + 123 * kMillisecond},
      {"1700000000.5", 1'700'000'000 * kSecond + 500 * kMillisecond},
      {"123ms", 123 * kMillisecond},
      {"now", kNow},
      {"5m-ago", kNow - 300 * kSecond},
      {"250ms-ago", kNow - 250 * kMillisecond},
      {"1n-ago", kNow - 30 * 86400 * kSecond},
      {"9999y-ago", 0},
      {"2026/01/31-10:00:30", 1'769'853'630 * kSecond},
      {"2026/01/31-10:00", 1'769'853'600 * kSecond},
      {"2026/01/31 10:00", 1'769'853'600 * kSecond},
      {"2026/01/31", 1'769'817'600 * kSecond},
  };
  for (const auto& [text, expected] : cases) {
    const Result<Nanos> time = ParseOpenTsdbTime(text, kNow);
    ASSERT_TRUE(time.ok()) << text;
    EXPECT_EQ(*time, expected) << text;
  }
}

TEST(OpenTsdbTime, RefusesTheRest) {
  for (const char* text : {"", "x", "-5", "5q-ago", "m-ago", "-ago", "-5m-ago", "1.", ".5",
                           "1.2345", "99999999999999999999", "9223372036854775807", "2026/13/01",
                           "2026/01/31-25:00", "2026/01/31-10:00:30x", "1e5"}) {
    EXPECT_EQ(ParseOpenTsdbTime(text, kNow).status().code(), Code::kInvalid) << text;
  }
}

TEST(OpenTsdbTime, DatesAreThoseOfTheirZone) {
  TimeZone zone = *TimeZone::Load("Europe/Berlin");
  EXPECT_EQ(*ParseOpenTsdbTime("2026/01/31-10:00", kNow, zone), 1'769'850'000 * kSecond);
  EXPECT_EQ(*ParseOpenTsdbTime("2026/07/31-10:00", kNow, zone), 1'785'484'800 * kSecond);
  EXPECT_EQ(*ParseOpenTsdbTime("1769850000", kNow, zone), 1'769'850'000 * kSecond);
  EXPECT_FALSE(ParseOpenTsdbTime("1970/01/01", kNow, zone).ok());
}

QuerySpec Sub(std::string_view fields) {
  const Result<OpenTsdbQuery> query = ParseOpenTsdbQuery(
      R"({"start":1,"queries":[{"metric":"m","aggregator":"sum",)" + std::string(fields) + "}]}",
      kNow);
  EXPECT_TRUE(query.ok()) << query.status().message();
  return query.ok() ? query->queries.at(0) : QuerySpec();
}

TEST(OpenTsdbQuery, TagsAreFiltersThatGroup) {
  using Type = TagFilter::Type;
  const QuerySpec spec = Sub(R"~("tags":{"a":"*","b":"web*","c":"x|y","d":"regexp(n[1-3])"})~");
  ASSERT_EQ(spec.filters.size(), 4u);
  EXPECT_EQ(spec.filters[0].type, Type::kWildcard);
  EXPECT_EQ(spec.filters[1].type, Type::kIWildcard);
  EXPECT_EQ(spec.filters[2].type, Type::kLiteralOr);
  EXPECT_EQ(spec.filters[2].pattern, "x|y");
  EXPECT_EQ(spec.filters[3].type, Type::kRegexp);
  EXPECT_EQ(spec.filters[3].pattern, "n[1-3]");
  for (const TagFilter& filter : spec.filters) EXPECT_TRUE(filter.group_by);
}

TEST(OpenTsdbQuery, OfFiltersAndTagsTheLaterCounts) {
  constexpr std::string_view kFilters =
      R"("filters":[{"type":"wildcard","tagk":"a","filter":"*","groupBy":false}])";
  EXPECT_TRUE(Sub(std::string(kFilters) + R"(,"tags":{"b":"1"})").filters.at(0).group_by);
  EXPECT_FALSE(Sub(R"("tags":{"b":"1"},)" + std::string(kFilters)).filters.at(0).group_by);
}

TEST(OpenTsdbQuery, TakesWhatGrafanaSends) {
  // The browser's side, version 2.3 and milliseconds.
  const Result<OpenTsdbQuery> query = ParseOpenTsdbQuery(
      R"({"start":1799996400000,"queries":[{"metric":"node_load1","aggregator":"avg",)"
      R"("downsample":"1m-avg","filters":[{"filter":"*","groupBy":true,"tagk":"host",)"
      R"("type":"wildcard"}],"rate":true,"rateOptions":{"counter":true,"counterMax":"0",)"
      R"("resetValue":null,"dropResets":true},"explicitTags":false}],"msResolution":true,)"
      R"("globalAnnotations":true,"showQuery":true})",
      kNow);
  ASSERT_TRUE(query.ok()) << query.status().message();
  EXPECT_TRUE(query->milliseconds && query->show_query);
  const QuerySpec& spec = query->queries.at(0);
  EXPECT_EQ(spec.start, kNow - 3600 * kSecond);
  EXPECT_EQ(spec.end, kNow);
  EXPECT_EQ(spec.downsample->interval, 60 * kSecond);
  EXPECT_TRUE(spec.rate && spec.rate_options.counter && spec.rate_options.drop_resets);
  // Alerting leaves a dash behind.
  EXPECT_TRUE(Sub(R"("downsample":"1m-avg-")").downsample.has_value());
}

TEST(OpenTsdbQuery, CalendarsAreResolvedInTheirZone) {
  constexpr std::string_view kQueries =
      R"("queries":[{"metric":"m","aggregator":"sum","downsample":"1d-sum"},)"
      R"({"metric":"m","aggregator":"sum","downsample":"0all-sum"}])";
  const auto ask = [&](std::string_view fields) {
    return ParseOpenTsdbQuery("{" + std::string(fields) + std::string(kQueries) + "}", kNow);
  };
  // The day on which clocks are put back, as its dates are meant there.
  const auto query = ask(
      R"("start":"2026/10/25","end":"2026/10/26","timezone":"Europe/Berlin","useCalendar":true,)");
  ASSERT_TRUE(query.ok()) << query.status().message();
  const std::shared_ptr<const Calendar> calendar = query->queries.at(0).downsample->calendar;
  ASSERT_NE(calendar, nullptr);
  ASSERT_EQ(calendar->edges.size(), 3u);
  EXPECT_EQ(calendar->edges[0], query->start);
  EXPECT_EQ(calendar->edges[1] - calendar->edges[0], 25 * 3600 * kSecond);
  EXPECT_EQ(query->queries.at(1).downsample->calendar, nullptr);
  // As it is passed on, and as it is shown.
  const auto again = ParseOpenTsdbQuery(QueryToJson(query->queries.at(0)), kNow);
  ASSERT_TRUE(again.ok()) << again.status().message();
  EXPECT_EQ(again->queries.at(0).downsample->calendar->edges, calendar->edges);
  EXPECT_EQ(DownsampleText(*query->queries.at(0).downsample), "1dc-sum");

  EXPECT_EQ(ask(R"("start":1,"useCalendar":false,)")->queries.at(0).downsample->calendar, nullptr);
  for (const char* fields : {R"("start":1,"timezone":"Nowhere",)", R"("start":1,"timezone":{},)",
                             R"("start":1,"useCalendar":7,)", R"("start":"9h-ago","end":4e9,)"}) {
    EXPECT_EQ(ask(fields).status().code(), Code::kInvalid) << fields;
  }
}

TEST(OpenTsdbQuery, SeriesAreNotAskedForByTsuid) {
  const auto query = [](std::string_view tsuids) {
    return ParseOpenTsdbQuery(
        R"({"start":1,"queries":[{"metric":"m","aggregator":"sum","tsuids":)" +
            std::string(tsuids) + "}]}",
        kNow);
  };
  EXPECT_TRUE(query("null").ok());
  EXPECT_TRUE(query("[]").ok());
  EXPECT_NE(query(R"(["000001000001000001"])").status().message().find("tsuid"), std::string::npos);
  Request request;
  ASSERT_TRUE(ParseTarget("/api/query?start=1&tsuid=sum:000001000001", request).ok());
  EXPECT_NE(ParseOpenTsdbQuery(request, kNow).status().message().find("tsuid"), std::string::npos);
}

TEST(OpenTsdbQuery, BoundsWhatItTakes) {
  std::string many = R"({"start":1,"queries":[)";
  for (size_t i = 0; i <= kMaxSubQueries; ++i) {
    many += (i ? "," : "") + std::string(R"({"metric":"m","aggregator":"sum"})");
  }
  EXPECT_FALSE(ParseOpenTsdbQuery(many + "]}", kNow).ok());
  EXPECT_FALSE(ParseOpenTsdbQuery(std::string(100'000, '['), kNow).ok());
}

TEST(OpenTsdbLookup, ReadsTheExpression) {
  const Result<OpenTsdbLookup> lookup = ParseLookupExpression("node_load1{host=*,job=4711.0}");
  ASSERT_TRUE(lookup.ok());
  EXPECT_EQ(lookup->metric, "node_load1");
  EXPECT_EQ(lookup->tags.at(1), std::pair(std::string("job"), std::string("4711.0")));
  EXPECT_TRUE(ParseLookupExpression("")->metric.empty());
  for (const char* text : {"m{", "m{a", "m{a}", "m{a=b,}x"}) {
    EXPECT_FALSE(ParseLookupExpression(text).ok()) << text;
  }
}

}  // namespace
}  // namespace sonde::web::web_opentsdb_request_test
