// A job's steps, their tags and runs beside each other, over HTTP.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <future>

#include "tests/unit/web_fake_source.h"
#include "web/router.h"

namespace sonde::web {
namespace {

namespace json = boost::json;
using testing::Contains;
using testing::HasSubstr;
using testing::Pair;

constexpr Nanos kNow = 1'800'000'000 * kSecond;

class StepsOverHttp : public testing::Test {
 protected:
  Response Ask(Method method, std::string_view target, std::string body = {}) {
    Request request;
    EXPECT_TRUE(ParseTarget(target, request).ok());
    request.method = method;
    request.content_type = "application/json";
    request.body = std::move(body);
    std::promise<Response> promise;
    std::future<Response> future = promise.get_future();
    Dispatch(Context(*source_, &clock_, nullptr), request,
             [&](Response response) { promise.set_value(std::move(response)); });
    return future.get();
  }
  json::object Get(std::string_view target) {
    const Response response = Ask(Method::kGet, target);
    EXPECT_EQ(response.status, 200) << response.body;
    return json::parse(response.body).as_object();
  }
  std::string Tags() { return json::serialize(Get("/api/v1/tags?job=4711.0").at("tags")); }

  FixedClock clock_{kNow};
  std::shared_ptr<FakeSource> source_ = std::make_shared<FakeSource>(kNow);
};

TEST_F(StepsOverHttp, AJobHasItsStepsInShort) {
  const json::object job = Get("/api/v1/steps?job=4711");
  EXPECT_EQ(job.at("job"), "4711");
  const json::array& steps = job.at("steps").as_array();
  ASSERT_EQ(steps.size(), 2u);
  const json::object& step = steps[0].as_object();
  EXPECT_EQ(step.at("step"), "0");
  EXPECT_EQ(step.at("state"), "completed");
  EXPECT_EQ(step.at("nodes"), 4);
  EXPECT_EQ(step.at("tags").at("campaign"), "winter");
  EXPECT_EQ(step.at("summary").at("duration_seconds"), 600);
  EXPECT_EQ(steps[1].at("step"), "batch");
  // A head, which has only its own step.
  EXPECT_EQ(Get("/api/v1/steps?job=4712.0").at("steps").as_array().size(), 1u);
  EXPECT_TRUE(Get("/api/v1/damage").at("damage").as_array().empty());
  EXPECT_EQ(Ask(Method::kGet, "/api/v1/steps?job=9").status, 404);
  EXPECT_EQ(Ask(Method::kGet, "/api/v1/steps").status, 400);
}

TEST_F(StepsOverHttp, TagsAreAddedAndTakenAway) {
  EXPECT_EQ(Tags(), R"({"campaign":"winter"})");
  const Response put = Ask(Method::kPut, "/api/v1/tags?job=4711.0",
                           R"({"tags": {"keep": "", "campaign": "summer"}})");
  EXPECT_EQ(put.status, 200) << put.body;
  EXPECT_EQ(json::parse(put.body).at("tags").at("campaign"), "summer");
  EXPECT_EQ(Tags(), R"({"campaign":"summer","keep":""})");
  const Response removed = Ask(Method::kDelete, "/api/v1/tags?job=4711.0&name=campaign");
  EXPECT_EQ(removed.status, 200) << removed.body;
  EXPECT_EQ(Tags(), R"({"keep":""})");
}

TEST_F(StepsOverHttp, WhatIsNoTagIsRefusedByName) {
  const auto put = [&](std::string_view body) {
    return Ask(Method::kPut, "/api/v1/tags?job=4711.0", std::string(body));
  };
  for (const char* body : {"", "[]", "{}", R"({"tags": []})", R"({"tags": {"a": 1}})",
                           R"({"tags": {"a b": ""}})", R"({"tags": {"a": "x,y"}})"}) {
    EXPECT_EQ(put(body).status, 400) << body;
  }
  EXPECT_THAT(put(R"({"tags": {"a b": ""}})").body, HasSubstr("tag 'a b': expected NAME=VALUE"));
  EXPECT_EQ(Ask(Method::kDelete, "/api/v1/tags?job=4711.0").status, 400);
  EXPECT_EQ(Ask(Method::kDelete, "/api/v1/tags?job=4711.0&name=a%20b").status, 400);
  EXPECT_EQ(Ask(Method::kDelete, "/api/v1/tags?name=keep").status, 400);
  EXPECT_EQ(Tags(), R"({"campaign":"winter"})");
}

TEST_F(StepsOverHttp, WhoCannotWriteSaysWhy) {
  const auto put = [&](std::string_view job) {
    return Ask(Method::kPut, "/api/v1/tags?job=" + std::string(job), R"({"tags": {"a": "1"}})");
  };
  EXPECT_EQ(put("4712.0").status, 409);
  EXPECT_THAT(put("4712.0").body, HasSubstr("4712.0 is running"));
  EXPECT_EQ(put("locked").status, 409);
  EXPECT_EQ(put("forbidden").status, 403);
  EXPECT_EQ(put("9.0").status, 404);
}

TEST_F(StepsOverHttp, RunsBesideEachOther) {
  json::object diff = Get("/api/v1/diff?profiles=4711.0,4710.0,4709.0");
  EXPECT_EQ(diff.at("groups").as_array().size(), 3u);
  EXPECT_EQ(diff.at("axis").at("align"), "start");
  // Each parameter a group.
  diff = Get("/api/v1/diff?profiles=4711.0,4710.0&profiles=4709.0&align=phase:solve");
  ASSERT_EQ(diff.at("groups").as_array().size(), 2u);
  EXPECT_EQ(diff.at("groups").at(0).at("runs").at(0).at("key"), "4711.0,4710.0");
  EXPECT_EQ(diff.at("axis").at("align"), "phase:solve");
  for (const char* wrong :
       {"", "?profiles=", "?profiles=4711.0", "?profiles=4711.0,", "?profiles=4711.0,,4710.0"}) {
    EXPECT_EQ(Ask(Method::kGet, "/api/v1/diff" + std::string(wrong)).status, 400) << wrong;
  }
  EXPECT_EQ(Ask(Method::kGet, "/api/v1/diff?profiles=4711.0,9.0").status, 404);
}

TEST_F(StepsOverHttp, ThePageOfAComparisonHasAnAddress) {
  const Response page = Ask(Method::kGet, "/diff?profiles=4711.0,4710.0");
  EXPECT_EQ(page.status, 303);
  EXPECT_THAT(page.headers, Contains(Pair("Location", "./#/diff?profiles=4711.0,4710.0")));
}

}  // namespace
}  // namespace sonde::web
