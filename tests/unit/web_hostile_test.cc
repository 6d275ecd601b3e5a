// Every path there is, asked with what is no request for it: bodies that are no JSON, nested
// without end, of wrong types, with numbers that nothing holds; parameters of the same kind; paths
// that climb; tokens that are none. The answer is a 4xx in JSON that says what is wrong, never an
// error of ours. What a server does with many or slow clients is in web_limits_test.cc.
#include <fmt/core.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <boost/json.hpp>
#include <fstream>
#include <functional>
#include <future>
#include <string>
#include <vector>

#include "tests/unit/web_client.h"
#include "web/opentsdb/put_store.h"
#include "web/pages/pages.h"
#include "web/router.h"

namespace sonde::web::web_hostile_test {
namespace {

namespace json = boost::json;
using testing::HasSubstr;
using testing::StartsWith;

constexpr Nanos kNow = 1'800'000'000 * kSecond;

class Hostile : public testing::Test {
 protected:
  // Of both kinds of source: what shows steps, and what takes points.
  void ForEachSource(const std::function<void()>& ask) {
    const std::shared_ptr<const DataSource> sources[] = {std::make_shared<FakeSource>(kNow),
                                                         std::make_shared<PutStore>()};
    for (const auto& source : sources) {
      source_ = source;
      ask();
    }
  }

  Response Ask(Method method, std::string_view target, std::string body = "",
               std::string_view type = "application/json") {
    Request request;
    const Status parsed = ParseTarget(target, request);
    if (!parsed.ok()) return ErrorResponse(parsed);
    request.method = method;
    request.content_type = type;
    request.body = std::move(body);
    std::promise<Response> promise;
    std::future<Response> future = promise.get_future();
    Dispatch(Context(*source_, &clock_, nullptr), request,
             [&](Response response) { promise.set_value(std::move(response)); });
    Response answer = future.get();
    while (answer.next && answer.next(answer.body)) {
    }
    return answer;
  }

  // Whatever it is, it is told clearly: in JSON, which is UTF-8, and no 5xx, for nothing of ours
  // failed. squeue, which may not be there, is no matter of the request.
  static void ExpectClear(const Response& response) {
    if (response.body.find("squeue") != std::string::npos) return;
    EXPECT_LT(response.status, 500) << response.body;
    if (response.status < 400) {
      if (response.body.empty() || !response.content_type.starts_with("application/json")) return;
      json::error_code error;
      json::parse(response.body, error);
      EXPECT_FALSE(error) << response.body.substr(0, 1000);
      return;
    }
    json::error_code error;
    const json::value value = json::parse(response.body, error);
    ASSERT_FALSE(error) << response.body.substr(0, 1000);
    // What OpenTSDB says of a put in its details.
    if (value.is_object() && value.get_object().contains("errors")) return;
    EXPECT_EQ(value.at("error").at("code"), response.status);
    EXPECT_FALSE(value.at("error").at("message").as_string().empty());
    EXPECT_LT(response.body.size(), 20'000u) << "what was sent is not sent back as a whole";
  }
  static void ExpectRefused(const Response& response) {
    ExpectClear(response);
    EXPECT_GE(response.status, 400) << response.body.substr(0, 1000);
  }

  FixedClock clock_{kNow};
  std::shared_ptr<const DataSource> source_;
};

struct Operation {
  Method method;
  const Route* route;
  const RouteDoc* doc;
};

std::vector<Operation> Operations() {
  std::vector<Operation> all;
  for (const RouteFamily& family : RouteFamilies()) {
    for (const Route& route : family.routes) {
      const RouteDoc& post = route.post_doc.about.empty() ? route.doc : route.post_doc;
      const RouteDoc& remove = route.remove_doc.about.empty() ? route.doc : route.remove_doc;
      if (route.get != nullptr) all.push_back({Method::kGet, &route, &route.doc});
      if (route.post != nullptr) all.push_back({Method::kPost, &route, &post});
      if (route.put != nullptr) all.push_back({Method::kPut, &route, &post});
      if (route.remove != nullptr) all.push_back({Method::kDelete, &route, &remove});
    }
  }
  return all;
}

std::string TargetOf(const Operation& operation) {
  return fmt::format("{}{}", operation.route->path, operation.doc->example);
}

// Bodies of one kind after the other for each operation that reads one.
bool ReadsABody(const Operation& operation) {
  return operation.method != Method::kGet && operation.doc->body != "{}";
}

std::string Nested(const std::string& open, const std::string& middle, const std::string& close,
                   size_t depth) {
  std::string text;
  for (size_t i = 0; i < depth; ++i) text += open;
  text += middle;
  for (size_t i = 0; i < depth; ++i) text += close;
  return text;
}

TEST_F(Hostile, ABodyThatIsNoJsonIsRefused) {
  const std::vector<std::string> bodies = {
      "{",
      "}",
      "nothing",
      "{\"start\":1,}",
      "{'start':1}",
      "{\"start\":1} and more",
      "{\"start\":NaN}",
      "{\"start\":0x10}",
      "{\"start\":01}",
      "{\"start\":1e}",
      "\xef\xbb\xbf{}",
      std::string("{\"name\":\"a\0b\"}", 13),
      "{\"name\":\"a\nb\"}",
      "{\"name\":\"\xff\xfe\"}",
      "{\"name\":\"\xc0\xaf\"}",
      "{\"name\":\"\xed\xa0\x80\"}",
      "{\"name\":\"\\ud800\"}",
      "{\"name\":\"\\x41\"}",
      "{\"\xff\":1}",
      Nested("[", "", "]", 100'000),
      Nested("[", "", "", 500'000),
      Nested("{\"a\":", "1", "}", 100'000),
      Nested("{\"queries\":[", "", "", 40'000),
      "\x1f\x8b\x08",
  };
  ForEachSource([&] {
    for (const Operation& operation : Operations()) {
      if (!ReadsABody(operation)) continue;
      for (const std::string& body : bodies) {
        SCOPED_TRACE(TargetOf(operation) + " " + body.substr(0, 40));
        ExpectRefused(Ask(operation.method, TargetOf(operation), body));
      }
    }
  });
}

// Texts of JSON that no field wants, or that few can hold.
std::vector<std::string> HostileValues() {
  return {"1e999",
          "-1e999",
          "1e308",
          "-0.0",
          "-1",
          "99999999999999999999999999999999999999",
          "9223372036854775808",
          "18446744073709551616",
          std::string(100'000, '9'),
          "0." + std::string(100'000, '1'),
          "1e-99999999999",
          "null",
          "true",
          "\"\"",
          "\"NaN\"",
          "\"-1e999\"",
          "\"\\u0000\"",
          "\"../../etc/passwd\"",
          "\"" + std::string(100'000, 'a') + "\"",
          "\"{{}}{x}%s%n\"",
          "[]",
          "{}",
          "[null]",
          "[[[[[[[[1]]]]]]]]",
          "{\"a\":{\"a\":{\"a\":1}}}"};
}

// `value` with each of its fields, at any depth, replaced by `text`, one after the other.
void ForEachField(const json::value& value, const std::string& text,
                  const std::function<void(std::string)>& use) {
  use(text);
  const auto inside = [&](const json::value& field, const auto& around) {
    ForEachField(field, text, [&](const std::string& changed) { use(around(changed)); });
  };
  if (const json::object* object = value.if_object()) {
    for (const auto& [key, field] : *object) {
      inside(field, [&](const std::string& changed) {
        std::string out = "{";
        for (const auto& [other, kept] : *object) {
          out += (out.size() == 1 ? "" : ",") + json::serialize(json::string(other)) + ":";
          out += other == key ? changed : json::serialize(kept);
        }
        return out + "}";
      });
    }
  }
  if (const json::array* list = value.if_array(); list != nullptr && !list->empty()) {
    inside(list->front(), [](const std::string& changed) { return "[" + changed + "]"; });
  }
}

TEST_F(Hostile, WhateverAFieldHoldsTheAnswerIsClear) {
  size_t refused = 0;
  ForEachSource([&] {
    for (const Operation& operation : Operations()) {
      if (!ReadsABody(operation) || operation.doc->example_body.empty()) continue;
      for (const std::string& text : HostileValues()) {
        ForEachField(json::parse(operation.doc->example_body), text, [&](const std::string& body) {
          SCOPED_TRACE(TargetOf(operation) + " " + body.substr(0, 300));
          const Response response = Ask(operation.method, TargetOf(operation), body);
          ExpectClear(response);
          refused += response.status >= 400 ? 1 : 0;
        });
      }
    }
  });
  EXPECT_GT(refused, 1000u);
}

// Every parameter that is described, with the others as in the example.
TEST_F(Hostile, WhateverAParameterHoldsTheAnswerIsClear) {
  const std::vector<std::string> values = {"",
                                           "-1",
                                           "0",
                                           "1e999",
                                           "NaN",
                                           "99999999999999999999",
                                           "18446744073709551615",
                                           "9223372036854775807",
                                           "9223372036854775807ms",
                                           std::string(5'000, '9'),
                                           "%2e%2e%2f%2e%2e%2fetc%2fpasswd",
                                           "a%20b%0d%0aSet-Cookie:%20x=y",
                                           "%7B%7B%7D%7D%7Bx%7D",
                                           "sum:%7B",
                                           std::string(2'000, '('),
                                           "*",
                                           "%F0%9F%8E%88"};
  ForEachSource([&] {
    for (const Operation& operation : Operations()) {
      for (const RouteParam& param : operation.doc->params) {
        if (param.name.empty()) continue;
        for (const std::string& value : values) {
          // Of a name that stands twice the first counts.
          std::string target = fmt::format("{}?{}={}", operation.route->path, param.name, value);
          if (!operation.doc->example.empty()) {
            target += "&" + std::string(operation.doc->example.substr(1));
          }
          SCOPED_TRACE(target.substr(0, 300));
          ExpectClear(Ask(operation.method, target, std::string(operation.doc->example_body)));
        }
      }
    }
  });
}

TEST_F(Hostile, AParameterOrPathThatIsNoUtf8IsRefused) {
  ForEachSource([&] {
    for (const Operation& operation : Operations()) {
      for (const char* bad : {"%ff%fe", "%c0%af", "%ed%a0%80", "%f5%80%80%80", "a%80", "\xff"}) {
        SCOPED_TRACE(std::string(operation.route->path) + " " + bad);
        for (const char* mark : {"?job=", "?x&", "/"}) {
          ExpectRefused(Ask(operation.method, std::string(operation.route->path) + mark + bad));
        }
      }
    }
  });
}

TEST_F(Hostile, ABodyOfAnotherTypeIsRefused) {
  ForEachSource([&] {
    for (const Operation& operation : Operations()) {
      if (operation.method == Method::kGet) continue;
      for (const char* type :
           {"text/plain", "application/x-www-form-urlencoded", "application/jsonp", "text/json",
            "multipart/form-data; boundary=x", "application/json, text/plain", "json", ";"}) {
        SCOPED_TRACE(std::string(operation.route->path) + " " + type);
        const Response response = Ask(operation.method, TargetOf(operation), "{}", type);
        ExpectRefused(response);
        EXPECT_EQ(response.status, 415);
      }
    }
  });
}

// OpenTSDB passes over what it does not know, but in rateOptions, and so its clients may send it.
TEST_F(Hostile, AFieldThatIsNotKnownIsRefusedWhereItIsNoneOfOpenTsdbs) {
  size_t asked = 0;
  ForEachSource([&] {
    for (const Operation& operation : Operations()) {
      if (!ReadsABody(operation) || operation.route->path.starts_with("/api/")) continue;
      std::string body(operation.doc->example_body);
      ASSERT_TRUE(body.starts_with('{')) << operation.route->path;
      body.insert(1, R"("severity": "critical", )");
      SCOPED_TRACE(TargetOf(operation));
      const Response response = Ask(operation.method, TargetOf(operation), body);
      ExpectRefused(response);
      EXPECT_EQ(response.status, 400);
      EXPECT_THAT(response.body, HasSubstr("there is no field 'severity' here; expected "));
      ++asked;
    }
  });
  EXPECT_EQ(asked, 2 * 11u);
}

TEST_F(Hostile, NoPathLeadsOut) {
  ForEachSource([&] {
    for (const std::string up : {"..", "%2e%2e", "%2E.", ".%2e", "%252e%252e", "....", "..;"}) {
      for (const std::string slash : {"/", "//", "%2f", "\\", "%5c", "/./"}) {
        for (const std::string from : {"", "/api", "/vendor/uPlot", "/profiles/get", "/job"}) {
          for (const std::string to : {"etc/passwd", "app.js", "job/list", "api/version", ""}) {
            const std::string target = from + "/" + up + slash + up + slash + to;
            SCOPED_TRACE(target);
            const Response response = Ask(Method::kGet, target);
            ExpectRefused(response);
            EXPECT_EQ(response.status, 404);
          }
        }
      }
    }
  });
}

using HostileServer = ServerTest;

const char* NameOf(Method method) {
  switch (method) {
    case Method::kPost:
      return "POST";
    case Method::kPut:
      return "PUT";
    case Method::kDelete:
      return "DELETE";
    default:
      return "GET";
  }
}

// What the client gets, whole.
void ExpectError(const std::string& answer, int status) {
  EXPECT_THAT(answer, StartsWith(fmt::format("HTTP/1.1 {} ", status)));
  const size_t body = answer.find("\r\n\r\n");
  ASSERT_NE(body, std::string::npos);
  json::error_code error;
  const json::value value = json::parse(answer.substr(body + 4), error);
  ASSERT_FALSE(error) << answer;
  EXPECT_EQ(value.at("error").at("code"), status);
  EXPECT_FALSE(value.at("error").at("message").as_string().empty());
}

TEST_F(HostileServer, NoOperationIsForWhoHasNoToken) {
  Start();
  const std::vector<std::string> credentials = {
      "",
      "Authorization: Bearer wrong!\r\n",
      "Authorization: Bearer\r\n",
      "Authorization: secret\r\n",
      "Authorization: Basic c2VjcmV0\r\n",
      "Cookie: token=secret\r\n",
      "X-Token: secret\r\n",
      "Sonde-Token: wrong!\r\n",
      "Sonde-By-Browser: 1\r\n",
  };
  for (const Operation& operation : Operations()) {
    for (const std::string& line : credentials) {
      SCOPED_TRACE(std::string(operation.route->path) + " " + line);
      const std::string mark = operation.doc->example.empty() ? "?" : "&";
      const std::string target = TargetOf(operation) + mark + "token=secret";
      Client client(server_->port());
      client.Send(fmt::format("{} {} HTTP/1.1\r\nHost: x\r\n{}\r\n", NameOf(operation.method),
                              target, line));
      // The files of the page are the same for everybody.
      if (IsPage(operation.route->path)) {
        const std::string body(PageAt(operation.route->path).body);
        EXPECT_TRUE(client.Receive().ends_with("\r\n\r\n" + body));
      } else {
        ExpectError(client.Receive(), 401);
      }
    }
  }
}

TEST_F(HostileServer, WhatIsTooMuchIsToldInJson) {
  Start();
  ExpectError(Exchange(Get("/", "X: " + std::string(20'000, 'a') + "\r\n")), 431);
  ExpectError(Exchange(Post("/api/query", std::string((1u << 20) + 1, ' '))), 413);
  ExpectError(Exchange("POST /api/put HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer secret\r\n"
                       "Content-Length: 999999999999999999\r\n\r\n{"),
              413);
  ExpectError(Exchange("GET /\xff HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer secret\r\n\r\n"),
              400);
  ExpectError(Exchange(Get("/api/version", "Expect: a miracle\r\n")), 417);
  ExpectError(Exchange("BREW /job/list HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer secret\r\n"
                       "\r\n"),
              405);
}

TEST_F(HostileServer, ChunksThatAreNoneAreRefused) {
  Start();
  for (const char* chunks : {"zz\r\n{}\r\n0\r\n\r\n", "ffffffffffffffffff\r\n{}", "-1\r\n{}\r\n",
                             "2\r\n{}xx0\r\n\r\n", "2 \r\n{}\r\nq\r\n\r\n"}) {
    SCOPED_TRACE(chunks);
    std::string request = Get("/api/query", "Transfer-Encoding: chunked\r\n") + chunks;
    ExpectError(Exchange(request.replace(0, 3, "POST")), 400);
  }
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
// The most that the process has held since the call before, in bytes.
size_t PeakMemory() {
  size_t kilobytes = 0;
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("VmHWM:")) kilobytes = std::strtoul(line.c_str() + 6, nullptr, 10);
  }
  std::ofstream("/proc/self/clear_refs") << "5";
  return kilobytes * 1024;
}

// Owners of the token, all of whom send as much as they can and never end: each holds a body at
// most, whose text grows by doubling.
TEST_F(HostileServer, BodiesOfAllConnectionsTogetherAreBounded) {
  constexpr size_t kHolding = 32;
  options_.limits.connections = kHolding + 8;
  Start();
  PeakMemory();
  const size_t before = PeakMemory();
  std::vector<std::unique_ptr<Client>> clients;
  const std::string body(options_.limits.body_bytes, '[');
  const std::string request = Post("/api/query", body);
  for (size_t i = 0; i < kHolding; ++i) {
    clients.push_back(std::make_unique<Client>(server_->port()));
    clients.back()->Send(request.substr(0, request.size() - 1));
  }
  // And many times as much in bodies that are refused, while those hold theirs.
  for (int i = 0; i < 100; ++i) ExpectError(Exchange(request), 400);
  const size_t most = kHolding * 2 * options_.limits.body_bytes;
  EXPECT_LT(PeakMemory() - before, most + (16u << 20));
  for (const auto& client : clients) {
    client->Send("[");
    ExpectError(client->Receive(), 400);
  }
}
#endif

}  // namespace
}  // namespace sonde::web::web_hostile_test
