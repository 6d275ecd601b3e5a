// metric-proxy's endpoints for exporters and other proxies: who joins, who is listed, who leaves.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "tests/unit/web_proxy_fixture.h"

namespace sonde::web::web_proxy_join_test {
namespace {

using testing::HasSubstr;

TEST_F(Proxy, AProxyIsKnownByItsPage) {
  const Response page = Get("/is_admire_proxy.html");
  EXPECT_EQ(page.status, 200);
  EXPECT_THAT(page.content_type, HasSubstr("text/html"));
  EXPECT_THAT(page.body, HasSubstr("<html>"));
}

TEST_F(Proxy, WhoJoinsIsToldThisAddressWithItsToken) {
  EXPECT_EQ(Json(Get("/pivot?from=n9:1337")).at("operation"), "localhost:4242");
  authorization_ = "Bearer secret";
  EXPECT_EQ(Json(Get("/pivot?from=n9:1337")).at("operation"), "sonde:secret@localhost:4242");
  authorization_ = "basic YWRhOnNlY3JldA==";
  EXPECT_EQ(Json(Get("/pivot?from=n9:1337")).at("operation"), "ada:secret@localhost:4242");
  EXPECT_EQ(Json(Get("/pivot"), 400).at("success"), false);
  EXPECT_EQ(Get("/period").body, R"({"operation":"1000","success":true})");
}

TEST_F(Proxy, WhoeverLeavesIsNotScrapedAnyMore) {
  for (const char* target :
       {"/leave?from=n9:1337", "/leave?from=n8:1337", "/disconnect?target=n9:1337",
        "/disconnect?target=n9:1337/job", "/remove?from=a:1&target=n8:1337"}) {
    EXPECT_EQ(Json(Get(target)).at("success"), true) << target;
  }
  EXPECT_EQ(Json(Get("/disconnect?target=n8:1337"), 404).at("success"), false);
  for (const char* target : {"/leave", "/leave?from=nobody", "/disconnect", "/remove?from=a:1"}) {
    EXPECT_EQ(Json(Get(target), 400).at("success"), false) << target;
  }
}

TEST_F(Proxy, AnExporterThatDoesNotAnswerIsAnError) {
  const json::value joined = Json(Get("/join?to=n9:1337&period=500"));
  EXPECT_EQ(joined.at("operation"), "Added n9:1337 for scraping");
  EXPECT_EQ(joined.at("period"), 500);
  EXPECT_EQ(joined.at("nodes"), "n1");
  EXPECT_EQ(joined.at("failed"), "n2: connection refused");
  EXPECT_EQ(source_->joined.back().every, 500 * kMillisecond);
  const json::value refused = Json(Get("/join?to=n9:1"), 503);
  EXPECT_EQ(refused.at("success"), false);
  EXPECT_EQ(refused.at("operation"), "http://n9:1/metrics is not scraped: n1: connection refused");
  EXPECT_EQ(Get("/join?to=n9:1337&period=5").status, 400);  // ms
}

TEST_F(Proxy, SeveralAreJoinedAtOnce) {
  // As metric-proxy writes it, and as it should.
  for (const char* target : {"/join/multiple?to=a:2&b:3&c:4&period=500&700&900",
                             "/join/multiple?to=a:2%26b:3%26c:4&period=500%26700%26900"}) {
    source_->joined.clear();
    EXPECT_EQ(Json(Get(target)).at("success"), true) << target;
    ASSERT_EQ(source_->joined.size(), 3u) << target;
    EXPECT_EQ(source_->joined[1].Instance(), "b:3");
    EXPECT_EQ(source_->joined[2].every, 900 * kMillisecond);
  }
  EXPECT_EQ(Json(Get("/join/multiple?to=a:2&b:1"), 503).at("success"), false);
  EXPECT_EQ(Json(Get("/join?to=a:2&b:3"), 400).at("success"), false);
}

TEST_F(Proxy, EveryTargetIsListedWithItsState) {
  const json::value list = Json(Get("/join/list"));
  ASSERT_EQ(list.as_array().size(), 2u);
  const json::value& up = list.at(0);
  EXPECT_EQ(up.at("target_url"), "http://n9:1337/job?job=main");
  EXPECT_EQ(up.at("ttype"), "Proxy");
  EXPECT_EQ(up.at("period"), 500);
  EXPECT_EQ(up.at("last_scrape"), kNow / kSecond);
  EXPECT_EQ(up.at("state"), "up");
  EXPECT_EQ(up.at("node"), "n1");
  EXPECT_EQ(list.at(1).at("state"), "failed");
  EXPECT_EQ(list.at(1).at("error"), "connection refused");
  EXPECT_EQ(list.at(1).at("last_scrape"), 0);
  EXPECT_EQ(list.at(1).at("up"), 0);
}

// Points of the last minute, one a second, by what each is.
std::vector<Point> LastMinute(const std::function<double(int ago)>& value) {
  std::vector<Point> points;
  for (int ago = 60; ago > 0; --ago) points.push_back({kNow - ago * kSecond, value(ago)});
  return points;
}

// The last values of a program that has ended stay in the record.
TEST_F(Proxy, WhatAProgramScrapesIsListedAsLongAsItDoes) {
  const auto scrapes = LastMinute([](int ago) { return 61 - ago; });
  const auto stopped = LastMinute([](int ago) { return 61 - std::max(ago, 50); });
  const auto yes = LastMinute([](int) { return 1; });
  const auto until = [](int end) {
    return LastMinute([=](int ago) { return ago >= end ? 1 : 0; });
  };
  source_->scraping = {{"answers:1", {yes, scrapes}},     {"down:1", {until(10), scrapes}},
                       {"ended:1", {until(50), stopped}}, {"killed:1", {yes, stopped}},
                       {"n9:1337", {yes, scrapes}},       {"never:1", {until(90), scrapes}}};
  const json::value list = Json(Get("/join/list"));
  const json::array& all = list.as_array();
  ASSERT_EQ(all.size(), 5u) << list;
  EXPECT_EQ(all[0].at("node"), "n1") << "it is the one of n9:1337, which a node scrapes";
  EXPECT_EQ(all[1].at("node"), "n2");
  const auto check = [&](size_t i, const char* url, const char* state, Nanos last) {
    EXPECT_EQ(all[i].at("target_url"), url);
    EXPECT_EQ(all[i].at("state"), state) << url;
    EXPECT_EQ(all[i].at("up"), state == std::string("up") ? 1 : 0) << url;
    EXPECT_EQ(all[i].at("last_scrape"), last / kSecond) << url;
    EXPECT_EQ(all[i].at("node"), "") << url;
    EXPECT_EQ(all[i].at("period"), 1000) << url;
  };
  check(2, "http://answers:1", "up", kNow - kSecond);
  check(3, "http://down:1", "down", kNow - 10 * kSecond);
  check(4, "http://never:1", "down", 0);
  EXPECT_EQ(Get("/join/list?job=4711.0").body, "[]") << "it has ended";
}

// Several steps that run, whose servers answer when the last one was asked, the last one first.
class LateServers final : public PushedInto {
 public:
  void Jobs(size_t, JobsCallback callback) const override {
    std::vector<JobDescription> jobs(3);
    for (size_t i = 0; i < jobs.size(); ++i) jobs[i].id = {std::to_string(5003 - i), "0"};
    callback(std::move(jobs));
  }
  void Forward(const JobStep& id, const Request& request, ForwardCallback callback) const override {
    EXPECT_EQ(request.target, "/join/list?job=" + id.ToString());
    Response response;
    response.body = "[\"" + id.ToString() + "\"]";
    waiting_.push_back([response, callback = std::move(callback)] { callback(response); });
    if (waiting_.size() < 3) return;
    while (!waiting_.empty()) {
      const auto last = std::move(waiting_.back());
      waiting_.pop_back();
      last();
    }
  }

 private:
  mutable std::vector<std::function<void()>> waiting_;
};

TEST_F(Proxy, StepsAreListedInTheirOrderWhoeverAnswersFirst) {
  source_ = std::make_shared<LateServers>();
  EXPECT_EQ(Get("/join/list").body, R"(["5003.0","5002.0","5001.0"])");
}

}  // namespace
}  // namespace sonde::web::web_proxy_join_test
