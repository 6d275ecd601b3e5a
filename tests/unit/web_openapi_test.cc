// The description of the endpoints against their table. What real answers look like is compared
// with the schemas by tests/web/openapi_test.py.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <future>
#include <set>

#include "tests/unit/web_fake_source.h"
#include "web/openapi.h"
#include "web/router.h"

namespace sonde::web::web_openapi_test {
namespace {

namespace json = boost::json;

constexpr Nanos kNow = 1'800'000'000 * kSecond;

json::object Description() { return json::parse(OpenApiJson()).as_object(); }

int StatusOf(std::string_view path, Method method) {
  const auto source = std::make_shared<FakeSource>(kNow);
  Request request;
  request.path = path;
  request.method = method;
  request.content_type = "application/json";
  std::promise<int> status;
  Dispatch(Context(*source), request,
           [&](const Response& response) { status.set_value(response.status); });
  return status.get_future().get();
}

TEST(OpenApi, EveryRouteSaysWhatItIs) {
  for (const RouteFamily& family : RouteFamilies()) {
    for (const Route& route : family.routes) {
      SCOPED_TRACE(route.path);
      EXPECT_FALSE(route.doc.about.empty())
          << "a route needs a description beside its registration: web/route/route_doc.h";
      const RouteDoc& post = route.post_doc.about.empty() ? route.doc : route.post_doc;
      EXPECT_FALSE(route.post != nullptr && post.body.empty()) << "what a POST has as its body";
      for (const RouteDoc* doc : {&route.doc, &post}) {
        for (const RouteParam& param : doc->params) {
          EXPECT_EQ(param.name.empty(), param.about.empty()) << param.name;
        }
      }
    }
  }
}

TEST(OpenApi, PathsAndMethodsAreThoseThatAnswer) {
  const json::object api = Description();
  const json::object& paths = api.at("paths").as_object();
  size_t routes = 0;
  std::set<std::string> ids;
  for (const RouteFamily& family : RouteFamilies()) {
    for (const Route& route : family.routes) {
      ++routes;
      SCOPED_TRACE(route.path);
      const json::value* path = paths.if_contains(route.path);
      ASSERT_NE(path, nullptr);
      for (const auto& [name, method] : {std::pair("get", Method::kGet),
                                         {"post", Method::kPost},
                                         {"put", Method::kPut},
                                         {"delete", Method::kDelete}}) {
        const json::value* operation = path->as_object().if_contains(name);
        const int status = StatusOf(route.path, method);
        EXPECT_EQ(operation == nullptr, status == 405) << name;
        if (operation == nullptr) continue;
        const std::string id(operation->at("operationId").as_string().c_str());
        EXPECT_TRUE(ids.insert(id).second) << id << " stands twice";
      }
    }
  }
  EXPECT_EQ(paths.size(), routes) << "a path stands twice in the table";
}

// Every "$ref" leads somewhere.
void CheckReferences(const json::value& value, const json::object& api) {
  if (const json::array* list = value.if_array()) {
    for (const json::value& item : *list) CheckReferences(item, api);
  }
  if (!value.is_object()) return;
  for (const auto& [key, item] : value.get_object()) {
    if (key == "$ref" && item.is_string()) {
      const std::string pointer(item.as_string().c_str());
      json::error_code error;
      const json::value whole(api);
      EXPECT_NE(whole.find_pointer(pointer.substr(1), error), nullptr) << pointer;
    }
    CheckReferences(item, api);
  }
}

TEST(OpenApi, ReferencesLeadSomewhere) {
  const json::object api = Description();
  CheckReferences(api, api);
}

TEST(OpenApi, ShapesInShort) {
  EXPECT_EQ(SchemaOf("#A"), R"({"$ref":"#/components/schemas/A"})");
  EXPECT_EQ(SchemaOf("[#A]"), R"({"type":"array","items":{"$ref":"#/components/schemas/A"}})");
  EXPECT_EQ(SchemaOf("{}"), "{}");
}

}  // namespace
}  // namespace sonde::web::web_openapi_test
