// What Grafana's OpenTSDB data source sends, in the forms that its versions have had, and what each
// needs to find in the answer.
#include <fmt/core.h>

#include "tests/unit/opentsdb_fixture.h"
#include "tests/unit/web_fake_source.h"

namespace sonde::web {
namespace {

namespace json = boost::json;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

// The finished step of FakeSource lasts from 1799999000 to 1799999600.
class Grafana : public OpenTsdbTest {
 protected:
  Grafana() { source_ = std::make_shared<FakeSource>(kNow); }
};

TEST_F(Grafana, SaveAndTestAsksForNames) {
  EXPECT_EQ(Get("/api/suggest?type=metrics&q=cpux").body, "[]");
  EXPECT_EQ(Json(Get("/api/suggest?type=metrics&q=cpu&max=1000")).as_array().size(), 1u);
  EXPECT_GT(Json(Get("/api/aggregators")).as_array().size(), 30u);
  EXPECT_EQ(Json(Get("/api/config/filters")).at("regexp").as_object().size(), 2u);
}

// The browser's side, data source of version 2.3 and milliseconds; the range ends now.
TEST_F(Grafana, APanelInTheBrowser) {
  const json::value results = Json(
      Post("/api/query",
           R"({"start":1799996400000,"queries":[)"
           R"({"metric":"node_load1","aggregator":"avg","downsample":"1m-avg","filters":[)"
           R"({"filter":"*","groupBy":true,"tagk":"host","type":"wildcard"},)"
           R"({"filter":"4711.0","groupBy":false,"tagk":"job","type":"literal_or"}],)"
           R"("explicitTags":false},)"
           R"({"metric":"solver_iterations_total","aggregator":"sum","rate":true,)"
           R"("rateOptions":{"counter":true,"counterMax":null,"resetValue":"0","dropResets":true},)"
           R"("downsample":"10s-max-null","filters":[]}],)"
           R"("msResolution":true,"globalAnnotations":true,"showQuery":true})"));
  ASSERT_EQ(results.as_array().size(), 5u);
  for (size_t i = 0; i < 5; ++i) {
    const json::value& result = results.at(i);
    EXPECT_EQ(result.at("query").at("index"), i / 4);
    EXPECT_EQ(result.at("dps").as_object().begin()->key().size(), 13u);
    EXPECT_GT(result.at("globalAnnotations").as_array().size(), 0u);
  }
  EXPECT_EQ(results.at(0).at("tags").at("host"), "n1");
  EXPECT_EQ(results.at(0).at("query").at("filters").at(0).at("tagk"), "host");
}

// Multi-value variables arrive as alternatives; the older form of filters.
TEST_F(Grafana, AVariableOfSeveralValues) {
  const json::value results = Json(Post(
      "/api/query",
      R"({"start":1799999000000,"end":1799999599000,"queries":[{"metric":"node_load1",)"
      R"("aggregator":"sum","downsample":"30s-avg-none","tags":{"host":"n1|n2","job":"4711.0"}}],)"
      R"("msResolution":false,"globalAnnotations":true})"));
  ASSERT_EQ(results.as_array().size(), 2u);
  EXPECT_EQ(results.at(1).at("tags").at("host"), "n2");
  EXPECT_EQ(results.at(0).at("dps").as_object().begin()->key(), "1799999010");
}

// The plugin: one query in a request, seconds, and arrays for version 2.4.
TEST_F(Grafana, APanelInThePlugin) {
  const std::string body =
      R"({"start":1799999000,"end":1799999599,"queries":[{"metric":"node_load1",)"
      R"("aggregator":"max","downsample":"20000ms-avg","disableDownsampling":false,)"
      R"("filters":[{"filter":"n.*","groupBy":true,"tagk":"host","type":"regexp"}],)"
      R"("tags":{"job":"4711.0"},"rate":false,"explicitTags":false}]})";
  // Of both forms the later one counts.
  const json::value results = Json(Post("/api/query?arrays=true", body));
  ASSERT_EQ(results.as_array().size(), 1u);
  EXPECT_THAT(results.at(0).at("aggregateTags").as_array(), ElementsAre(json::value("host")));
  EXPECT_EQ(results.at(0).at("dps").at(0).at(0), 1799999000);
  EXPECT_TRUE(Json(Post("/api/query", body)).at(0).at("dps").is_object());
}

// Alerting: milliseconds, all queries together, a dash where no fill is chosen, texts for numbers.
TEST_F(Grafana, AnAlert) {
  const json::value results = Json(Post(
      "/api/query?arrays=true",
      R"({"start":1799999000000,"end":1799999599000,"queries":[)"
      R"({"metric":"node_network_receive_bytes_total","aggregator":"sum","downsample":"1m-avg-",)"
      R"("rate":true,"rateOptions":{"counter":true,"counterMax":0},"tags":{"job":"4711.0"}},)"
      R"({"metric":"node_load1","aggregator":"zimsum","downsample":"1m-avg-zero",)"
      R"("tags":{"job":"4711.0"}}]})"));
  ASSERT_EQ(results.as_array().size(), 2u);
  EXPECT_GT(results.at(0).at("dps").as_array().size(), 8u);
}

TEST_F(Grafana, NanIsTextOrNull) {
  const std::string body =
      R"({"start":1799999000,"end":1799999599,"queries":[{"metric":"node_load1",)"
      R"("aggregator":"none","downsample":"20s-avg-nan","tags":{"host":"n3","job":"4711.0"}}]})";
  EXPECT_THAT(Post("/api/query", body).body, HasSubstr(R"("1799999220":"NaN")"));
  EXPECT_THAT(Post("/api/query?nan=null", body).body, HasSubstr(R"("1799999220":null)"));
  nan_null_ = true;
  EXPECT_THAT(Post("/api/query", body).body, HasSubstr(R"("1799999220":null)"));
  EXPECT_THAT(Post("/api/query?nan=text", body).body, HasSubstr(R"("1799999220":"NaN")"));
  Message(Post("/api/query?nan=0", body));
}

// A sum that no double holds. Grafana's Go code takes none of these texts.
TEST_F(Grafana, InfinityIsTextOrNullAsNanIs) {
  source_ = std::make_shared<PutStore>();
  const std::string put =
      R"([{"metric":"m","timestamp":1700000000,"value":SIGN1e308,"tags":{"h":"a"}},)"
      R"({"metric":"m","timestamp":1700000000,"value":SIGN1.5e308,"tags":{"h":"b"}},)"
      R"({"metric":"m","timestamp":1700000001,"value":1,"tags":{"h":"b"}}])";
  for (const char* sign : {"", "-"}) {
    std::string points = put;
    for (size_t at; (at = points.find("SIGN")) != std::string::npos;) points.replace(at, 4, sign);
    ASSERT_EQ(Post("/api/put", points).status, 204);
    for (const std::string m : {"sum:m", "sum:1s-avg-null:m", "sum:1s-avg-nan:m"}) {
      for (const char* form : {"", "&arrays=true"}) {
        const std::string target = "/api/query?start=1699999999&end=1700000001&m=" + m + form;
        const std::string text = fmt::format(R"("{}Infinity")", sign);
        // Filling with null is about what is missing, and nothing is missing there.
        EXPECT_THAT(Get(target).body, HasSubstr(text)) << target;
        EXPECT_THAT(Get(target + "&nan=null").body, Not(HasSubstr("Infinity"))) << target;
        EXPECT_THAT(Get(target + "&nan=null").body, HasSubstr("null")) << target;
        nan_null_ = true;
        EXPECT_THAT(Get(target).body, Not(HasSubstr("Infinity"))) << target;
        EXPECT_THAT(Get(target + "&nan=text").body, HasSubstr(text)) << target;
        nan_null_ = false;
      }
    }
  }
}

TEST_F(Grafana, AnnotationsAreThePhasesAndRemarksOfTheStep) {
  const json::value results =
      Json(Post("/api/query",
                R"({"start":1799998000000,"end":1799999999000,"queries":[{"aggregator":"sum",)"
                R"("metric":"node_load1","tags":{"job":"4711.0"}}],"globalAnnotations":true})"));
  const json::array& notes = results.at(0).at("annotations").as_array();
  ASSERT_GT(notes.size(), 0u);
  bool phase = false;
  for (const json::value& note : notes) {
    EXPECT_EQ(note.at("custom").at("job"), "4711.0");
    EXPECT_GE(note.at("startTime").to_number<int64_t>(), 1799999000);
    phase = phase || note.at("custom").at("kind") == "phase";
  }
  EXPECT_TRUE(phase);
  const std::string start = std::to_string(notes.at(0).at("startTime").to_number<int64_t>());
  EXPECT_EQ(Json(Get("/api/annotation?start_time=" + start)).at("description"),
            notes.at(0).at("description"));
  EXPECT_EQ(Json(Post("/api/query", R"({"start":1799998000000,"noAnnotations":true,"queries":[)"
                                    R"({"aggregator":"sum","metric":"node_load1"}]})"))
                .at(0)
                .as_object()
                .count("annotations"),
            0u);
}

TEST_F(Grafana, VariablesAreLookedUp) {
  const json::value tags = Json(Get("/api/search/lookup?m=node_load1&limit=1000"));
  EXPECT_TRUE(tags.at("results").at(0).at("tags").as_object().contains("host"));
  const json::value values =
      Json(Get("/api/search/lookup?m=node_load1%7Bhost%3D*%2Cjob%3D4711.0%7D&limit=0"));
  EXPECT_EQ(values.at("results").as_array().size(), 4u);
  Message(Get("/api/search/lookup?m=nothing%7Ba%3D*%7D&limit=1000"), 404);
  Message(Get("/api/search/lookup?m=node_load1%7Bhots%3D*%7D"), 404);
  Message(Get("/api/search/lookup?m=node_load1%7Bhost%3Dn99%7D"), 404);
  // Both are there, and no series has them together.
  const json::value none = Json(Get("/api/search/lookup?m=node_load1%7Bhost%3D4711.0%7D"));
  EXPECT_EQ(none.at("totalResults").to_number<int>(), 0);
}

// The variables tag_names(task_threads) and tag_values(task_threads, task), while a step runs.
TEST_F(Grafana, VariablesHaveTheTasksOfARunningStep) {
  const auto source = std::make_shared<FakeSource>(kNow);
  source_ = source;
  const auto lookup = [&](const std::string& tags) {
    return Json(Get("/api/search/lookup?limit=0&m=task_threads%7Bjob=4712.0" + tags + "%7D"));
  };
  EXPECT_EQ(lookup("").at("totalResults"), 4);
  EXPECT_EQ(lookup(",task=*").at("totalResults"), 4);
  EXPECT_EQ(lookup(",task=3").at("results").at(0).at("tags"),
            json::value({{"host", "n2"}, {"job", "4712.0"}, {"task", "3"}}));
  EXPECT_EQ(lookup(",task=3,host=n1").at("totalResults"), 0);
  // A metric of nodes has none, and a finished step is as it was.
  EXPECT_EQ(Json(Get("/api/search/lookup?m=node_load1%7Bjob=4712.0%7D")).at("totalResults"), 2);
  EXPECT_EQ(Json(Get("/api/search/lookup?limit=0&m=task_threads%7Bjob=4711.0,task=*%7D"))
                .at("totalResults"),
            8);
  // Nodes that do not answer are there as far as the head knows them.
  source->SetMode(FakeSource::Mode::kFail);
  EXPECT_EQ(lookup("").at("totalResults"), 2);
}

TEST_F(Grafana, ErrorsHaveAMessageToShow) {
  const char* kRange = R"({"start":1799999000,"queries":[{"metric":"node_load1",)";
  const std::pair<std::string, const char*> cases[] = {
      {R"("aggregator":"mean"}]})", "mean"},
      {R"("aggregator":"sum","downsample":"1m-none"}]})", "none"},
      {R"("aggregator":"sum","downsample":"avg"}]})", "avg"},
      {R"~("aggregator":"sum","filters":[{"type":"regexp","tagk":"host","filter":"(?=n)"}]}]})~",
       "filter '(?=n)'"},
      {R"("aggregator":"sum","tags":{"host":"n77"}}]})", "No such name for 'tagv': 'n77'"},
      {R"("aggregator":"sum","tags":{"host":"n1|n77"}}]})", "No such name for 'tagv': 'n77'"},
      {R"("aggregator":"sum","rateOptions":{"reset":1}}]})", "reset"},
      {R"("aggregator":"sum"}],"delete":true})", "delet"},
  };
  for (const auto& [rest, text] : cases) {
    EXPECT_THAT(Message(Post("/api/query", kRange + rest)), HasSubstr(text)) << rest;
  }
  for (const char* target :
       {"", "?start=1h-ago", "?start=1&m=", "?start=1&m=sum", "?start=1&m=sum:node_load1%7Bhost",
        "?start=1&m=sum:node_load1%7Bhost%7D", "?start=soon&m=sum:node_load1",
        "?start=1&m=sum:rate%7Bcounter,x%7D:node_load1", "?start=1&delete=true&m=sum:node_load1"}) {
    EXPECT_NE(Message(Get(std::string("/api/query") + target)), "") << target;
  }
}

// What takes a backtracking engine, such as OpenTSDB's own, longer than there is time: here it is
// linear in the text. That this test ends is what it shows.
TEST_F(Grafana, NoPatternTakesForEver) {
  source_ = std::make_shared<PutStore>();
  const std::string value(120, 'a');
  for (int i = 0; i < 200; ++i) {
    ASSERT_EQ(
        Post("/api/put", fmt::format(R"({{"metric":"m","timestamp":1700000000,"value":1,"tags":)"
                                     R"({{"h":"{}{}"}}}})",
                                     value.substr(i % 7), i))
            .status,
        204);
  }
  std::string optional;
  for (int i = 0; i < 60; ++i) optional += "a?";
  const std::string patterns[] = {"(a+)+$",
                                  "(a|aa)+$",
                                  "(a|a?)+$",
                                  "(a*)*b",
                                  "^(([a-z])+.)+[A-Z]([a-z])+$",
                                  "(.*a){25}$",
                                  "(.*)(.*)(.*)(.*)(.*)(.*)x",
                                  optional + std::string(60, 'a') + "$",
                                  "(x+x+)+y",
                                  "((((a*)*)*)*)*!"};
  for (const std::string& pattern : patterns) {
    json::object filter = {{"type", "regexp"}, {"tagk", "h"}, {"filter", pattern}};
    const json::object query = {{"metric", "m"}, {"aggregator", "sum"}, {"filters", {filter}}};
    const json::object body = {{"start", 1}, {"queries", {query}}};
    EXPECT_EQ(Post("/api/query", json::serialize(body)).status, 200) << pattern;
    // In the address, and as the rest of a name.
    std::string escaped;
    for (const char c : pattern) escaped += fmt::format("%{:02x}", static_cast<unsigned char>(c));
    EXPECT_EQ(Get("/api/query?start=1&m=sum:m%7Bh=regexp(" + escaped + ")%7D").status, 200)
        << pattern;
  }
  // What would need much memory instead is refused, and so is what is not linear.
  for (const char* pattern : {"((a{1,100}){1,100}){1,100}", "(.{900}){900}", R"((a)\\1)", "a(?=b)",
                              "(?<=a)b", "(?>a+)"}) {
    const std::string body = fmt::format(R"({{"start":1,"queries":[{{"metric":"m","aggregator":)"
                                         R"("sum","filters":[{{"type":"regexp","tagk":"h",)"
                                         R"("filter":"{}"}}]}}]}})",
                                         pattern);
    EXPECT_THAT(Message(Post("/api/query", body)), HasSubstr("filter '")) << pattern;
  }
  // Stars are no regular expression, but there are engines that would go back at each.
  std::string stars;
  for (int i = 0; i < 50; ++i) stars += "*a";
  EXPECT_EQ(Get("/api/query?start=1&m=sum:m%7Bh=wildcard(" + stars + "*!)%7D").status, 200);
}

TEST_F(Grafana, QueriesThatAreTheSameAreAskedOnce) {
  const std::string query = R"({"metric":"node_load1","aggregator":"sum"})";
  EXPECT_EQ(Json(Post("/api/query", R"({"start":1799999000,"queries":[)" + query + "," + query +
                                        R"(,{"metric":"node_load1","aggregator":"max"}],)" +
                                        R"("showQuery":true})"))
                .at(1)
                .at("query")
                .at("index"),
            1);
}

// A large answer comes in pieces, which are the whole.
TEST_F(Grafana, ALargeAnswerIsTheSameInPieces) {
  source_ = std::make_shared<PutStore>();
  std::string expected;
  for (int host = 0; host < 3; ++host) {
    std::string body;
    for (int i = 0; i < 20'000; ++i) {
      body += fmt::format(R"({}{{"metric":"m","timestamp":{},"value":{},"tags":{{"h":"{}"}}}})",
                          i == 0 ? "[" : ",", 1700000000 + i, i + 0.5, host);
    }
    ASSERT_EQ(Post("/api/put", body + "]").status, 204);
  }
  const std::string all = Get("/api/query?start=1700000000&end=1700020000&m=none:m").body;
  json::array parts;
  for (int host = 0; host < 3; ++host) {
    parts.push_back(
        Json(Get(fmt::format("/api/query?start=1700000000&end=1700020000&m=none:m%7Bh%3D{}%7D",
                             host)))
            .at(0));
  }
  EXPECT_TRUE(json::parse(all) == json::value(parts));
  EXPECT_GT(all.size(), 1'000'000u);
}

}  // namespace
}  // namespace sonde::web
