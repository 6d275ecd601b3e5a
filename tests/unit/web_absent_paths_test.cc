// What servers of OpenTSDB and Prometheus have and Sonde has not: whoever asks is told, in the form
// of all errors, and gets no number that means something else.
#include "tests/unit/opentsdb_fixture.h"

namespace sonde::web {
namespace {

using testing::HasSubstr;

class OpenTsdbPaths : public OpenTsdbTest {};
class PrometheusPaths : public OpenTsdbTest {};

TEST_F(OpenTsdbPaths, WhatIsNotThereIs404) {
  for (const char* path : {"/api/query/last",
                           "/api/query/exp",
                           "/api/query/gexp",
                           "/api/rollup",
                           "/api/histogram",
                           "/api/uid/assign",
                           "/api/uid/rename",
                           "/api/uid/uidmeta",
                           "/api/uid/tsmeta",
                           "/api/tree",
                           "/api/tree/rule",
                           "/api/tree/branch",
                           "/api/search/tsmeta",
                           "/api/search/uidmeta",
                           "/api/config",
                           "/api/stats",
                           "/api/stats/query",
                           "/api/serializers",
                           "/api/dropcaches",
                           "/s",
                           "/q",
                           "/logs",
                           "/suggest",
                           "/aggregators",
                           "/version",
                           "/stats"}) {
    EXPECT_NE(Message(Get(path), 404), "") << path;
    EXPECT_NE(Message(Post(path, "{}"), 404), "") << path;
  }
}

class OpenTsdbQueries : public OpenTsdbPaths {
 protected:
  void SetUp() override {
    ASSERT_EQ(
        Post("/api/put", R"([{"metric":"m","timestamp":1700000000,"value":5,"tags":{"h":"a"}},)"
                         R"({"metric":"m","timestamp":1700000060,"value":3,"tags":{"h":"a"}},)"
                         R"({"metric":"m","timestamp":1700000030,"value":4,"tags":{"h":"b"}}])")
            .status,
        204);
  }
  Response Ask(std::string_view fields) {
    return Post("/api/query", R"({"start":1700000000,"end":1700000100,"queries":[{"metric":"m",)"
                              R"("aggregator":"none",)" +
                                  std::string(fields) + "}]}");
  }
};

// In place of /api/query/last.
TEST_F(OpenTsdbQueries, TheLastValueIsThatOfAllPoints) {
  const boost::json::value answer = Json(Ask(R"("downsample":"0all-last")"));
  ASSERT_EQ(answer.as_array().size(), 2u);
  EXPECT_EQ(answer.at(0).at("dps").at("1700000000"), 3);
  EXPECT_EQ(answer.at(1).at("dps").at("1700000000"), 4);
}

TEST_F(OpenTsdbQueries, AQueryForAHistogramIsRefused) {
  for (const char* fields :
       {R"("percentiles":[99.9])", R"("percentiles":"99.9")", R"("showHistogramBuckets":true)",
        R"("showHistogramBuckets":"true")"}) {
    EXPECT_THAT(Message(Ask(fields)), HasSubstr("histogram")) << fields;
  }
  // These ask for none.
  EXPECT_EQ(Ask(R"("percentiles":[],"showHistogramBuckets":false)").status, 200);
  EXPECT_EQ(Ask(R"("percentiles":null,"showHistogramBuckets":null)").status, 200);
  const char* target = "/api/query?start=1700000000&m=none:percentiles%5B99.9%5D:m";
  EXPECT_THAT(Message(Get(target)), HasSubstr("No such name"));
}

TEST_F(PrometheusPaths, WhatIsOfADatabaseIs404) {
  for (const char* path :
       {"/api/v1/query?query=up", "/api/v1/query_range?query=up&start=1&end=2&step=1",
        "/api/v1/query_exemplars?query=up", "/api/v1/labels", "/api/v1/label/job/values",
        "/api/v1/metadata", "/api/v1/rules", "/api/v1/alerts", "/api/v1/targets", "/api/v1/read",
        "/api/v1/write", "/api/v1/otlp/v1/metrics", "/federate?match%5B%5D=up", "/-/ready"}) {
    EXPECT_NE(Message(Get(path), 404), "") << path;
    EXPECT_NE(Message(Post(path, "{}"), 404), "") << path;
  }
}

}  // namespace
}  // namespace sonde::web
