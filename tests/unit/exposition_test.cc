// The reader of what exporters serve, and what becomes of it.
#include "cli/join/exposition.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <memory>

#include "cli/join/joined.h"

namespace sonde::join::exposition_test {
namespace {

struct Read {
  std::map<std::string, double> values;  // by series, as it stands there
  std::map<std::string, Meaning> meanings;
  Status status;
};

Read ReadAll(std::string_view text) {
  Read read;
  Exposition exposition(text);
  for (;;) {
    const Result<std::optional<Sample>> sample = exposition.Next();
    read.status = sample.status();
    if (!sample.ok() || !*sample) return read;
    const std::string series((*sample)->series);
    read.values[series] = (*sample)->value;
    Result<Meaning> meaning = exposition.Explain(**sample);
    if (meaning.ok()) read.meanings[series] = *meaning;
    if (!meaning.ok()) read.status = meaning.status();
    if (!meaning.ok()) return read;
  }
}

constexpr char kText[] =
    "# HELP http_requests_total The total\\nnumber.\n"
    "# TYPE http_requests_total counter\n"
    "http_requests_total{method=\"post\",code=\"200\"} 1027 1395066363000\n"
    "\n"
    "# Escaping in label values:\n"
    "msdos_file_access_time_seconds{path=\"C:\\\\DIR\\\\}FILE.TXT\",error=\"a\\n\\\"b\\\"\"} "
    "1.458255915e9\r\n"
    "something_weird{problem=\"division by zero\",} +Inf -3982045\n"
    "  blank  3\n"
    "# TYPE rpc summary\n"
    "rpc{quantile=\"0.5\"} 4773\n"
    "rpc_sum 1.7560473e+07\n"
    "rpc_count 2693\n"
    "# TYPE lat histogram\n"
    "# UNIT lat seconds\n"
    "lat_bucket{le=\"0.05\"} 24 # {trace_id=\"x}\"} 0.04 1520879607.7\n"
    "lat_bucket{le=\"+Inf\"} 144320\n"
    "lat_sum 53423\n"
    "lat_count 144320\n"
    "# TYPE hits counter\n"
    "hits_total 5\n"
    "hits_other 6\n";

TEST(Exposition, ReadsBothFormats) {
  const Read read = ReadAll(kText);
  ASSERT_TRUE(read.status.ok()) << read.status.message();
  EXPECT_EQ(read.values.size(), 13u);
  EXPECT_EQ(read.values.at("http_requests_total{method=\"post\",code=\"200\"}"), 1027);
  EXPECT_EQ(read.values.at("blank"), 3);
  EXPECT_TRUE(std::isinf(read.values.at("something_weird{problem=\"division by zero\",}")));
  const Meaning& requests = read.meanings.at("http_requests_total{method=\"post\",code=\"200\"}");
  EXPECT_EQ(requests.name, "http_requests_total");
  EXPECT_EQ(requests.help, "The total\nnumber.");
  ASSERT_EQ(requests.labels.size(), 2u);
  EXPECT_EQ(requests.labels[1], std::pair(std::string("code"), std::string("200")));
  const Meaning& escaped = read.meanings.at(
      "msdos_file_access_time_seconds{path=\"C:\\\\DIR\\\\}FILE.TXT\",error=\"a\\n\\\"b\\\"\"}");
  EXPECT_EQ(escaped.labels[0].second, "C:\\DIR\\}FILE.TXT");
  EXPECT_EQ(escaped.labels[1].second, "a\n\"b\"");
}

TEST(Exposition, KnowsWhatCounts) {
  const Read read = ReadAll(kText);
  const auto type = [&](const char* series) { return read.meanings.at(series).type; };
  EXPECT_EQ(type("hits_total"), MetricType::kCounter);
  EXPECT_EQ(type("hits_other"), MetricType::kGauge);
  EXPECT_EQ(type("rpc{quantile=\"0.5\"}"), MetricType::kGauge);
  EXPECT_EQ(type("rpc_sum"), MetricType::kCounter);
  EXPECT_EQ(type("rpc_count"), MetricType::kCounter);
  EXPECT_EQ(type("lat_bucket{le=\"0.05\"}"), MetricType::kCounter);
  EXPECT_EQ(type("blank"), MetricType::kGauge);
  EXPECT_EQ(read.meanings.at("lat_sum").unit, "seconds");
}

TEST(Exposition, EndsAtItsEndMark) {
  EXPECT_EQ(ReadAll("a 1\n# EOF\nb 2\n").values.size(), 1u);
  EXPECT_TRUE(ReadAll("").status.ok());
  EXPECT_EQ(ReadAll("a 1").values.size(), 1u);
}

TEST(Exposition, SaysWhichLineIsWrong) {
  for (const char* wrong :
       {"x\n", "1x 2\n", "x{a=\"b\" 2\n", "x{a=b} 2\n", "x{a=\"b\"}\n", "x two\n",
        "x{a=\"b\"c=\"d\"} 1\n", "# TYPE 1 counter\n", "x 0x12\n", "<html>not here</html>\n"}) {
    const Read read = ReadAll(std::string("good 1\n") + wrong + "after 3\n");
    EXPECT_EQ(read.status.code(), Code::kCorrupt) << wrong;
    EXPECT_EQ(read.status.message().substr(0, 8), "line 2: ") << wrong << read.status.message();
    EXPECT_FALSE(read.values.contains("after")) << wrong;
  }
  EXPECT_FALSE(ReadAll(std::string(Exposition::kMaxLine + 1, 'a') + " 1\n").status.ok());
}

class FakeSink : public Sink {
 public:
  struct Metric {
    Series series;
    double value = std::nan("");
  };
  void* Register(const Series& series) override {
    if (series.metric.name == refuse) return nullptr;
    auto& slot = metrics[SeriesName(series.metric.name, series.tags)];
    if (slot == nullptr) slot = std::make_unique<Metric>(Metric{series, std::nan("")});
    if (series.metric.type == MetricType::kCounter && std::isnan(slot->value)) slot->value = 0;
    return slot.get();
  }
  void Set(void* handle, double value) override { static_cast<Metric*>(handle)->value = value; }
  void Add(void* handle, double value) override { static_cast<Metric*>(handle)->value += value; }

  double Value(const std::string& name) const { return metrics.at(name)->value; }

  std::string refuse;
  std::map<std::string, std::unique_ptr<Metric>> metrics;
};

TEST(Joined, CountsWhatCameInTheStep) {
  FakeSink sink;
  Joined joined({.instance = "h:1", .step_start = 1000}, sink);
  // Started before the step.
  const std::string start = "process_start_time_seconds 900\n# TYPE c counter\n";
  ASSERT_TRUE(joined.Take(start + "c_total 50\n", 0.01).ok());
  EXPECT_EQ(sink.Value("c_total{instance=\"h:1\"}"), 0);
  ASSERT_TRUE(joined.Take(start + "c_total 57.5\nc_total{new=\"1\"} 3\n", 0.01).ok());
  EXPECT_EQ(sink.Value("c_total{instance=\"h:1\"}"), 7.5);
  EXPECT_EQ(sink.Value("c_total{instance=\"h:1\",new=\"1\"}"), 3) << "it began in the step";
  ASSERT_TRUE(joined.Take(start + "c_total 2\n", 0.01).ok());
  EXPECT_EQ(sink.Value("c_total{instance=\"h:1\"}"), 9.5) << "the exporter started over";
}

TEST(Joined, CountsAllOfAnExporterOfTheStep) {
  FakeSink sink;
  Joined joined({.instance = "h:1", .step_start = 1000}, sink);
  ASSERT_TRUE(joined
                  .Take("# TYPE c counter\nc_total 50\n"
                        "process_start_time_seconds 1001\n",
                        0.01)
                  .ok());
  EXPECT_EQ(sink.Value("c_total{instance=\"h:1\"}"), 50);
}

TEST(Joined, GaugesThatAreGoneAreMissing) {
  FakeSink sink;
  Joined joined({.instance = "h:1"}, sink);
  ASSERT_TRUE(joined.Take("a 1\nb 2\n", 0.25).ok());
  EXPECT_EQ(sink.Value("b{instance=\"h:1\"}"), 2);
  EXPECT_EQ(sink.Value("join_up{instance=\"h:1\"}"), 1);
  EXPECT_EQ(sink.Value("join_period_seconds{instance=\"h:1\"}"), 1);
  EXPECT_EQ(sink.Value("join_scrape_seconds{instance=\"h:1\"}"), 0.25);
  EXPECT_EQ(sink.Value("join_samples{instance=\"h:1\"}"), 2);
  ASSERT_TRUE(joined.Take("a 3\n", 0.25).ok());
  EXPECT_TRUE(std::isnan(sink.Value("b{instance=\"h:1\"}")));
  EXPECT_EQ(sink.Value("a{instance=\"h:1\"}"), 3);
  joined.Lose();
  EXPECT_TRUE(std::isnan(sink.Value("a{instance=\"h:1\"}")));
  EXPECT_EQ(sink.Value("join_up{instance=\"h:1\"}"), 0);
  EXPECT_EQ(sink.Value("join_scrapes_total{instance=\"h:1\"}"), 3);
}

TEST(Joined, WhatIsNotScrapedAnyMoreIsNotUp) {
  FakeSink sink;
  Joined joined({.instance = "h:1"}, sink);
  ASSERT_TRUE(joined.Take("a 1\n", 0.25).ok());
  joined.Stop();
  EXPECT_TRUE(std::isnan(sink.Value("a{instance=\"h:1\"}")));
  EXPECT_EQ(sink.Value("join_up{instance=\"h:1\"}"), 0);
  EXPECT_EQ(sink.Value("join_scrapes_total{instance=\"h:1\"}"), 1) << "that is no scrape";
}

TEST(Joined, KeepsApartWhatHasAnotherMeaningHere) {
  FakeSink sink;
  Joined joined({.instance = "h:1"}, sink);
  ASSERT_TRUE(
      joined.Take("a{host=\"x\",task=\"y\",empty=\"\",b=\"c\"} 1\nnode_load1 2\n", 0.01).ok());
  EXPECT_EQ(sink.Value("a{b=\"c\",exported_host=\"x\",exported_task=\"y\",instance=\"h:1\"}"), 1);
  EXPECT_EQ(sink.Value("exported_node_load1{instance=\"h:1\"}"), 2);
}

TEST(Joined, LeavesOutWhatDoesNotFitAndSaysSo) {
  FakeSink sink;
  sink.refuse = "refused";
  Joined joined({.instance = "h:1", .max_series = 2}, sink);
  ASSERT_TRUE(joined
                  .Take("many{a=\"1\",b=\"1\",c=\"1\",d=\"1\",e=\"1\",f=\"1\",g=\"1\"} 1\n"
                        "refused 1\nok 1\nok2 1\nok3 1\n",
                        0.01)
                  .ok());
  EXPECT_EQ(joined.series(), 2u);
  EXPECT_EQ(joined.left_out(), 3u);
  EXPECT_NE(joined.first_left_out().find("7 labels"), std::string::npos) << joined.first_left_out();
  EXPECT_FALSE(sink.metrics.contains("ok3{instance=\"h:1\"}"));
  const Status status = joined.Take("ok 2\nbroken\n", 0.01);
  EXPECT_FALSE(status.ok());
  EXPECT_EQ(sink.Value("ok{instance=\"h:1\"}"), 2) << "what came before the error counts";
}

}  // namespace
}  // namespace sonde::join::exposition_test
