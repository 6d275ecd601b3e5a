// The text that Prometheus scrapes, and which form of it a client gets.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "web/prometheus/exposition_merge.h"
#include "web/prometheus/exposition_text.h"

namespace sonde::web::web_exposition_test {
namespace {

using testing::HasSubstr;
using testing::Not;
using enum ExpositionFormat;

Metric Named(std::string_view name, MetricType type, std::string_view unit = "1",
             std::string_view help = "") {
  Metric metric;
  metric.name = name;
  metric.type = type;
  metric.unit = unit;
  metric.help = help;
  return metric;
}

TEST(Exposition, TheTextHasHelpTypeAndEscapes) {
  Exposition out;
  out.Add(Named("a.b-c", MetricType::kGauge, "1", "one\\two\n\"three\""), {{"path", "C:\\\"x\"\n"}},
          1.5, 0);
  EXPECT_EQ(out.Format(kPlain),
            "# HELP a_b_c one\\\\two\\n\"three\"\n"
            "# TYPE a_b_c gauge\n"
            "a_b_c{path=\"C:\\\\\\\"x\\\"\\n\"} 1.5\n");
}

TEST(Exposition, OpenMetricsHasUnitsCreationAndAnEnd) {
  Exposition out;
  const Metric seconds = Named("cpu_seconds_total", MetricType::kCounter, "seconds", "A \"b\".");
  out.Add(seconds, {{"job", "1.0"}}, 2, 1'500'000'000 * kSecond + kSecond / 2);
  out.Add(Named("load", MetricType::kGauge), {}, HUGE_VAL, 0);
  EXPECT_EQ(out.Format(kOpenMetrics),
            "# TYPE cpu_seconds counter\n"
            "# UNIT cpu_seconds seconds\n"
            "# HELP cpu_seconds A \\\"b\\\".\n"
            "cpu_seconds_total{job=\"1.0\"} 2\n"
            "cpu_seconds_created{job=\"1.0\"} 1500000000.5\n"
            "# TYPE load gauge\n"
            "load{} +Inf\n"
            "# EOF\n");
}

TEST(Exposition, OpenMetricsKeepsTheNameOfACounterThatHasNoTotal) {
  Exposition out;
  out.Add(Named("hits", MetricType::kCounter), {}, 1, kSecond);
  out.Add(Named("hits_total", MetricType::kCounter), {}, 2, kSecond);
  const std::string text = out.Format(kOpenMetrics);
  EXPECT_THAT(text, HasSubstr("# TYPE hits unknown\nhits{} 1\n"));
  // Its family would have the other's name.
  EXPECT_THAT(text, HasSubstr("# TYPE hits_total unknown\nhits_total{} 2\n"));
  EXPECT_THAT(text, Not(HasSubstr("_created")));
}

TEST(Exposition, MissingValuesAndRepeatedLabelsAreLeftOut) {
  Exposition out;
  const Metric load = Named("load", MetricType::kGauge);
  out.Add(load, {}, std::nan(""), 0);
  out.Add(load, {}, -HUGE_VAL, 0);
  out.Add(load, {}, 7, 0);
  EXPECT_EQ(out.Format(kPlain), "# TYPE load gauge\nload{} -Inf\n");
}

TEST(Exposition, TheClientChoosesByQuality) {
  const std::pair<const char*, ExpositionFormat> cases[] = {
      {"", kPlain},
      {"*/*", kPlain},
      {"text/html", kPlain},
      {"application/openmetrics-text", kOpenMetrics},
      {"Application/OpenMetrics-Text; Version=\"1.0.0\"", kOpenMetrics},
      {"application/openmetrics-text;version=2.0.0", kPlain},
      {"application/openmetrics-text;q=0", kPlain},
      {"application/openmetrics-text;q=0.5,text/plain;version=0.0.4", kPlain},
      {"application/openmetrics-text;q=0.5,*/*;q=0.1", kOpenMetrics},
      {"application/openmetrics-text;q=nonsense", kPlain},
      {"text/plain;version=0.0.4;q=0.3,application/openmetrics-text;q=0.4", kOpenMetrics},
      // The most exact range counts for the text.
      {"application/openmetrics-text;q=0.5,text/plain;q=0.2,*/*;q=0.9", kOpenMetrics},
      // What Prometheus 2.42 sends.
      {"application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;"
       "q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1",
       kOpenMetrics},
  };
  for (const auto& [accept, format] : cases) EXPECT_EQ(ChooseFormat(accept), format) << accept;
}

TEST(MergeExpositions, GivesWhatOneOfAllSamplesWouldBe) {
  const Metric metrics[] = {Named("cpu_seconds_total", MetricType::kCounter, "seconds", "Time."),
                            Named("hits", MetricType::kCounter, "1", "Hits # of \"x\"\nand y."),
                            Named("load", MetricType::kGauge), Named("a.b", MetricType::kGauge)};
  for (const ExpositionFormat format : {kPlain, kOpenMetrics}) {
    Exposition all;
    std::vector<std::string> texts;
    for (int step = 0; step < 3; ++step) {
      Exposition one;
      for (int i = 0; i < 4; ++i) {
        if (i == step) continue;  // not every step has every metric
        const Tags tags = {{"job", std::to_string(step)}};
        one.Add(metrics[i], tags, step + i, kSecond);
        all.Add(metrics[i], tags, step + i, kSecond);
      }
      texts.push_back(one.Format(format));
    }
    EXPECT_EQ(MergeExpositions({texts[0], texts[1], texts[2]}), all.Format(format));
    EXPECT_EQ(MergeExpositions({texts[1]}), texts[1]);
  }
}

TEST(MergeExpositions, RefusesWhatDoesNotFitTogether) {
  const std::string gauge = "# TYPE x gauge\nx{job=\"1\"} 1\n";
  const std::string counter = "# TYPE x counter\nx{job=\"2\"} 1\n";
  EXPECT_EQ(MergeExpositions({gauge, counter}), std::nullopt) << "two types of a metric";
  EXPECT_EQ(MergeExpositions({gauge, "# TYPE y gauge\ny 1\n# EOF\n"}), std::nullopt);
  for (const char* bad : {"", "x 1\n", "# HELP x\nx 1\n", "# TYPE x gauge\nx 1", "# EOF\n# EOF\n",
                          "# EOF\nx 1\n", "{\"error\": 1}\n", "\n"}) {
    EXPECT_EQ(MergeExpositions({gauge, bad}), std::nullopt) << bad;
  }
  EXPECT_EQ(MergeExpositions({"# TYPE x gauge\n# TYPE y gauge\ny 1\n"}),
            "# TYPE x gauge\n# TYPE y gauge\ny 1\n");
  EXPECT_EQ(MergeExpositions({"# EOF\n", "# EOF\n"}), "# EOF\n");
}

}  // namespace
}  // namespace sonde::web::web_exposition_test
