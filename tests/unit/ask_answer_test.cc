#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <string>

#include "daemon/head/answers/answer_bytes.h"
#include "daemon/node/ask/ask_request.h"
#include "libclient/ask/answer.h"
#include "libclient/ask/bytes.h"

namespace sonde {
namespace {

using client::Bytes;
using client::DecodeList;
using client::DecodeResult;
using testing::HasSubstr;

struct Free {
  void operator()(void* memory) const { free(memory); }
};

web::Answer TwoHosts() {
  web::Answer answer;
  answer.nodes_answered = 2;
  answer.nodes_expected = 3;
  answer.results.push_back({"residual",
                            Tags{{"host", "n1"}, {"job", "7.0"}},
                            {"task"},
                            {{kSecond, 1.5}, {2 * kSecond, std::nan("")}, {kSecond / 2, -3}}});
  answer.results.push_back({"residual", Tags{}, {}, {}});
  return answer;
}

TEST(AskAnswer, SaysThatRowsAnswerAlone) {
  web::Answer answer = TwoHosts();
  answer.rows_only = "a node has not answered";
  for (const bool late : {false, true}) {
    const std::unique_ptr<sonde_result_t, Free> result(
        DecodeResult(head::EncodeAnswer(answer, late)));
    ASSERT_NE(result, nullptr);
    EXPECT_EQ(result->rows_only, 1);
    EXPECT_EQ(result->late, late ? 1 : 0);
  }
}

TEST(AskAnswer, IsWhatTheHeadSent) {
  const std::string body = head::EncodeAnswer(TwoHosts(), true);
  const std::unique_ptr<sonde_result_t, Free> result(DecodeResult(body));
  ASSERT_NE(result, nullptr);
  EXPECT_EQ(result->nodes_answered, 2u);
  EXPECT_EQ(result->nodes_expected, 3u);
  EXPECT_EQ(result->late, 1);
  EXPECT_EQ(result->rows_only, 0);
  ASSERT_EQ(result->series_count, 2u);
  const sonde_series_t& series = result->series[0];
  EXPECT_STREQ(series.metric, "residual");
  EXPECT_STREQ(sonde_series_tag(&series, "host"), "n1");
  EXPECT_STREQ(sonde_series_tag(&series, "job"), "7.0");
  EXPECT_EQ(sonde_series_tag(&series, "task"), nullptr);
  ASSERT_EQ(series.aggregated_count, 1u);
  EXPECT_STREQ(series.aggregated[0], "task");
  ASSERT_EQ(series.point_count, 3u);
  EXPECT_EQ(series.points[0].time_ns, kSecond);
  EXPECT_EQ(series.points[0].value, 1.5);
  EXPECT_TRUE(std::isnan(series.points[1].value));
  EXPECT_EQ(series.points[2].time_ns, kSecond / 2);
  EXPECT_EQ(result->series[1].point_count, 0u);
}

TEST(AskAnswer, EveryPartOfItIsChecked) {
  const std::string body = head::EncodeAnswer(TwoHosts(), false);
  for (size_t n = 0; n < body.size(); ++n) {
    EXPECT_EQ(DecodeResult(std::string_view(body).substr(0, n)), nullptr) << n;
  }
  EXPECT_EQ(DecodeResult(body + "x"), nullptr);
  std::string newer = body;
  newer[0] = 2;
  EXPECT_EQ(DecodeResult(newer), nullptr);
  // Counts far beyond what is there.
  EXPECT_EQ(DecodeResult(std::string("\1\1\1\0\xff\xff\xff\xff\x07", 9)), nullptr);
}

TEST(AskListing, IsWhatTheHeadSent) {
  Series counter;
  counter.metric.name = "steps_total";
  counter.metric.unit = "1";
  counter.metric.help = "Steps done";
  counter.metric.type = MetricType::kCounter;
  counter.metric.level = 2;
  counter.tags = {{"kind", "x"}};
  Series bare;
  bare.metric.name = "load";
  const std::string body = head::EncodeListing({counter, bare});
  const std::unique_ptr<sonde_list_t, Free> list(DecodeList(body));
  ASSERT_NE(list, nullptr);
  ASSERT_EQ(list->metric_count, 2u);
  const sonde_metric_info_t& first = list->metrics[0];
  EXPECT_STREQ(first.name, "steps_total");
  EXPECT_STREQ(first.unit, "1");
  EXPECT_STREQ(first.help, "Steps done");
  EXPECT_STREQ(first.type, "counter");
  EXPECT_EQ(first.level, 2);
  ASSERT_EQ(first.tag_count, 1u);
  EXPECT_STREQ(first.tags[0].value, "x");
  EXPECT_STREQ(list->metrics[1].type, "gauge");
  for (size_t n = 0; n < body.size(); ++n) {
    EXPECT_EQ(DecodeList(std::string_view(body).substr(0, n)), nullptr) << n;
  }
}

// --- What a process asks

// As libclient/ask/query.cc writes it.
struct Asked {
  std::string metric = "load", aggregator = "max", downsample = "10s-avg";
  uint8_t flags = 0;
  std::string type = "wildcard", key = "host", pattern = "n*";
  int64_t start = kSecond, end = 60 * kSecond;

  std::string Body() const {
    Bytes out;
    out.Text(metric);
    out.Text(aggregator);
    out.Text(downsample);
    out.Fixed(flags);
    out.Varint(1);
    out.Text(type);
    out.Text(key);
    out.Text(pattern);
    out.Fixed<uint8_t>(1);
    out.Signed(start);
    out.Signed(end);
    return std::string(out.view());
  }
};

TEST(AskRequest, IsAQueryInOpenTsdbsWords) {
  Asked asked;
  asked.flags = client::kRateCounter | client::kRateDrop;
  const Result<QuerySpec> spec = node::DecodeAskQuery(asked.Body());
  ASSERT_TRUE(spec.ok()) << spec.status().message();
  EXPECT_EQ(spec->metric, "load");
  EXPECT_EQ(spec->aggregator, Aggregator::kMax);
  ASSERT_TRUE(spec->downsample.has_value());
  EXPECT_EQ(spec->downsample->interval, 10 * kSecond);
  EXPECT_TRUE(spec->rate && spec->rate_options.counter && spec->rate_options.drop_resets);
  ASSERT_EQ(spec->filters.size(), 1u);
  EXPECT_EQ(spec->filters[0].type, TagFilter::Type::kWildcard);
  EXPECT_EQ(spec->filters[0].pattern, "n*");
  EXPECT_TRUE(spec->filters[0].group_by);
  EXPECT_EQ(spec->end - spec->start, 59 * kSecond);
  const std::string body = asked.Body();
  for (size_t n = 0; n < body.size(); ++n) {
    EXPECT_FALSE(node::DecodeAskQuery(std::string_view(body).substr(0, n)).ok()) << n;
  }
}

TEST(AskRequest, WhatIsWrongIsNamed) {
  const auto why = [](const Asked& asked) {
    const Result<QuerySpec> spec = node::DecodeAskQuery(asked.Body());
    EXPECT_EQ(spec.status().code(), Code::kInvalid);
    return std::string(spec.status().message());
  };
  EXPECT_THAT(why({.metric = "no name"}), HasSubstr("'no name' is no metric name"));
  EXPECT_THAT(why({.aggregator = "mean"}), HasSubstr("expected one of sum, avg"));
  EXPECT_THAT(why({.downsample = "often"}), HasSubstr("such as 1m-avg"));
  EXPECT_THAT(why({.type = "like"}), HasSubstr("expected literal_or"));
  EXPECT_THAT(why({.key = "a b"}), HasSubstr("'a b' is no tag"));
  EXPECT_THAT(why({.start = 5, .end = 5}), HasSubstr("end must lie after its start"));
}

TEST(AskRequest, ASubscriptionHasNoTimesAndNoDownsample) {
  Asked asked;
  asked.start = 9;
  asked.end = 3;
  const Result<QuerySpec> spec = node::DecodeAskSubscription(asked.Body());
  ASSERT_TRUE(spec.ok()) << spec.status().message();
  EXPECT_FALSE(spec->downsample.has_value());
  // Equal ones are to be one.
  asked.start = 1;
  asked.downsample = "1m-sum";
  std::string first, second;
  EncodeQuery(*spec, first);
  EncodeQuery(*node::DecodeAskSubscription(asked.Body()), second);
  EXPECT_EQ(first, second);
}

}  // namespace
}  // namespace sonde
