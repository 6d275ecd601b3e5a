// What is put, how it is refused, and what a store that takes nothing says.
#include <fmt/core.h>
#include <unistd.h>

#include <bit>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <random>

#include "tests/unit/opentsdb_fixture.h"
#include "tests/unit/web_fake_source.h"

namespace sonde::web {
namespace {

namespace json = boost::json;
using testing::HasSubstr;

constexpr std::string_view kPoint =
    R"({"metric":"cpu","timestamp":1700000000,"value":42,"tags":{"host":"n1"}})";

class Put : public OpenTsdbTest {
 protected:
  std::string Stored() {
    return Post(
               "/api/query",
               R"({"start":1,"queries":[{"metric":"cpu","aggregator":"none"}],"msResolution":true})")
        .body;
  }
};

TEST_F(Put, AnObjectOrAListIsAnsweredByNothing) {
  const Response one = Post("/api/put", std::string(kPoint));
  EXPECT_EQ(one.status, 204);
  EXPECT_EQ(one.body, "");
  EXPECT_EQ(Post("/api/put", R"([{"metric":"cpu","timestamp":"1700000001500","value":"1.5",)"
                             R"("tags":{"host":"n1"},"extra":1},)"
                             R"({"metric":"cpu","timestamp":1700000002,"value":1e3,)"
                             R"("tags":{"host":"n1"}}])")
                .status,
            204);
  EXPECT_THAT(Stored(), HasSubstr(R"("dps":{"1700000000000":42,"1700000001500":1.5,)"
                                  R"("1700000002000":1000})"));
}

TEST_F(Put, TheLastValueForATimeStands) {
  for (const char* value : {"1", "2.5", "3"}) {
    std::string point(kPoint);
    point.replace(point.find("42"), 2, value);
    ASSERT_EQ(Post("/api/put", point).status, 204);
  }
  EXPECT_THAT(Stored(), HasSubstr(R"("dps":{"1700000000000":3}})"));
}

// Boost.JSON's own way is off by one in the last place of some.
TEST_F(Put, EveryNumberComesBackAsItWas) {
  std::mt19937_64 random(5);
  std::string body;
  std::map<int64_t, double> put;
  // Across a change of digits in the front, which are written once for many points.
  for (int64_t time = 1'699'998'000; time < 1'700'002'000; ++time) {
    double value = std::bit_cast<double>(random());
    if (!std::isfinite(value)) continue;
    const auto whole = static_cast<double>(random() % 1'000'000'000'000);
    constexpr double kScales[] = {1e3, 1e5, 1e6, 1e7};
    if (time % 5 < 4) value = (time % 3 == 0 ? -whole : whole) / kScales[time % 5];
    put[time] = value;
    body += fmt::format(R"({}{{"metric":"cpu","timestamp":{},"value":{},"tags":{{"host":"n1"}}}})",
                        body.empty() ? "[" : ",", time, value);
  }
  ASSERT_EQ(Post("/api/put", body + "]").status, 204);
  const std::string text = Get("/api/query?start=1&m=none:cpu").body;
  size_t at = text.find("\"dps\":{");
  ASSERT_NE(at, std::string::npos);
  for (const auto& [time, value] : put) {
    const std::string key = fmt::format("\"{}\":", time);
    at = text.find(key, at);
    ASSERT_NE(at, std::string::npos) << time;
    char* end = nullptr;
    EXPECT_EQ(std::strtod(text.c_str() + at + key.size(), &end), value) << time;
    EXPECT_TRUE(*end == ',' || *end == '}') << time;
  }
}

TEST_F(Put, GoodPointsStayWhenOthersAreRefused) {
  const std::string body = "[" + std::string(kPoint) +
                           R"(,{"metric":"cpu","timestamp":0,"value":1,"tags":{"host":"n1"}}])";
  EXPECT_EQ(Message(Post("/api/put", body)), "One or more data points had errors");
  EXPECT_THAT(Stored(), HasSubstr(R"({"1700000000000":42})"));
  const json::value summary = Json(Post("/api/put?summary", body), 400);
  EXPECT_EQ(json::serialize(summary), R"({"success":1,"failed":1})");
  EXPECT_EQ(json::serialize(Json(Post("/api/put?summary", std::string(kPoint)))),
            R"({"success":1,"failed":0})");
}

TEST_F(Put, DetailsNameThePointAndWhatIsWrong) {
  const std::pair<const char*, const char*> cases[] = {
      {R"({"metric":"","timestamp":1,"value":1,"tags":{"a":"b"}})", "Metric name was empty"},
      {R"({"timestamp":1,"value":1,"tags":{"a":"b"}})", "Metric name was empty"},
      {R"({"metric":"m","timestamp":-1,"value":1,"tags":{"a":"b"}})", "Invalid timestamp"},
      {R"({"metric":"m","timestamp":"x","value":1,"tags":{"a":"b"}})", "Invalid timestamp"},
      {R"({"metric":"m","timestamp":99999999999999999,"value":1,"tags":{"a":"b"}})",
       "Invalid timestamp"},
      {R"({"metric":"m","timestamp":17999964000026.1,"value":1,"tags":{"a":"b"}})",
       "Invalid timestamp"},
      {R"({"metric":"m","timestamp":9500000000.5,"value":1,"tags":{"a":"b"}})",
       "Invalid timestamp"},
      {R"({"metric":"m","timestamp":1,"tags":{"a":"b"}})", "Empty value"},
      {R"({"metric":"m","timestamp":1,"value":"","tags":{"a":"b"}})", "Empty value"},
      {R"({"metric":"m","timestamp":1,"value":"x","tags":{"a":"b"}})", "parse value to a number"},
      {R"({"metric":"m","timestamp":1,"value":true,"tags":{"a":"b"}})", "parse value to a number"},
      {R"({"metric":"m","timestamp":1,"value":"9223372036854775808","tags":{"a":"b"}})",
       "parse value to a number"},
      {R"({"metric":"m","timestamp":1,"value":"NaN","tags":{"a":"b"}})", "NaN or Infinite"},
      {R"({"metric":"m","timestamp":1,"value":1e999,"tags":{"a":"b"}})", "NaN or Infinite"},
      {R"({"metric":"m","timestamp":1,"value":1})", "Missing tags"},
      {R"({"metric":"m","timestamp":1,"value":1,"tags":{}})", "Missing tags"},
      {R"({"metric":"m m","timestamp":1,"value":1,"tags":{"a":"b"}})", "illegal character"},
      {R"({"metric":"m","timestamp":1,"value":1,"tags":{"a":"b c"}})", "Invalid tag value"},
      {R"({"metric":"m","timestamp":1,"value":1,"tags":{"":"b"}})", "Invalid tag name"},
      {R"({"metric":"m","timestamp":1,"value":1,"tags":{"a":"1","b":"1","c":"1","d":"1","e":"1",)"
       R"("f":"1","g":"1","h":"1","i":"1"}})",
       "Too many tags: 9"},
      {"[null]", "Unexpected null datapoint"},
  };
  for (const auto& [body, text] : cases) {
    const Response response = Post("/api/put?details", body);
    SCOPED_TRACE(body + std::string(" -> ") + response.body);
    const json::value answer = Json(response, 400);
    EXPECT_EQ(answer.at("failed"), 1) << body;
    const json::value& error = answer.at("errors").at(0);
    EXPECT_THAT(std::string(error.at("error").as_string()), HasSubstr(text)) << body;
    EXPECT_TRUE(error.as_object().contains("datapoint"));
  }
}

TEST_F(Put, WhatIsNoPointIsRefusedAsAWhole) {
  for (const char* body : {"", "[]", "{", "7", "\"x\"", "[1,"}) {
    EXPECT_NE(Message(Post("/api/put", body)), "") << body;
  }
  EXPECT_EQ(Message(Get("/api/put"), 405), "Method not allowed");
}

std::string Gzip(const std::string& text) {
  FILE* file = std::tmpfile();
  std::fwrite(text.data(), 1, text.size(), file);
  std::fflush(file);
  const std::string command =
      "gzip -c < /proc/" + std::to_string(getpid()) + "/fd/" + std::to_string(fileno(file));
  FILE* pipe = popen(command.c_str(), "r");
  std::string out;
  char bytes[4096];
  while (const size_t n = std::fread(bytes, 1, sizeof(bytes), pipe)) out.append(bytes, n);
  EXPECT_EQ(pclose(pipe), 0);
  std::fclose(file);
  return out;
}

TEST_F(Put, ABodyMayBePacked) {
  std::string body = "[" + std::string(kPoint);
  for (int i = 1; i < 2'000; ++i) {
    body += R"(,{"metric":"cpu","timestamp":)" + std::to_string(1700000000 + i) +
            R"(,"value":1,"tags":{"host":"n1"}})";
  }
  const std::string packed = Gzip(body + "]");
  ASSERT_LT(packed.size() * 5, body.size());
  EXPECT_EQ(json::serialize(Json(Post("/api/put?summary", packed, "gzip"))),
            R"({"success":2000,"failed":0})");
  for (const size_t cut : {size_t{0}, size_t{5}, packed.size() / 2, packed.size() - 1}) {
    const int status = Post("/api/put", packed.substr(0, cut), "gzip").status;
    EXPECT_TRUE(status == 400 || status == 413) << cut;
  }
  std::string damaged = packed;
  damaged[packed.size() - 6] ^= 1;  // the checksum
  EXPECT_EQ(Post("/api/put", damaged, "gzip").status, 400);
  EXPECT_EQ(Post("/api/put", Gzip(std::string(9 << 20, ' ')), "gzip").status, 413);
}

TEST_F(Put, AnnotationsAreKeptAndShown) {
  ASSERT_EQ(Post("/api/put", std::string(kPoint)).status, 204);
  const std::string note =
      R"({"startTime":1700000000,"description":"restart","custom":{"who":"ada"}})";
  EXPECT_EQ(Json(Post("/api/annotation", note)).at("startTime"), 1700000000);
  EXPECT_EQ(Json(Get("/api/annotation?start_time=1700000000")).at("description"), "restart");
  EXPECT_EQ(Json(Get("/api/annotations?start_time=1699999999&end_time=1700000001"))
                .at(0)
                .at("custom")
                .at("who"),
            "ada");
  Message(Get("/api/annotation?start_time=1700000001"), 404);
  Message(Get("/api/annotation"));
  Message(Post("/api/annotation", "{}"));
  const std::string query = R"({"start":1699999000,"globalAnnotations":true,"queries":[)"
                            R"({"metric":"cpu","aggregator":"sum"}]})";
  const json::value results = Json(Post("/api/query", query));
  EXPECT_EQ(results.at(0).at("globalAnnotations").at(0).at("description"), "restart");
  EXPECT_FALSE(results.at(0).as_object().contains("annotations"));
}

TEST_F(Put, AnAnnotationIsChangedReplacedAndForgotten) {
  const auto description = [this] {
    return Json(Get("/api/annotation?start_time=1700000000")).at("description");
  };
  Json(Post("/api/annotation", R"({"startTime":1700000000,"description":"a","notes":"b"})"));
  // POST leaves what it does not name.
  const json::value changed =
      Json(Post("/api/annotation", R"({"startTime":1700000000,"description":"c"})"));
  EXPECT_EQ(changed.at("description"), "c");
  EXPECT_EQ(changed.at("notes"), "b");
  const std::string whole = R"({"startTime":1700000000,"description":"d"})";
  const json::value replaced = Json(Send(Method::kPut, "/api/annotation", whole));
  EXPECT_EQ(replaced.at("notes"), "");
  EXPECT_EQ(description(), "d");
  // Others of that second are of series.
  Json(Post("/api/annotation", R"({"startTime":1700000000,"tsuid":"x","description":"e"})"));
  const Response gone = Send(Method::kDelete, "/api/annotation?start_time=1700000000");
  EXPECT_EQ(gone.status, 204);
  EXPECT_EQ(gone.body, "");
  Message(Get("/api/annotation?start_time=1700000000"), 404);
  Message(Send(Method::kDelete, "/api/annotation", whole), 404);
  EXPECT_EQ(Json(Get("/api/annotation?start_time=1700000000&tsuid=x")).at("description"), "e");
  EXPECT_EQ(
      Send(Method::kDelete, "/api/annotation", R"({"startTime":1700000000,"tsuid":"x"})").status,
      204);
  Message(Send(Method::kDelete, "/api/annotation"));
}

TEST_F(Put, AnnotationsComeAndGoInBulk) {
  const std::string list = R"([{"startTime":1700000000,"description":"a"},)"
                           R"({"startTime":1700000001,"tsuid":"x"},{"startTime":1700000002}])";
  EXPECT_EQ(Json(Post("/api/annotation/bulk", list)).as_array().size(), 3u);
  EXPECT_EQ(Json(Send(Method::kPut, "/api/annotations", list)).as_array().size(), 3u);
  EXPECT_EQ(Json(Get("/api/annotations?start_time=1700000000")).as_array().size(), 3u);
  Message(Post("/api/annotation/bulk", "{}"));
  Message(Post("/api/annotation/bulk", "[{}]"));
  Message(Send(Method::kDelete, "/api/annotation/bulk"));
  Message(Send(Method::kDelete, "/api/annotation/bulk?start_time=1700000000"));
  const json::value some = Json(
      Send(Method::kDelete, "/api/annotation/bulk", R"({"tsuids":["x"],"startTime":1700000000})"));
  EXPECT_EQ(some.at("totalDeleted"), 1);
  EXPECT_EQ(some.at("tsuids").at(0), "x");
  EXPECT_EQ(some.at("startTime"), 1'700'000'000'000);
  const json::value rest = Json(Send(
      Method::kDelete, "/api/annotations?start_time=1700000001&end_time=1700000009&global=true"));
  EXPECT_EQ(rest.at("totalDeleted"), 1);
  EXPECT_EQ(rest.at("global"), true);
  EXPECT_EQ(Json(Get("/api/annotations?start_time=1700000000")).as_array().size(), 1u);
}

TEST_F(Put, LookupsArePaged) {
  for (const char* host : {"n1", "n2", "n3"}) {
    std::string point(kPoint);
    point.replace(point.find("n1"), 2, host);
    ASSERT_EQ(Post("/api/put", point).status, 204);
  }
  const json::value page =
      Json(Get("/api/search/lookup?m=cpu%7Bhost=*%7D&limit=1&start_index=1&use_meta=true"));
  EXPECT_EQ(page.at("totalResults"), 3);
  EXPECT_EQ(page.at("startIndex"), 1);
  ASSERT_EQ(page.at("results").as_array().size(), 1u);
  EXPECT_EQ(page.at("results").at(0).at("tags").at("host"), "n2");
  const json::value same = Json(
      Post("/api/search/lookup", R"({"metric":"cpu","limit":2,"startIndex":2,"useMeta":false})"));
  ASSERT_EQ(same.at("results").as_array().size(), 1u);
  EXPECT_EQ(same.at("results").at(0).at("tags").at("host"), "n3");
  Message(Get("/api/search/lookup?m=cpu&start_index=x"));
  Message(Post("/api/search/lookup", R"({"metric":"cpu","useMeta":3})"));
}

// What a running step and the archive are: they show, and nobody puts.
TEST_F(Put, OthersTakeNothing) {
  source_ = std::make_shared<FakeSource>(kNow);
  EXPECT_THAT(Message(Post("/api/put", std::string(kPoint)), 403), HasSubstr("--ephemeral"));
  Message(Post("/api/annotation", R"({"startTime":1700000000})"), 403);
  Message(Send(Method::kPut, "/api/annotation", R"({"startTime":1700000000})"), 403);
  Message(Send(Method::kDelete, "/api/annotation?start_time=1700000000"), 403);
  Message(Post("/api/annotation/bulk", "[]"), 403);
  Message(Send(Method::kDelete, "/api/annotation/bulk?start_time=1&global=true"), 403);
}

}  // namespace
}  // namespace sonde::web
