// What programs for metric-proxy send, and what becomes of the names in it.
#include <gtest/gtest.h>

#include <cmath>
#include <set>
#include <string>

#include "daemon/collect/proxy/json_reader.h"
#include "daemon/collect/proxy/message.h"
#include "daemon/collect/proxy/peer_rank.h"
#include "daemon/collect/proxy/series_name.h"

namespace sonde::collect {
namespace {

using Kind = ProxyMessage::Kind;

// The message, or one of kind kOther with the name "corrupt".
ProxyMessage Read(std::string_view bytes) {
  ProxyMessage message;
  if (DecodeProxyMessage(bytes, message).ok()) return message;
  message = {};
  message.name = "corrupt";
  return message;
}

bool IsCorrupt(std::string_view bytes) { return Read(bytes).name == "corrupt"; }

TEST(ProxyMessage, AMetricIsACounterOrAGauge) {
  const ProxyMessage counter = Read(
      R"({"Desc":{"name":"steps","doc":"Time steps","ctype":{"Counter":{"ts":0,"value":0.0}}}})");
  EXPECT_EQ(counter.kind, Kind::kMetric);
  EXPECT_EQ(counter.type, MetricType::kCounter);
  EXPECT_EQ(counter.name, "steps");
  EXPECT_EQ(counter.help, "Time steps");
  const ProxyMessage gauge = Read(
      R"({"Desc":{"name":"load","doc":"","ctype":{"Gauge":{"min":0.0,"max":0.0,"hits":0.0,"total":0.0}}}})");
  EXPECT_EQ(gauge.kind, Kind::kMetric);
  EXPECT_EQ(gauge.type, MetricType::kGauge);
}

TEST(ProxyMessage, AValueIsWhatIsAddedOrTheMean) {
  const ProxyMessage counter =
      Read(R"({"Value":{"name":"steps","value":{"Counter":{"ts":1700000000000000,"value":2.5}}}})");
  EXPECT_EQ(counter.kind, Kind::kValue);
  EXPECT_EQ(counter.type, MetricType::kCounter);
  EXPECT_EQ(counter.value, 2.5);
  const ProxyMessage gauge =
      Read(R"({"Value":{"name":"load","value":{"Gauge":{"min":1,"max":4,"hits":4,"total":1e1}}}})");
  EXPECT_EQ(gauge.type, MetricType::kGauge);
  EXPECT_EQ(gauge.value, 2.5);
}

TEST(ProxyMessage, NumbersThatAreNotFiniteAreMissing) {
  EXPECT_TRUE(std::isnan(
      Read(R"({"Value":{"name":"n","value":{"Counter":{"ts":1,"value":null}}}})").value));
  EXPECT_TRUE(std::isnan(
      Read(
          R"({"Value":{"name":"g","value":{"Gauge":{"min":null,"max":null,"hits":1.0,"total":null}}}})")
          .value));
  EXPECT_TRUE(std::isnan(
      Read(R"({"Value":{"name":"g","value":{"Gauge":{"min":0,"max":0,"hits":0.0,"total":3.0}}}})")
          .value));
}

TEST(ProxyMessage, WhatIsNotKnownIsPassedOver) {
  for (const std::string_view text : {
           R"({"JobDesc":{"jobid":"7-0","command":"a \"b\"","size":2,"end_time":0}})",
           R"({"Bye":null})",
           R"({"More":[1,[true,false],{"a":[]},"x",-0.5E-3]})",
           R"({"Value":{"name":"h","value":{"Histogram":{"buckets":[1,2]}}}})",
       }) {
    EXPECT_FALSE(IsCorrupt(text)) << text;
    EXPECT_EQ(Read(text).kind, Kind::kOther) << text;
  }
  const ProxyMessage later = Read(
      " { \"Value\" : { \"unit\" : [ ] , \"value\" : { \"Counter\" : { \"value\" : 1 , \"by\" : { "
      "} } } , "
      "\"name\" : \"n\" } } ");
  EXPECT_EQ(later.kind, Kind::kValue);
  EXPECT_EQ(later.value, 1);
}

TEST(ProxyMessage, TextsMayHaveAnyCharacter) {
  EXPECT_EQ(
      Read(
          R"({"Value":{"name":"a\"\\\/\b\f\n\r\té\u00e9\uD83D\uDE00","value":{"Counter":{"value":1}}}})")
          .name,
      "a\"\\/\b\f\n\r\t\u00e9\u00e9\U0001f600");
}

TEST(ProxyMessage, WhatIsNoMessageIsCorrupt) {
  std::string deep = R"({"JobDesc":)";
  for (int i = 0; i < 1000; ++i) deep += '[';
  for (const std::string_view text : {
           std::string_view(""),
           std::string_view("{}"),
           std::string_view("null"),
           std::string_view("[]"),
           std::string_view(R"({"Value":{"name":"n","value":{"Counter":{"ts":1,"value":1}}})"),
           std::string_view(R"({"Value":{"name":"n","value":{"Counter":{"ts":1,"value":1}}}}x)"),
           std::string_view(R"({"Value":{"name":"n","value":{"Counter":{"ts":1}}}})"),
           std::string_view(R"({"Value":{"name":"n","value":{"Gauge":{"hits":1}}}})"),
           std::string_view(R"({"Value":{"name":"n","value":{}}})"),
           std::string_view(R"({"Value":{"name":"n","value":1}})"),
           std::string_view(R"({"Value":{"value":{"Counter":{"value":1}}}})"),
           std::string_view(R"({"Value":{"name":"n"}})"),
           std::string_view(R"({"Value":{"name":7,"value":{"Counter":{"value":1}}}})"),
           std::string_view(R"({"Value":{"name":"n","value":{"Counter":{"value":1},"Gauge":1}}})"),
           std::string_view(R"({"JobDesc":{},"Value":{}})"),
           std::string_view(R"({"JobDesc":{"a":1,}})"),
           std::string_view("{\"JobDesc\":\"\x01\"}"),
           std::string_view("{\"JobDesc\":\"\xff\"}"),
           std::string_view(R"({"JobDesc":"\ud83d"})"),
           std::string_view(R"({"JobDesc":"\ude00"})"),
           std::string_view(R"({"JobDesc":"\u00g0"})"),
           std::string_view(R"({"JobDesc":"\u-123"})"),
           std::string_view(R"({"JobDesc":"\q"})"),
           std::string_view(R"({"JobDesc":"\)"),
           std::string_view(R"({"JobDesc":nul})"),
           std::string_view(deep),
       }) {
    EXPECT_TRUE(IsCorrupt(text)) << text;
  }
}

TEST(ProxyMessage, NumbersAreThoseOfJson) {
  for (const std::string_view number : {"0", "-0", "12", "1.5", "-1.5e3", "1E+2", "2e-2"}) {
    double value = 0;
    JsonReader in(number);
    EXPECT_TRUE(in.Number(value) && in.AtEnd()) << number;
    EXPECT_EQ(value, std::stod(std::string(number)));
  }
  for (const std::string_view number :
       {"", "-", "+1", "01", ".5", "1.", "1e", "1e+", "0x10", "inf", "nan", "1e999", "1_0"}) {
    double value = 0;
    JsonReader in(number);
    EXPECT_FALSE(in.Number(value) && in.AtEnd()) << number;
  }
}

std::string Shown(std::string_view text) {
  const Series series = ProxySeries(text);
  return SeriesName(series.metric.name, series.tags);
}

TEST(ProxySeries, NamesAndLabelsStayWhereTheyCan) {
  EXPECT_EQ(Shown("mpi___hits___MPI_Send"), "mpi___hits___MPI_Send");
  EXPECT_EQ(Shown("io.read-bytes:x"), "io.read-bytes:x");
  EXPECT_EQ(Shown("calls{name=\"read\"}"), "calls{name=\"read\"}");
  EXPECT_EQ(Shown("calls{b=\"2\", a=\"x,y}\"}"), "calls{a=\"x,y}\",b=\"2\"}");
  EXPECT_EQ(Shown("calls{}"), "calls");
  EXPECT_EQ(Shown("calls{a=\"\"}"), "calls");
}

TEST(ProxySeries, WhatANameCannotHaveIsReplacedAndTold) {
  EXPECT_EQ(Shown("read bytes"), "read_bytes{proxy_name=\"read bytes\"}");
  EXPECT_EQ(Shown("0x1f_libm"), "_0x1f_libm{proxy_name=\"0x1f_libm\"}");
  EXPECT_EQ(Shown("a{b"), "a_b{proxy_name=\"a{b\"}");
  EXPECT_EQ(Shown("a{task=\"1\"}"), "a{exported_task=\"1\",proxy_name=\"a{task=\\\"1\\\"}\"}");
  EXPECT_EQ(Shown("a{b-c=\"1\"}"), "a{b_c=\"1\",proxy_name=\"a{b-c=\\\"1\\\"}\"}");
}

// Names of functions may be as long as these.
TEST(ProxySeries, LongNamesAreCutAndStayApart) {
  const std::string common(300, 'x');
  const Series one = ProxySeries(common + "1"), two = ProxySeries(common + "2");
  EXPECT_EQ(one.metric.name, std::string(kMaxNameLength, 'x'));
  EXPECT_EQ(two.metric.name, one.metric.name);
  EXPECT_NE(one.tags, two.tags);
  EXPECT_TRUE(one.tags.Find(kProxyNameTag)->starts_with("xxxx"));
}

TEST(ProxySeries, DifferentTextsAreDifferentSeriesWhichSondeAccepts) {
  std::set<std::string> all;
  size_t texts = 0;
  const std::string long_value(200, 'v');
  const std::string many = R"(a{a="1",b="2",c="3",d="4",e="5",f="6",g="7")";
  for (const std::string& text : {std::string(),
                                  std::string("_"),
                                  std::string("a b"),
                                  std::string("a_b"),
                                  std::string("a.b"),
                                  std::string("a/b"),
                                  std::string("a\nb"),
                                  std::string("a\tb"),
                                  std::string("a\xff"),
                                  std::string("a\xfe"),
                                  std::string("\u00e9"),
                                  std::string("\u00e8"),
                                  std::string("{}"),
                                  std::string("a{"),
                                  std::string("a}"),
                                  std::string("a{b}"),
                                  std::string("a{b=}"),
                                  std::string("a{b=c}"),
                                  std::string("a{b=\"c\""),
                                  std::string("a{b=\"c\"}}"),
                                  std::string("a{b=\"c\"d}"),
                                  std::string("a{host=\"c\"}"),
                                  std::string("a{exported_host=\"c\"}"),
                                  std::string("a{proxy_name=\"a b\"}"),
                                  std::string("a{exported_proxy_name=\"a b\"}"),
                                  std::string("a{b=\"\\\\\"}"),
                                  std::string("a{b=\"\\\"\"}"),
                                  std::string("a{b=\"\\n\"}"),
                                  std::string("a{b=\"n\"}"),
                                  std::string("a{b=\"1\",b=\"2\"}"),
                                  std::string("a{b=\"2\"}"),
                                  std::string("a{1b=\"2\"}"),
                                  std::string("a{_1b=\"2\"}"),
                                  std::string("a{b=\"") + long_value + "\"}",
                                  std::string("a{b=\"") + long_value + "w\"}",
                                  many + "}",
                                  many + R"(,h="8"})",
                                  many + R"(,h="9"})",
                                  many + R"(,h="8",i="9"})",
                                  std::string(4000, 'b'),
                                  std::string(4001, 'b')}) {
    const Series series = ProxySeries(text);
    EXPECT_TRUE(CheckMetricName(series.metric.name).ok()) << text;
    for (const auto& [key, value] : series.tags.pairs()) {
      EXPECT_TRUE(CheckTag(key, value).ok()) << text << ": " << key << "=" << value;
    }
    EXPECT_LE(series.tags.pairs().size(), kMostProxyTags) << text;
    EXPECT_TRUE(all.insert(SeriesName(series.metric.name, series.tags)).second) << text;
    ++texts;
  }
  EXPECT_EQ(all.size(), texts);
}

TEST(PeerRank, IsThatOfTheInnermostLauncher) {
  using namespace std::string_literals;
  EXPECT_EQ(RankInEnvironment("HOME=/\0SLURM_PROCID=3\0PATH=/bin\0"s), 3);
  EXPECT_EQ(RankInEnvironment("SLURM_PROCID=0\0PMIX_RANK=0\0PMI_RANK=6\0"s), 6);
  EXPECT_EQ(RankInEnvironment("PMI_RANK=4"s), 4);
  EXPECT_EQ(RankInEnvironment("XSLURM_PROCID=3\0SLURM_PROCIDS=4\0SLURM_PROCID\0"s), -1);
  EXPECT_EQ(RankInEnvironment("SLURM_PROCID=99999999999\0PMI_RANK=-1\0"s), -1);
  EXPECT_EQ(RankInEnvironment(""), -1);
}

}  // namespace
}  // namespace sonde::collect
