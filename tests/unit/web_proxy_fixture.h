// metric-proxy's endpoints over two steps of known numbers, whose control keeps what it is asked to
// do.
#pragma once

#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <future>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/unit/web_fake_source.h"
#include "web/router.h"

namespace sonde::web {

namespace json = boost::json;

inline constexpr Nanos kNow = 1'800'000'000 * kSecond;

// Keeps what is pushed into the running step.
class PushedInto : public FakeSource {
 public:
  PushedInto() : FakeSource(kNow) {}
  Status Push(const JobStep& id, const PushedValue& value) const override {
    if (id.ToString() != "4712.0") return FakeSource::Push(id, value);
    pushed.push_back(value);
    return {};
  }
  void Tree(const JobStep& id, TreeCallback callback) const override {
    if (id.ToString() != "4712.0") return FakeSource::Tree(id, std::move(callback));
    callback(std::vector<TreeEdge>{{"login1:head", "n1"}, {"n1", "n2"}});
  }
  void Join(const JobStep&, const ScrapeTarget& target, const std::string&,
            JoinCallback callback) const override {
    joined.push_back(target);
    if (target.port == "1") return callback(Status(Code::kUnavailable, "n1: connection refused"));
    callback(JoinedNodes{"n1", "n2: connection refused"});
  }
  void Exporters(const JobStep& id, ExportersCallback callback) const override {
    if (id.ToString() != "4712.0") return FakeSource::Exporters(id, std::move(callback));
    Exporter up;
    up.host = "n1";
    up.target = {"n9", "1337", "/metrics", 500 * kMillisecond};
    up.state = Exporter::State::kUp;
    up.kind = "Proxy";
    up.url = "http://n9:1337/job?job=main";
    up.last_scrape = kNow;
    Exporter failed;
    failed.host = "n2";
    failed.target = {"localhost", "9100", "/metrics", kSecond};
    failed.state = Exporter::State::kFailed;
    failed.why = "connection refused";
    callback(std::vector<Exporter>{up, failed});
  }
  void Unjoin(const JobStep&, const std::string& instance, UnjoinCallback callback) const override {
    callback(instance == "n9:1337" ? Status() : Status(Code::kNotFound, "it is not scraped"));
  }
  // What programs of the running step scrape, by instance.
  struct Scraping {
    std::vector<Point> up, tries;  // join_up, join_scrapes_total
  };
  void GetProfile(const JobStep& id, ProfileCallback callback) const override {
    FakeSource::GetProfile(id, [&](Result<Profile> profile) {
      for (const auto& [instance, points] : scraping) {
        if (!profile.ok()) break;
        for (const char* name : {"join_up", "join_scrapes_total", "join_period_seconds"}) {
          FootprintEntry& entry = profile->footprint.emplace_back();
          entry.series.metric.name = name;
          entry.series.tags.Set("instance", instance);
          entry.last = 1;
        }
      }
      callback(std::move(profile));
    });
  }
  void Query(const QuerySpec& spec, Callback callback) const override {
    if (!spec.metric.starts_with("join_")) return FakeSource::Query(spec, std::move(callback));
    Answer answer;
    for (const auto& [instance, points] : scraping) {
      QueryResult& result = answer.results.emplace_back();
      result.tags.Set("instance", instance);
      for (const Point& point : spec.metric == "join_up" ? points.up : points.tries) {
        if (point.time >= spec.start && point.time <= spec.end) result.points.push_back(point);
      }
    }
    callback(std::move(answer));
  }
  uint64_t ProfileLimit() const override { return 1u << 30; }
  mutable std::vector<PushedValue> pushed;
  mutable std::vector<ScrapeTarget> joined;
  std::map<std::string, Scraping> scraping;
};

class Proxy : public testing::Test {
 protected:
  Response Call(const std::shared_ptr<const DataSource>& source, const Request& request) {
    std::promise<Response> promise;
    std::future<Response> future = promise.get_future();
    Dispatch(Context(*source, &clock_, nullptr), request,
             [&](Response response) { promise.set_value(std::move(response)); });
    return future.get();
  }
  Response Get(std::string_view target) {
    Request request;
    EXPECT_TRUE(ParseTarget(target, request).ok());
    request.host = "localhost:4242";
    request.authorization = authorization_;
    return Call(source_, request);
  }
  Response Post(std::string_view target, std::string body) {
    Request request;
    EXPECT_TRUE(ParseTarget(target, request).ok());
    request.method = Method::kPost;
    request.content_type = "application/json";
    request.body = std::move(body);
    return Call(source_, request);
  }
  static json::value Json(const Response& response, int status = 200) {
    EXPECT_EQ(response.status, status) << response.body;
    return json::parse(response.body);
  }
  static const json::value* Counter(const json::value& snapshot, const char* name) {
    for (const json::value& counter : snapshot.at("counters").as_array()) {
      if (counter.at("name") == name) return &counter.at("ctype");
    }
    ADD_FAILURE() << "no counter " << name;
    return nullptr;
  }

  FixedClock clock_{kNow};
  std::string authorization_;
  std::shared_ptr<PushedInto> source_ = std::make_shared<PushedInto>();
};

}  // namespace sonde::web
