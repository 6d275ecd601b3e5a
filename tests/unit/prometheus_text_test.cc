#include "core/prometheus_text.h"

#include <gtest/gtest.h>

#include <limits>

namespace sonde::prometheus_text_test {
namespace {

TEST(PrometheusText, NamesAreWhatPrometheusTakes) {
  EXPECT_EQ(prometheus::Name("solver.residual-max"), "solver_residual_max");
  EXPECT_EQ(prometheus::Name("a:b_1"), "a:b_1");
  EXPECT_EQ(prometheus::Name("2nd"), "_2nd");
}

TEST(PrometheusText, ALabelKeepsItsLine) {
  Tags tags;
  tags.Set("path", "a\\b");
  tags.Set("text", "\"two\"\nlines");
  EXPECT_EQ(prometheus::Labels(tags), R"({path="a\\b",text="\"two\"\nlines"})");
}

TEST(PrometheusText, NumbersComeBack) {
  std::string out;
  for (const double value : {0.1, -3.0, std::numeric_limits<double>::infinity(),
                             std::numeric_limits<double>::quiet_NaN()}) {
    prometheus::AppendNumber(value, out);
    out += ' ';
  }
  EXPECT_EQ(out, "0.1 -3 +Inf  ");
}

TEST(PrometheusText, AFamilySaysTypeUnitAndHelp) {
  std::string out;
  prometheus::AppendOpenMetricsHead("io_bytes", "io_bytes_total", MetricType::kCounter, "bytes",
                                    "of\nall", out);
  EXPECT_EQ(out, "# TYPE io_bytes counter\n# UNIT io_bytes bytes\n# HELP io_bytes of\\nall\n");
  EXPECT_EQ(prometheus::FamilyOf("io_bytes_total", MetricType::kCounter), "io_bytes");
  EXPECT_EQ(prometheus::FamilyOf("io_bytes", MetricType::kCounter), "io_bytes");
}

}  // namespace
}  // namespace sonde::prometheus_text_test
