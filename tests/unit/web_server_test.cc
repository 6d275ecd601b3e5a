// The server through real sockets on the loopback.
#include <arpa/inet.h>
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <thread>

#include "tests/unit/web_fake_source.h"
#include "web/server.h"

namespace sonde::web {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

constexpr int kPatienceMs = 10'000;

// A connection that is closed with the object.
class Client {
 public:
  explicit Client(uint16_t port) : fd_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(port);
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    connected_ = connect(fd_, reinterpret_cast<sockaddr*>(&to), sizeof(to)) == 0;
  }
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;
  ~Client() { close(fd_); }

  bool connected() const { return connected_; }
  void Send(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t n = send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (n <= 0) return;
      bytes.remove_prefix(static_cast<size_t>(n));
    }
  }
  // One response with its body; what follows stays for the next call. "" if the server closed.
  std::string Receive(bool head = false) {
    for (;;) {
      if (const size_t end = buffer_.find("\r\n\r\n"); end != std::string::npos) {
        const size_t at = buffer_.find("Content-Length: ");
        const size_t body =
            head || at > end ? 0 : std::strtoul(buffer_.c_str() + at + 16, nullptr, 10);
        if (buffer_.size() >= end + 4 + body) {
          std::string response = buffer_.substr(0, end + 4 + body);
          buffer_.erase(0, response.size());
          return response;
        }
      }
      if (!Fill()) return {};
    }
  }
  // Whether the server closes the connection, whatever it sends before.
  bool SeesClose() {
    while (Fill()) {
    }
    return closed_;
  }

 private:
  bool Fill() {
    pollfd ready{fd_, POLLIN, 0};
    if (poll(&ready, 1, kPatienceMs) != 1) return false;
    char bytes[16384];
    const ssize_t n = recv(fd_, bytes, sizeof(bytes), 0);
    if (n <= 0) {
      closed_ = true;
      return false;
    }
    buffer_.append(bytes, static_cast<size_t>(n));
    return true;
  }

  int fd_;
  bool connected_ = false;
  bool closed_ = false;
  std::string buffer_;
};

std::string Get(std::string_view target, std::string_view more = "") {
  return "GET " + std::string(target) +
         " HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer secret\r\n" + std::string(more) +
         "\r\n";
}

std::string Post(std::string_view target, std::string_view body) {
  return "POST " + std::string(target) +
         " HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer secret\r\nContent-Type: "
         "application/json\r\nContent-Length: " +
         std::to_string(body.size()) + "\r\n\r\n" + std::string(body);
}

constexpr std::string_view kQuery =
    R"({"start":"1h-ago","queries":[{"metric":"node_load1","aggregator":"sum"}]})";

class ServerTest : public testing::Test {
 protected:
  void SetUp() override {
    options_.port = 0;
    options_.token = "secret";
  }
  void Start() {
    Result<std::unique_ptr<Server>> server = Server::Start(options_, source_);
    ASSERT_TRUE(server.ok()) << server.status().message();
    server_ = *std::move(server);
  }
  std::string Exchange(std::string_view request) {
    Client client(server_->port());
    client.Send(request);
    return client.Receive();
  }

  Server::Options options_;
  std::shared_ptr<FakeSource> source_ = std::make_shared<FakeSource>(Clock::System().Now());
  std::unique_ptr<Server> server_;
};

TEST_F(ServerTest, AnswersWithTheToken) {
  Start();
  const std::string response = Exchange(Get("/job/list"));
  EXPECT_THAT(response, StartsWith("HTTP/1.1 200 OK\r\n"));
  EXPECT_THAT(response, HasSubstr("Content-Type: application/json"));
  EXPECT_THAT(response, HasSubstr("4711.0"));
}

TEST_F(ServerTest, RefusesEverythingElseWithoutSayingWhatThereIs) {
  Start();
  for (const char* target : {"/", "/job/list", "/nothing", "/app.js", "/api/query"}) {
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

TEST_F(ServerTest, ThePageTradesTheTokenForACookie) {
  Start();
  const std::string redirect = Exchange("GET /?token=secret HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_THAT(redirect, StartsWith("HTTP/1.1 303 "));
  EXPECT_THAT(redirect, HasSubstr("Location: /\r\n"));
  const size_t at = redirect.find("Set-Cookie: ");
  ASSERT_NE(at, std::string::npos);
  const std::string cookie = redirect.substr(at + 12, redirect.find(';', at) - at - 12);
  EXPECT_THAT(Exchange("GET / HTTP/1.1\r\nHost: x\r\nCookie: " + cookie + "\r\n\r\n"),
              HasSubstr("<title>Sonde</title>"));
}

TEST_F(ServerTest, BoundsHeaderAndBody) {
  options_.limits.body_bytes = 1000;
  Start();
  EXPECT_THAT(Exchange(Get("/", "X: " + std::string(20'000, 'a') + "\r\n")),
              StartsWith("HTTP/1.1 431 "));
  EXPECT_THAT(Exchange(Post("/api/query", std::string(1001, ' '))), StartsWith("HTTP/1.1 413 "));
  // The same without saying the length first.
  std::string chunked = Get("/api/query", "Transfer-Encoding: chunked\r\n");
  chunked.replace(0, 3, "POST");
  chunked += "7d0\r\n" + std::string(2000, ' ') + "\r\n0\r\n\r\n";
  EXPECT_THAT(Exchange(chunked), StartsWith("HTTP/1.1 413 "));
}

TEST_F(ServerTest, WhatIsNoHttpIsRefused) {
  Start();
  EXPECT_THAT(Exchange("\x16\x03\x01 hello\r\n\r\n"), StartsWith("HTTP/1.1 400 "));
  EXPECT_THAT(Exchange("GET http://x/ HTTP/1.1\r\nHost: x\r\n\r\n"), StartsWith("HTTP/1.1 400 "));
  EXPECT_THAT(Exchange(Get("/job/list?%zz")), StartsWith("HTTP/1.1 400 "));
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

TEST_F(ServerTest, ASlowClientIsDroppedAndDisturbsNobody) {
  options_.limits.read_timeout = 200 * kMillisecond;
  Start();
  Client slow(server_->port());
  slow.Send("GET / HTTP/1.1\r\nHost:");
  EXPECT_THAT(Exchange(Get("/api/version")), StartsWith("HTTP/1.1 200 "));
  EXPECT_TRUE(slow.SeesClose());
}

TEST_F(ServerTest, AStrangerMakesRoomForTheOwner) {
  options_.limits.connections = 4;
  Start();
  std::vector<std::unique_ptr<Client>> strangers;
  for (int i = 0; i < 50; ++i) strangers.push_back(std::make_unique<Client>(server_->port()));
  EXPECT_THAT(Exchange(Get("/api/version")), StartsWith("HTTP/1.1 200 "));
  EXPECT_TRUE(strangers.front()->SeesClose());
}

TEST_F(ServerTest, ConnectionsOfTheOwnerAreBounded) {
  options_.limits.connections = 3;
  Start();
  std::vector<std::unique_ptr<Client>> mine;
  for (int i = 0; i < 3; ++i) {
    mine.push_back(std::make_unique<Client>(server_->port()));
    mine.back()->Send(Get("/api/version"));
    EXPECT_THAT(mine.back()->Receive(), StartsWith("HTTP/1.1 200 "));
  }
  Client fourth(server_->port());
  EXPECT_TRUE(fourth.SeesClose());
  mine.front()->Send(Get("/api/version"));
  EXPECT_THAT(mine.front()->Receive(), StartsWith("HTTP/1.1 200 "));
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
  // Until the threads have settled after the connection's end.
  long before = -1;
  for (long now = ServerSwitches(); now != before; now = ServerSwitches()) {
    before = now;
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(500));
  EXPECT_EQ(ServerSwitches(), before);
  EXPECT_GT(before, 0);
}

}  // namespace
}  // namespace sonde::web
