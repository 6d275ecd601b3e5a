#include "serve/site/site_request.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace sonde::site::site_request_test {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(SiteRequest, IsReadAsItCame) {
  const auto request = ParseSiteRequest(
      "POST /api/query?a=b HTTP/1.1\r\nHost: h\r\nCookie: a=1\r\nCOOKIE:  b=2 \r\n\r\n");
  ASSERT_TRUE(request.ok()) << request.status().message();
  EXPECT_EQ(request->method, "POST");
  EXPECT_EQ(request->target, "/api/query?a=b");
  EXPECT_EQ(request->Field("cookie"), "a=1");
  EXPECT_EQ(request->Count("Cookie"), 2u);
  EXPECT_EQ(request->fields[2].second, "b=2");
}

TEST(SiteRequest, WhatIsNoneIsRefused) {
  for (const char* wrong :
       {"\r\n", "GET / HTTP/1.1\r\n\r\n", "GET HTTP/1.1\r\nHost: h\r\n\r\n",
        "GET  / HTTP/1.1\r\nHost: h\r\n\r\n", "get / HTTP/1.1\r\nHost: h\r\n\r\n",
        "GET h:1 HTTP/1.1\r\nHost: h\r\n\r\n", "GET http://h/ HTTP/1.1\r\nHost: h\r\n\r\n",
        "GET / HTTP/2\r\nHost: h\r\n\r\n", "GET / HTTP/1.1\r\nHost: h\r\nHost: i\r\n\r\n",
        "GET / HTTP/1.1\r\nHost : h\r\n\r\n", "GET / HTTP/1.1\r\nHost: h\r\n X: y\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n"}) {
    EXPECT_FALSE(ParseSiteRequest(wrong).ok()) << wrong;
  }
}

TEST(SiteRequest, ATargetMayNameAUser) {
  const auto parts = [](std::string_view target) {
    const SiteTarget parsed = ParseSiteTarget(target);
    return parsed.user + " " + parsed.rest;
  };
  EXPECT_EQ(parts("/job/list?x=/user/a"), " /job/list?x=/user/a");
  EXPECT_EQ(parts("/user/alice/job/list?x=1"), "alice /job/list?x=1");
  EXPECT_EQ(parts("/user/alice/"), "alice /");
  EXPECT_EQ(parts("/user/alice"), "alice ");
  EXPECT_EQ(parts("/user/alice?x"), "alice ");
  EXPECT_EQ(parts("/user/alice/../bob/"), "alice /../bob/");
  EXPECT_EQ(parts("/users"), " /users");
}

TEST(SiteRequest, WhatProvesTheClientsIdentityDoesNotGoOn) {
  const auto request = ParseSiteRequest(
      "POST /user/alice/api/query HTTP/1.1\r\nHost: h\r\nCookie: secret1\r\n"
      "Authorization: Basic secret2\r\nSonde-Token: secret4\r\nX-Remote-User: "
      "bob\r\nSonde-Proxy-Secret: secret3\r\n"
      "Connection: keep-alive, Content-Length\r\nContent-Length: 2\r\n"
      "content-type: application/json\r\nAccept-Encoding: gzip\r\n\r\n");
  ASSERT_TRUE(request.ok());
  const std::string head = HeadFor(*request, {"alice", "/api/query"}, "token", false);
  EXPECT_THAT(head, testing::StartsWith("POST /api/query HTTP/1.1\r\n"));
  EXPECT_THAT(head, Not(HasSubstr("secret")));
  EXPECT_THAT(head, Not(HasSubstr("bob")));
  EXPECT_THAT(head, Not(HasSubstr("keep-alive")));
  for (const char* line :
       {"Authorization: Bearer token\r\n", "Connection: close\r\n", "Content-Length: 2\r\n",
        "Content-Type: application/json\r\n", "Accept-Encoding: gzip\r\n", "Host: h\r\n",
        "Sonde-Prefix: /user/alice\r\n"}) {
    EXPECT_THAT(head, HasSubstr(line));
  }
  EXPECT_TRUE(head.ends_with("\r\n\r\n"));
  EXPECT_THAT(head, Not(HasSubstr("Sonde-By-Browser")));
  EXPECT_THAT(HeadFor(*request, {"alice", "/api/query"}, "token", true),
              HasSubstr("\r\nSonde-By-Browser: 1\r\n"));
}

TEST(SiteRequest, AddressesInAnswersLeadBackHere) {
  const auto head = [](const char* host) {
    const auto request = ParseSiteRequest(std::string("GET / HTTP/1.1\r\nHost: ") + host +
                                          "\r\nSonde-Prefix: /user/mallory\r\n\r\n");
    return request.ok() ? HeadFor(*request, {"", "/"}, "t", false) : "";
  };
  EXPECT_THAT(head("sonde.example.org:8443"), HasSubstr("Host: sonde.example.org:8443\r\n"));
  EXPECT_THAT(head("[::1]:80"), HasSubstr("Host: [::1]:80\r\n"));
  EXPECT_THAT(head("a b"), HasSubstr("Host: localhost\r\n"));
  EXPECT_THAT(head("h"), Not(HasSubstr("mallory")));
}

TEST(SiteRequest, AClientOfOldGetsAnswersThatItKnows) {
  const auto request = ParseSiteRequest("GET / HTTP/1.0\r\n\r\n");
  ASSERT_TRUE(request.ok());
  EXPECT_THAT(HeadFor(*request, {"", "/"}, "t", false), testing::StartsWith("GET / HTTP/1.0\r\n"));
}

}  // namespace
}  // namespace sonde::site::site_request_test
