// The server through real sockets on the loopback: what it answers. Its bounds are in
// web_limits_test.cc.
#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <thread>

#include "tests/unit/web_client.h"

namespace sonde::web::web_server_test {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

TEST_F(ServerTest, AnswersWithTheToken) {
  Start();
  const std::string response = Exchange(Get("/profiles"));
  EXPECT_THAT(response, StartsWith("HTTP/1.1 200 OK\r\n"));
  EXPECT_THAT(response, HasSubstr("Content-Type: application/json"));
  EXPECT_THAT(response, HasSubstr("4711.0"));
}

TEST_F(ServerTest, RefusesEverythingElseWithoutSayingWhatThereIs) {
  Start();
  for (const char* target : {"/job/list", "/nothing", "/nothing.js", "/app.jsx", "/api/query"}) {
    const std::string response =
        Exchange("GET " + std::string(target) + " HTTP/1.1\r\nHost: x\r\n\r\n");
    EXPECT_THAT(response, StartsWith("HTTP/1.1 401 ")) << target;
    EXPECT_THAT(response, HasSubstr(R"({"error":{"code":401,)"));
  }
}

TEST_F(ServerTest, DoesNotReadTheBodyOfAStranger) {
  Start();
  Client client(server_->port());
  client.Send("POST /api/query HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000000\r\n\r\n{");
  EXPECT_THAT(client.Receive(), StartsWith("HTTP/1.1 401 "));
  EXPECT_TRUE(client.SeesClose());
}

TEST_F(ServerTest, GivesABrowserThePageAndNothingOfAStep) {
  Start();
  const auto opened = [](std::string_view target, std::string_view more = {}) {
    return "GET " + std::string(target) +
           " HTTP/1.1\r\nHost: x\r\nSec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: navigate\r\n"
           "Sec-Fetch-Dest: document\r\n" +
           std::string(more) + "\r\n";
  };
  const std::string page = Exchange(opened("/"));
  EXPECT_THAT(page, StartsWith("HTTP/1.1 200 OK\r\n"));
  EXPECT_THAT(page, HasSubstr("<!doctype html>"));
  EXPECT_THAT(page, HasSubstr("frame-ancestors 'none'"));
  EXPECT_THAT(page, HasSubstr("X-Frame-Options: DENY\r\n"));
  EXPECT_THAT(page, Not(HasSubstr("Set-Cookie")));
  EXPECT_THAT(page, Not(HasSubstr("4711")));
  EXPECT_THAT(Exchange(opened("/api/v1/steps")), StartsWith("HTTP/1.1 401 "));
  Client client(server_->port());
  client.Send(opened("/", "Content-Length: 1000000000\r\n"));
  EXPECT_THAT(client.Receive(), StartsWith("HTTP/1.1 401 "));
  EXPECT_TRUE(client.SeesClose());
}

TEST_F(ServerTest, KeepsTheConnectionAndAnswersPipelinedRequestsInOrder) {
  Start();
  Client client(server_->port());
  client.Send(Get("/api/version") + Post("/api/query", kQuery) + Get("/nothing") +
              Get("/api/aggregators"));
  EXPECT_THAT(client.Receive(), HasSubstr("2.4.1"));
  EXPECT_THAT(client.Receive(), HasSubstr("dps"));
  EXPECT_THAT(client.Receive(), StartsWith("HTTP/1.1 404 "));
  EXPECT_THAT(client.Receive(), HasSubstr("none"));
}

TEST_F(ServerTest, HeadHasTheLengthAndNoBody) {
  Start();
  Client client(server_->port());
  std::string request = Get("/job/list");
  request.replace(0, 3, "HEAD");
  client.Send(request + Get("/api/version"));
  const std::string head = client.Receive(true);
  EXPECT_THAT(head, StartsWith("HTTP/1.1 200 "));
  EXPECT_THAT(head, Not(HasSubstr("Content-Length: 0\r\n")));
  EXPECT_THAT(client.Receive(), HasSubstr("2.4.1"));
}

TEST_F(ServerTest, APageThatDidNotChangeIsNotSentAgain) {
  Start();
  const std::string first = Exchange(Get("/app.js"));
  const size_t at = first.find("ETag: ");
  ASSERT_NE(at, std::string::npos);
  const std::string etag = first.substr(at + 6, first.find("\r\n", at) - at - 6);
  const std::string second = Exchange(Get("/app.js", "If-None-Match: " + etag + "\r\n"));
  EXPECT_THAT(second, StartsWith("HTTP/1.1 304 "));
}

// A browser sends cookies to every port of a host, whoever listens there.
TEST_F(ServerTest, ThereAreNoCookies) {
  Start();
  for (const char* target : {"/", "/?token=secret", "/api/v1/steps"}) {
    for (const char* cookie : {"token=secret", "sonde-2bb80d53=secret", "secret"}) {
      const std::string answer =
          Exchange(fmt::format("GET {} HTTP/1.1\r\nHost: x\r\nCookie: {}\r\n\r\n", target, cookie));
      EXPECT_THAT(answer, Not(HasSubstr("Set-Cookie"))) << target;
      EXPECT_THAT(answer, StartsWith(target[1] == 'a' ? "HTTP/1.1 401 " : "HTTP/1.1 200 "))
          << target;
    }
  }
  EXPECT_THAT(Exchange("GET /api/v1/steps HTTP/1.1\r\nHost: x\r\nSonde-Token: secret\r\n\r\n"),
              StartsWith("HTTP/1.1 200 "));
}

TEST_F(ServerTest, PathsOfProxiesThatKeepTheirPrefixAreFound) {
  Start();
  for (const char* prefix :
       {"/absproxy/4242", "/code/absproxy/4242", "/user/ada/proxy/absolute/4242",
        "/proxy/absolute/n1:4242", "/node/n1.example.org/4242"}) {
    EXPECT_THAT(Exchange(Get(std::string(prefix) + "/api/version")), HasSubstr("2.4.1")) << prefix;
    EXPECT_THAT(Exchange(Get(std::string(prefix) + "/")), HasSubstr("<title>Sonde</title>"))
        << prefix;
  }
  for (const char* path : {"/absproxy/x/api/version", "/absproxy/4242", "/node/4242/api/version",
                           "/absproxy//api/version", "/absproxy/123456/api/version",
                           "/proxy/4242/api/version", "/node/n1"}) {
    EXPECT_THAT(Exchange(Get(path)), StartsWith("HTTP/1.1 404 ")) << path;
  }
}

TEST_F(ServerTest, WhatIsNoHttpIsRefused) {
  Start();
  EXPECT_THAT(Exchange("\x16\x03\x01 hello\r\n\r\n"), StartsWith("HTTP/1.1 400 "));
  EXPECT_THAT(Exchange("GET http://x/ HTTP/1.1\r\nHost: x\r\n\r\n"), StartsWith("HTTP/1.1 400 "));
  EXPECT_THAT(Exchange(Get("/job/list?%zz")), StartsWith("HTTP/1.1 400 "));
  // OpenTSDB takes this by telnet.
  EXPECT_THAT(Exchange("put cpu 1700000000 42.5 host=n1\r\n\r\n"), StartsWith("HTTP/1.1 400 "));
}

TEST_F(ServerTest, ContinuesABodyThatAsks) {
  Start();
  Client client(server_->port());
  std::string request = Post("/api/query", kQuery);
  request.insert(request.find("\r\n") + 2, "Expect: 100-continue\r\n");
  const size_t body = request.find("\r\n\r\n") + 4;
  client.Send(request.substr(0, body));
  EXPECT_EQ(client.Receive(), "HTTP/1.1 100 Continue\r\n\r\n");
  client.Send(request.substr(body));
  EXPECT_THAT(client.Receive(), StartsWith("HTTP/1.1 200 "));
}

TEST_F(ServerTest, AnUnansweredQueryHoldsNoThread) {
  options_.threads = 1;
  Start();
  source_->SetMode(FakeSource::Mode::kNever);
  Client waiting(server_->port());
  waiting.Send(Post("/api/query", kQuery));
  // The one thread goes on with others.
  while (source_->held() == 0) std::this_thread::yield();
  EXPECT_THAT(Exchange(Get("/api/version")), StartsWith("HTTP/1.1 200 "));
  source_->SetMode(FakeSource::Mode::kAnswer);
  source_->Release();
  EXPECT_THAT(waiting.Receive(), HasSubstr("dps"));
}

TEST_F(ServerTest, AQueryThatIsNeverAnsweredTimesOut) {
  options_.limits.reply_timeout = 100 * kMillisecond;
  Start();
  source_->SetMode(FakeSource::Mode::kNever);
  EXPECT_THAT(Exchange(Post("/api/query", kQuery)), StartsWith("HTTP/1.1 504 "));
}

TEST_F(ServerTest, StopsWithAQueryOpenAndTakesItsLateAnswer) {
  Start();
  source_->SetMode(FakeSource::Mode::kNever);
  Client waiting(server_->port());
  waiting.Send(Post("/api/query", kQuery));
  while (source_->held() == 0) std::this_thread::yield();
  server_.reset();
  EXPECT_TRUE(waiting.SeesClose());
  source_->SetMode(FakeSource::Mode::kAnswer);
  source_->Release();
}

TEST_F(ServerTest, TakesAnotherPortOnlyIfToldTo) {
  Start();
  options_.port = server_->port();
  options_.port_if_taken_any = false;
  const Result<std::unique_ptr<Server>> refused = Server::Start(options_, source_);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.status().code(), Code::kUnavailable);
  EXPECT_THAT(std::string(refused.status().message()), HasSubstr(std::to_string(options_.port)));
  options_.port_if_taken_any = true;
  const Result<std::unique_ptr<Server>> other = Server::Start(options_, source_);
  ASSERT_TRUE(other.ok());
  EXPECT_NE((*other)->port(), server_->port());
}

TEST_F(ServerTest, RefusesToBeOpen) {
  options_.token.clear();
  EXPECT_EQ(Server::Start(options_, source_).status().code(), Code::kInvalid);
  options_.token = "secret";
  options_.address = "nowhere";
  EXPECT_EQ(Server::Start(options_, source_).status().code(), Code::kInvalid);
}

// Context switches of the server's threads.
long ServerSwitches() {
  long sum = 0;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    std::string name;
    std::getline(std::ifstream(task.path() / "comm") >> std::ws, name);
    if (name != "sonde-http") continue;
    std::ifstream status(task.path() / "status");
    for (std::string line; std::getline(status, line);) {
      if (line.find("ctxt_switches:") != std::string::npos) {
        sum += std::strtol(line.c_str() + line.find(':') + 1, nullptr, 10);
      }
    }
  }
  return sum;
}

TEST_F(ServerTest, IdleItDoesNotWakeUp) {
  Start();
  EXPECT_THAT(Exchange(Get("/api/version")), StartsWith("HTTP/1.1 200 "));
  // Idle is a time in which nothing happens. On a busy machine the connection's end comes late.
  constexpr auto kIdle = std::chrono::milliseconds(500);
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  long before = -1;
  for (long now = ServerSwitches(); now != before; now = ServerSwitches()) {
    ASSERT_LT(std::chrono::steady_clock::now(), deadline) << "it goes on waking up";
    before = now;
    std::this_thread::sleep_for(kIdle);
  }
  EXPECT_GT(before, 0);
}

}  // namespace
}  // namespace sonde::web::web_server_test
