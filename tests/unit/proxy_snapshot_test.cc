// What a metric-proxy serves, as `sonde join` records it.
#include "cli/join/proxy_snapshot.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace sonde::join::proxy_snapshot_test {
namespace {

using testing::HasSubstr;
using testing::Not;

std::string Made(std::string_view snapshot) {
  const Result<std::string> made = ExpositionOf(snapshot);
  EXPECT_TRUE(made.ok()) << made.status().message();
  return made.ok() ? *made : "";
}

std::string Why(std::string_view snapshot) {
  const Result<std::string> made = ExpositionOf(snapshot);
  return made.ok() ? "" : std::string(made.status().message());
}

TEST(ProxySnapshots, CountersAndMeansOfGauges) {
  EXPECT_EQ(
      Made(R"({"desc": {"jobid": "main"}, "counters": [
{"name": "calls{f=\"a\"}", "doc": "Calls.\nAll", "ctype": {"Counter": {"ts": 12, "value": 2.5}}},
{"name": "calls{f=\"b\"}", "doc": "Calls.", "ctype": {"Counter": {"ts": 12, "value": 7}}},
{"name": "load", "doc": "", "ctype": {"Gauge": {"min": 1, "max": 5, "hits": 4, "total": 10}}}]})"),
      "# HELP calls Calls.\\nAll\n# TYPE calls counter\ncalls{f=\"a\"} 2.5\ncalls{f=\"b\"} 7\n"
      "# HELP load \n# TYPE load gauge\nload 2.5\n");
}

TEST(ProxySnapshots, OfSeveralJobsTheSum) {
  constexpr std::string_view kJobs = R"([
{"desc": {"jobid": "Node: a"}, "counters": [{"name": "x", "doc": "", "ctype": {"Counter": {"value": 1}}}]},
{"desc": {"jobid": "main"}, "counters": [{"name": "x", "doc": "", "ctype": {"Counter": {"value": 2}}}]}])";
  EXPECT_THAT(Made(kJobs), HasSubstr("x 2\n"));
  EXPECT_THAT(Made(kJobs), Not(HasSubstr("x 1\n")));
  // metric-proxy's own quotation mark too many.
  EXPECT_THAT(Made(R"({"counters": [{"name": "up{job=\"a\"\"}", "doc": "", "ctype":
{"Counter": {"value": 1}}}]})"),
              HasSubstr("up{job=\"a\"} 1\n"));
}

TEST(ProxySnapshots, WhatIsNoSampleIsLeftOut) {
  for (const char* counter :
       {R"({"name": "a b", "ctype": {"Counter": {"value": 1}}})", R"({"name": "a 5\nb"})",
        R"({"name": "a 5", "ctype": {"Counter": {"value": 1}}})",
        R"({"name": "a{b=c}", "ctype": {"Counter": {"value": 1}}})",
        R"({"name": "a", "ctype": {"Counter": {"value": null}}})",
        R"({"name": "a", "ctype": {"Gauge": {"hits": 0, "total": 0}}})",
        R"({"name": "a", "ctype": {"Histogram": {}}})", R"({"name": 5})", "5", "null"}) {
    const std::string snapshot = std::string(R"({"counters": [)") + counter +
                                 R"(, {"name": "ok", "ctype": {"Counter": {"value": 1}}}]})";
    EXPECT_EQ(Made(snapshot), "# HELP ok \n# TYPE ok counter\nok 1\n") << counter;
  }
}

TEST(ProxySnapshots, WhatIsNoSnapshotSaysSo) {
  EXPECT_TRUE(IsSnapshot(" \n{"));
  EXPECT_TRUE(IsSnapshot("[1"));
  EXPECT_FALSE(IsSnapshot("# HELP a\n"));
  EXPECT_FALSE(IsSnapshot(""));
  EXPECT_THAT(Why("{}"), HasSubstr("counters"));
  EXPECT_THAT(Why("[]"), HasSubstr("without jobs"));
  EXPECT_THAT(Why("[7]"), HasSubstr("counters"));
  EXPECT_NE(Why("{"), "");
}

}  // namespace
}  // namespace sonde::join::proxy_snapshot_test
