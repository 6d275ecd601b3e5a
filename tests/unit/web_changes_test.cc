// What changes something is no GET of a browser's: any page can have a browser GET an address. All
// routes are asked, so that none slips through.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tests/unit/web_fake_source.h"
#include "web/router.h"

namespace sonde::web::web_changes_test {
namespace {

using testing::HasSubstr;

constexpr Nanos kNow = 1'800'000'000 * kSecond;

// Counts what it is told to change, of steps, tags and the settings it keeps.
class Watched : public FakeSource {
 public:
  Watched() : FakeSource(kNow) {}
  Status Push(const JobStep&, const PushedValue&) const override { return Count(); }
  Status PauseCounters(const JobStep&, bool) const override { return Count(); }
  Status AddAlarm(const JobStep&, const alarms::Rule&) const override { return Count(); }
  Status RemoveAlarm(const JobStep&, const std::string&) const override { return Count(); }
  void Join(const JobStep&, const ScrapeTarget&, const std::string&,
            JoinCallback callback) const override {
    ++changes_;
    callback(JoinedNodes{"n1", ""});
  }
  void Unjoin(const JobStep&, const std::string&, UnjoinCallback callback) const override {
    callback(Count());
  }
  void ChangeTags(const JobStep& id, const UserTags& set, const std::vector<std::string>& remove,
                  TagsCallback callback) const override {
    ++changes_;
    FakeSource::ChangeTags(id, set, remove, std::move(callback));
  }
  // Since it was last asked.
  size_t TakeChanges() {
    const std::string before = std::exchange(settings_, ftio_args().Get());
    return changes_.exchange(0) + (before == settings_ ? 0 : 1);
  }

 private:
  Status Count() const {
    ++changes_;
    return {};
  }
  mutable std::atomic<size_t> changes_ = 0;
  std::string settings_ = ftio_args().Get();
};

struct Asked {
  Response response;
  size_t changes = 0;
};

Asked Ask(Watched& source, const Route& route, Method method, bool by_browser,
          std::string content_type = "application/json", std::string origin = "") {
  Request request;
  EXPECT_TRUE(ParseTarget(std::string(route.path) + std::string(route.doc.example), request).ok());
  request.method = method;
  request.by_browser = by_browser;
  if (method == Method::kPost) {
    request.content_type = std::move(content_type);
    request.origin = std::move(origin);
    const RouteDoc& doc = route.post_doc.about.empty() ? route.doc : route.post_doc;
    request.body = doc.example_body.empty() ? "{}" : doc.example_body;
  }
  std::promise<Response> response;
  Dispatch(Context(source), request,
           [&](Response answer) { response.set_value(std::move(answer)); });
  Asked asked;
  asked.response = response.get_future().get();
  asked.changes = source.TakeChanges();
  return asked;
}

TEST(Changes, AreNoGetOfABrowsersAndNoHeadAtAll) {
  Watched source;
  std::set<std::string_view> change;
  for (const RouteFamily& family : RouteFamilies()) {
    for (const Route& route : family.routes) {
      if (route.get == nullptr) continue;
      SCOPED_TRACE(route.path);
      const Asked program = Ask(source, route, Method::kGet, false);
      EXPECT_EQ(program.changes != 0, route.doc.changes)
          << "a GET that changes something says so in its RouteDoc, and no other one does";
      for (const auto& [method, by_browser] :
           {std::pair(Method::kGet, true), {Method::kHead, true}, {Method::kHead, false}}) {
        const Asked asked = Ask(source, route, method, by_browser);
        EXPECT_EQ(asked.changes, 0u);
        EXPECT_EQ(asked.response.status == 405, route.doc.changes);
        if (!route.doc.changes) continue;
        EXPECT_THAT(asked.response.body, HasSubstr("this path changes something"));
        EXPECT_EQ(asked.response.headers.front().first, "Allow");
      }
      if (!route.doc.changes) continue;
      change.insert(route.path);
      if (route.post != nullptr) {
        EXPECT_EQ(Ask(source, route, Method::kPost, true).changes, program.changes)
            << "a browser may POST it";
      }
    }
  }
  EXPECT_TRUE(change.contains("/alarms/del") && change.contains("/leave")) << change.size();
}

// Another page's form, or its beacon: browsers that say less of who asks send a password with it.
// None of them sends JSON unless it has asked before.
TEST(Changes, AreNoPostOfABrowsersThatSaysNeitherWhoAsksNorWhatItIs) {
  Watched source;
  size_t posts = 0;
  for (const RouteFamily& family : RouteFamilies()) {
    for (const Route& route : family.routes) {
      if (route.post == nullptr) continue;
      SCOPED_TRACE(route.path);
      const Asked program = Ask(source, route, Method::kPost, false, "");
      EXPECT_NE(program.response.status, 415) << "short programs send no type";
      for (const char* type : {"", "text/plain", "application/x-www-form-urlencoded"}) {
        const Asked asked = Ask(source, route, Method::kPost, true, type);
        EXPECT_EQ(asked.changes, 0u) << type;
        EXPECT_EQ(asked.response.status, 415) << type;
      }
      // Auth has seen that it is of this server's own page.
      EXPECT_NE(Ask(source, route, Method::kPost, true, "", "http://localhost").response.status,
                415);
      posts += program.changes;
    }
  }
  EXPECT_GT(posts, 3u);
}

}  // namespace
}  // namespace sonde::web::web_changes_test
