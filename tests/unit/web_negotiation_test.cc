// Compression and conditions, as functions; what the server makes of them through a socket; pages
// of other origins.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/web_client.h"
#include "web/http/gzip.h"
#include "web/http/negotiation.h"
#include "web/server/cors.h"

namespace sonde::web::web_negotiation_test {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

TEST(Negotiation, PacksOnlyForWhoeverAsks) {
  for (const char* yes : {"gzip", "GZIP", "deflate, gzip;q=0.1", "gzip;q=1.0, identity; q=0.5", "*",
                          "br;q=1.0, *;q=0.2", "x-gzip", "identity;q=0, gzip"}) {
    EXPECT_TRUE(WantsGzip(yes)) << yes;
  }
  for (const char* no :
       {"", "identity", "gzip;q=0", "gzip;q=0.000, *", "*;q=0", "deflate, br",
        "gzip;q=0.3, identity;q=0.8", "gzip;q=nonsense", "gzipped", ",;,", "gzip;q=2"}) {
    EXPECT_FALSE(WantsGzip(no)) << no;
  }
}

TEST(Negotiation, KnowsWhatDidNotChange) {
  Response response;
  response.etag = "\"abc\"";
  response.last_modified = 784'111'777 * kSecond;
  Request request;
  EXPECT_FALSE(IsUnchanged(request, response));
  for (const char* same : {"\"abc\"", "W/\"abc\"", "\"x\", \"abc\"", "*", "\"abc-gzip\""}) {
    request.if_none_match = same;
    EXPECT_TRUE(IsUnchanged(request, response)) << same;
  }
  request.if_modified_since = "Sun, 06 Nov 1994 08:49:37 GMT";
  for (const char* other : {"\"abd\"", "abc", "\"ab\", \"c\"", "\"ab-gzip\"", ","}) {
    request.if_none_match = other;
    EXPECT_FALSE(IsUnchanged(request, response)) << other << " goes before the date";
  }
  request.if_none_match.clear();
  EXPECT_TRUE(IsUnchanged(request, response));
  request.if_modified_since = "Sun, 06 Nov 1994 08:49:36 GMT";
  EXPECT_FALSE(IsUnchanged(request, response));
  for (const char* wrong :
       {"yesterday", "Sun, 06 Nov 1994 08:49:37 CET", "", "Sun, 99 Nov 1994 08:49:37 GMT"}) {
    request.if_modified_since = wrong;
    EXPECT_FALSE(IsUnchanged(request, response)) << wrong;
  }
}

TEST(Negotiation, DatesReadBack) {
  EXPECT_EQ(HttpDate(784'111'777 * kSecond), "Sun, 06 Nov 1994 08:49:37 GMT");
  EXPECT_EQ(ParseHttpDate("Sun, 06 Nov 1994 08:49:37 GMT"), 784'111'777 * kSecond);
  EXPECT_EQ(ParseHttpDate("Sun, 06 Nov 9999 08:49:37 GMT") > 0, true);
}

TEST(Negotiation, WhatIsPackedInPiecesUnpacks) {
  std::string text, packed;
  Gzip gzip;
  for (int i = 0; i < 2000; ++i) {
    const std::string piece = std::to_string(i * 7919) + (i % 3 == 0 ? "\n" : "");
    text += piece;
    gzip.Add(piece, false, packed);
  }
  gzip.Add("", true, packed);
  const Result<std::string> back = Gunzip(packed, text.size());
  ASSERT_TRUE(back.ok()) << back.status().message();
  EXPECT_EQ(*back, text);
}

// Of some lengths the last code ends within the last byte, which needs bits of what follows.
TEST(Negotiation, WhatIsPackedUnpacksWhateverItsLength) {
  std::string text;
  for (int n = 1; n < 600; ++n) {
    text += R"({"a":1,"b":[1,2,3]})"[n % 19];
    std::string packed;
    Gzip().Add(text, true, packed);
    const Result<std::string> back = Gunzip(packed, text.size());
    ASSERT_TRUE(back.ok()) << n << ": " << back.status().message();
    EXPECT_EQ(*back, text);
    EXPECT_FALSE(Gunzip(packed.substr(0, packed.size() - 1), 1000).ok()) << n;
  }
}

TEST_F(ServerTest, PacksWhatIsAskedForPacked) {
  Start();
  Client client(server_->port());
  client.Send(Get("/app.js") + Get("/app.js", "Accept-Encoding: gzip\r\n") +
              Get("/api/version", "Accept-Encoding: gzip\r\n"));
  const std::string plain = client.Receive(), packed = client.Receive(), small = client.Receive();
  EXPECT_THAT(plain, Not(HasSubstr("Content-Encoding")));
  EXPECT_THAT(plain, HasSubstr("Vary: Accept-Encoding\r\n"));
  EXPECT_THAT(packed, HasSubstr("Content-Encoding: gzip\r\n"));
  EXPECT_THAT(packed, HasSubstr("-gzip\"\r\n"));
  EXPECT_THAT(small, Not(HasSubstr("Content-Encoding"))) << "not worth it";
  const auto body = [](const std::string& answer) {
    return answer.substr(answer.find("\r\n\r\n") + 4);
  };
  const Result<std::string> unpacked = Gunzip(body(packed), 1u << 20);
  ASSERT_TRUE(unpacked.ok());
  EXPECT_EQ(*unpacked, body(plain));
}

std::string HeaderOf(const std::string& answer, const std::string& name) {
  const size_t at = answer.find(name + ": ");
  if (at == std::string::npos) return "";
  return answer.substr(at + name.size() + 2, answer.find("\r\n", at) - at - name.size() - 2);
}

TEST_F(ServerTest, AFinishedStepsAnswersAreNotSentAgain) {
  Start();
  for (const char* path :
       {"/api/v1/profile?job=4711.0", "/job?job=4711.0", "/profiles/get?jobid=4711.0",
        "/api/v1/series?job=4711.0&metric=node_load1", "/app.js"}) {
    const std::string first = Exchange(Get(path));
    const std::string etag = HeaderOf(first, "ETag"), date = HeaderOf(first, "Last-Modified");
    ASSERT_FALSE(etag.empty()) << path;
    ASSERT_FALSE(date.empty()) << path;
    EXPECT_THAT(first, HasSubstr("Cache-Control: private, no-cache\r\n"));
    EXPECT_THAT(Exchange(Get(path, "If-None-Match: " + etag + "\r\n")),
                StartsWith("HTTP/1.1 304 "));
    EXPECT_THAT(Exchange(Get(path, "If-Modified-Since: " + date + "\r\n")),
                StartsWith("HTTP/1.1 304 "));
    EXPECT_THAT(Exchange(Get(path, "If-None-Match: \"other\"\r\n")), StartsWith("HTTP/1.1 200 "));
  }
  for (const char* path :
       {"/api/v1/profile?job=4712.0", "/job/list", "/api/v1/series?job=4712.0&metric=node_load1"}) {
    const std::string running = Exchange(Get(path));
    EXPECT_EQ(HeaderOf(running, "ETag"), "") << path;
    EXPECT_THAT(running, HasSubstr("Cache-Control: no-store\r\n")) << path;
  }
}

TEST_F(ServerTest, EveryAnswerSaysWhatBrowsersMustNotDo) {
  Start();
  for (const std::string& answer :
       {Exchange(Get("/")), Exchange(Get("/job/list")), Exchange(Get("/nothing")),
        Exchange("GET / HTTP/1.1\r\nHost: x\r\n\r\n"), Exchange("nonsense\r\n\r\n")}) {
    for (const char* header :
         {"X-Content-Type-Options", "X-Frame-Options", "Referrer-Policy", "Content-Security-Policy",
          "Cache-Control", "Date", "Cross-Origin-Resource-Policy"}) {
      EXPECT_NE(HeaderOf(answer, header), "") << header << " of " << answer.substr(0, 60);
    }
    EXPECT_THAT(HeaderOf(answer, "Content-Security-Policy"), HasSubstr("frame-ancestors 'none'"));
    EXPECT_EQ(HeaderOf(answer, "Access-Control-Allow-Origin"), "");
  }
}

constexpr std::string_view kPreflight =
    "OPTIONS /api/query HTTP/1.1\r\nHost: x\r\nOrigin: https://grafana.example.org\r\n"
    "Access-Control-Request-Method: POST\r\n\r\n";

TEST_F(ServerTest, OtherOriginsMayNotAskUnlessConfigured) {
  Start();
  EXPECT_THAT(Exchange(kPreflight), StartsWith("HTTP/1.1 401 "));
  const std::string answer = Exchange(Get("/job/list", "Origin: https://grafana.example.org\r\n"));
  EXPECT_EQ(HeaderOf(answer, "Access-Control-Allow-Origin"), "");
}

TEST_F(ServerTest, ConfiguredOriginsMayAskWithTheToken) {
  options_.cors = "https://other.example.org,https://grafana.example.org";
  Start();
  const std::string preflight = Exchange(kPreflight);
  EXPECT_THAT(preflight, StartsWith("HTTP/1.1 204 "));
  EXPECT_THAT(HeaderOf(preflight, "Access-Control-Allow-Headers"), HasSubstr("Authorization"));
  EXPECT_EQ(HeaderOf(preflight, "Access-Control-Allow-Origin"), "https://grafana.example.org");
  const std::string answer = Exchange(Get("/job/list", "Origin: https://grafana.example.org\r\n"));
  EXPECT_EQ(HeaderOf(answer, "Access-Control-Allow-Origin"), "https://grafana.example.org");
  EXPECT_THAT(answer, HasSubstr("\r\nVary: Origin\r\n"));
  EXPECT_EQ(HeaderOf(Exchange(Get("/job/list", "Origin: https://evil.example.org\r\n")),
                     "Access-Control-Allow-Origin"),
            "");
  std::string evil(kPreflight);
  evil.replace(evil.find("grafana"), 7, "evil");
  EXPECT_THAT(Exchange(evil), StartsWith("HTTP/1.1 401 "));
}

}  // namespace
}  // namespace sonde::web::web_negotiation_test
