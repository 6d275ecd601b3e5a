// What an endpoint is given and the small writers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "web/http/http.h"
#include "web/server/auth.h"

namespace sonde::web::web_http_test {
namespace {

using testing::HasSubstr;

TEST(ParseTarget, DecodesPathAndParameters) {
  Request request;
  ASSERT_TRUE(ParseTarget("/job/?job=4711.0&q=a+b%2Bc&flag", request).ok());
  EXPECT_EQ(request.path, "/job/");
  EXPECT_EQ(*request.Param("job"), "4711.0");
  EXPECT_EQ(*request.Param("q"), "a b+c");
  EXPECT_EQ(*request.Param("flag"), "");
  EXPECT_EQ(request.Param("none"), nullptr);
}

TEST(ParseTarget, RefusesWhatIsNoPath) {
  std::string many = "/?";
  for (size_t i = 0; i <= kMaxParams; ++i) many += "a=1&";
  for (const std::string& target :
       {std::string(), std::string("http://host/"), std::string("*"), std::string("/%"),
        std::string("/%zz"), std::string("/a%00b"), std::string("/?a=%4"), many}) {
    Request request;
    EXPECT_EQ(ParseTarget(target, request).code(), Code::kInvalid) << target;
  }
}

// docs/endpoints.md writes queries so, and `curl -g` and browsers send them so. RFC 3986 does not
// have these characters, and parsers that keep to it (Boost.URL) refuse such targets.
TEST(ParseTarget, TakesWhatClientsDoNotEscape) {
  Request request;
  const std::string m = "sum:load{host=literal_or(n1|n2)}{job=4711.0}";
  ASSERT_TRUE(ParseTarget("/api/query?start=1h-ago&m=" + m, request).ok());
  EXPECT_EQ(*request.Param("m"), m);
  for (const char* value : {"a[0]", "\"a\"", "<a>", "a^b", "a\\b", "`a`", "gr\xc3\xb6\xc3\x9f"}) {
    Request one;
    EXPECT_TRUE(ParseTarget(std::string("/job?job=") + value, one).ok()) << value;
    EXPECT_EQ(*one.Param("job"), value);
  }
  // What follows a # is not sent by browsers; whoever sends it does not mean it.
  Request cut;
  ASSERT_TRUE(ParseTarget("/job?job=1#2", cut).ok());
  EXPECT_EQ(*cut.Param("job"), "1");
  for (const char* bad : {"/?a=%00", "/?%00=a", "/?a=\xff", "/?a=%ff", "/\xff", "/?a=%c3"}) {
    Request refused;
    EXPECT_EQ(ParseTarget(bad, refused).code(), Code::kInvalid) << bad;
  }
}

TEST(ErrorResponse, IsJsonWhateverTheMessage) {
  const Response response = ErrorResponse(404, "no \"such\"\n\xff thing");
  EXPECT_EQ(response.status, 404);
  EXPECT_THAT(response.body, HasSubstr(R"("code":404)"));
  EXPECT_THAT(response.body, HasSubstr("no \\\"such\\\"\\u000a\xef\xbf\xbd thing"));
}

Request Get(std::string_view target) {
  Request request;
  EXPECT_TRUE(ParseTarget(target, request).ok());
  return request;
}

TEST(Auth, TakesOnlyTheToken) {
  const Auth auth("secret");
  Request request = Get("/job/list");
  EXPECT_EQ(auth.Check(request), Auth::Verdict::kRefused);
  for (const char* header :
       {"Bearer wrong!", "Bearer secre", "Bearer secrets", "Bearer ", "secret", "Basic secret"}) {
    request.authorization = header;
    EXPECT_EQ(auth.Check(request), Auth::Verdict::kRefused) << header;
  }
  request.authorization = "bearer secret";
  EXPECT_EQ(auth.Check(request), Auth::Verdict::kAllowed);
}

TEST(Auth, TakesTheTokenAsAPassword) {
  const Auth auth("secret");
  Request request = Get("/api/query");
  for (const char* header :
       {"Basic", "Basic ", "Basic Z3JhZmFuYTo=", "Basic c2VjcmV0", "Basic !!!!",
        "Basic Z3JhZmFuYTpzZWNyZXQ", "Basic Z3JhZmFuYTpzZWNyZXRz"}) {
    request.authorization = header;
    EXPECT_EQ(auth.Check(request), Auth::Verdict::kRefused) << header;
  }
  for (const char* header : {"Basic Z3JhZmFuYTpzZWNyZXQ=", "basic OnNlY3JldA=="}) {
    request.authorization = header;
    EXPECT_EQ(auth.Check(request), Auth::Verdict::kAllowed) << header;
  }
  EXPECT_THAT(Auth::Refuse(request).headers[0].second, HasSubstr("Basic"));
}

// The header of the page: no page of another origin can have a browser send it without asking
// first.
TEST(Auth, TakesTheTokenInThePagesOwnHeader) {
  const Auth auth("secret");
  Request request = Get("/alarms/del?name=x");
  request.token = "secrets";
  EXPECT_EQ(auth.Check(request), Auth::Verdict::kRefused);
  request.token = "secret";
  EXPECT_EQ(auth.Check(request), Auth::Verdict::kAllowed);
  // As behind a proxy that has users of its own.
  request.authorization = "Basic YWRhOmhlci1wYXNzd29yZA==";
  EXPECT_EQ(auth.Check(request), Auth::Verdict::kAllowed);
}

// A browser that was given a password sends it again by itself, for whatever page.
Request WithABrowsersPassword(std::string_view target) {
  Request request = Get(target);
  request.authorization = "Basic OnNlY3JldA==";
  request.user_agent = "Mozilla/5.0 (X11; Linux x86_64)";
  request.host = "Login1:4242";
  return request;
}

// Other users' servers on the same host are of the same site.
TEST(Auth, APasswordOfABrowsersDoesNotCountForAnotherOriginsPage) {
  const Auth auth("secret");
  Request request = WithABrowsersPassword("/alarms/del?name=x");
  for (const char* site : {"", "same-origin", "none"}) {
    request.fetch_site = site;
    EXPECT_EQ(auth.Check(request), Auth::Verdict::kByBrowser) << site;
  }
  for (const char* site : {"same-site", "cross-site"}) {
    request.fetch_site = site;
    EXPECT_EQ(auth.Check(request), Auth::Verdict::kOtherOrigin) << site;
    EXPECT_EQ(auth.Check(request, true), Auth::Verdict::kByBrowser) << "http_cors names it";
  }
  EXPECT_EQ(Auth::Refuse(request).headers[0].second.find("Basic"), std::string::npos);
}

// Browsers say Sec-Fetch-Site to https and loopback addresses only.
TEST(Auth, APasswordOfABrowsersDoesNotCountForAnotherOriginOnAnyAddress) {
  const Auth auth("secret");
  Request request = WithABrowsersPassword("/alarms/add");
  request.method = Method::kPost;
  for (const char* origin : {"", "http://login1:4242", "https://login1:4242"}) {
    request.origin = origin;
    EXPECT_EQ(auth.Check(request), Auth::Verdict::kByBrowser) << origin;
  }
  for (const char* origin : {"http://login1:9999", "http://login1", "https://evil.example", "null",
                             "http://login1:4242.evil.example", "login1:4242"}) {
    request.origin = origin;
    EXPECT_EQ(auth.Check(request), Auth::Verdict::kOtherOrigin) << origin;
  }
  const Response refused = Auth::RefuseOrigin(request);
  EXPECT_EQ(refused.status, 403);
  EXPECT_THAT(refused.body, HasSubstr("login1:4242"));
  EXPECT_THAT(refused.body, HasSubstr("Authorization: Bearer"));
  // A page cannot have a browser send this one without asking first.
  request.authorization = "Bearer secret";
  EXPECT_EQ(auth.Check(request), Auth::Verdict::kAllowed);
}

// The site's door knows by a proxy who asks, and so by what the browser sends by itself.
TEST(Auth, WhatTheDoorSaysThatABrowserMayHaveSentChangesNothingByAGet) {
  const Auth auth("secret");
  Request request = Get("/alarms/del?name=x");
  request.authorization = "Bearer secret";
  request.by_browser = true;
  EXPECT_EQ(auth.Check(request), Auth::Verdict::kByBrowser);
  request.authorization = "Bearer wrong!";
  EXPECT_EQ(auth.Check(request), Auth::Verdict::kRefused) << "it proves nothing";
}

// A link in Grafana, a wiki or a chat leads to the page, on any address; nothing else is for all.
TEST(Auth, ThePageItselfIsForEverybody) {
  const Auth auth("secret");
  const auto asked = [&](std::string_view target, Method method = Method::kGet) {
    Request request = Get(target);
    request.method = method;
    return auth.Check(request);
  };
  using enum Auth::Verdict;
  for (const char* page : {"/", "/?token=secret", "/app.js", "/session.js", "/step/step.css"}) {
    EXPECT_EQ(asked(page), kPageOnly) << page;
    EXPECT_EQ(asked(page, Method::kHead), kPageOnly) << page;
    EXPECT_EQ(asked(page, Method::kPost), kRefused) << page;
    EXPECT_EQ(asked(page, Method::kPut), kRefused) << page;
  }
  for (const char* data : {"/job/list", "/api/v1/steps", "/api/live", "/metrics", "/alarms",
                           "/nothing", "/nothing.js", "//", "/app.js/"}) {
    EXPECT_EQ(asked(data), kRefused) << data;
  }
}

TEST(Auth, TakesNoTokenInTheAddressOfData) {
  EXPECT_EQ(Auth("secret").Check(Get("/job/list?token=secret")), Auth::Verdict::kRefused);
  EXPECT_EQ(Auth("").Check(Get("/job/list?token=")), Auth::Verdict::kRefused);
}

}  // namespace
}  // namespace sonde::web::web_http_test
