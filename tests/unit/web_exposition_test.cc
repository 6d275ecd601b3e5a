// The text that Prometheus scrapes, and which form of it a client gets.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "web/exposition_text.h"

namespace sonde::web {
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

}  // namespace
}  // namespace sonde::web
