#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <boost/beast/http/verb.hpp>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "core/time.h"
#include "serve/head_client.h"
#include "serve/http_client.h"
#include "tests/unit/loopback.h"
#include "tests/unit/web_fake_source.h"
#include "web/server/server.h"

namespace sonde::serve::serve_http_client_test {
namespace {

namespace http = boost::beast::http;

constexpr Nanos kLimit = kSecond;

// Takes one connection, reads a request, sends this text, and keeps the connection open or not.
class Peer {
 public:
  enum class Then { kKeepsIt, kCloses };

  explicit Peer(std::string text, Then then = Then::kKeepsIt)
      : text_(std::move(text)), then_(then), thread_([this] { Serve(); }) {}
  ~Peer() {
    shutdown(listener_.fd.get(), SHUT_RDWR);
    thread_.join();
  }
  Peer(const Peer&) = delete;
  Peer& operator=(const Peer&) = delete;

  std::string port() const { return std::to_string(listener_.port); }
  void WaitUntilSent() { sent_.get_future().wait(); }

 private:
  void Serve() {
    const int peer = accept(listener_.fd.get(), nullptr, nullptr);
    if (peer < 0) return;
    char request[4096];
    static_cast<void>(recv(peer, request, sizeof(request), 0));
    static_cast<void>(send(peer, text_.data(), text_.size(), MSG_NOSIGNAL));
    sent_.set_value();
    while (then_ == Then::kKeepsIt && recv(peer, request, sizeof(request), 0) > 0) {
    }
    close(peer);
  }

  const std::string text_;
  const Then then_;
  const LoopbackListener listener_{1};
  std::promise<void> sent_;
  std::thread thread_;
};

std::future<Result<HttpAnswer>> Ask(const HttpClient& client, const std::string& host,
                                    const Peer& peer, std::shared_ptr<Turns> turns) {
  const auto answer = std::make_shared<std::promise<Result<HttpAnswer>>>();
  HttpRequest request(http::verb::get, "/", 11);
  client.Exchange({host, peer.port(), std::move(request), "ask", kLimit, 1000, std::move(turns)},
                  [answer](Result<HttpAnswer> result) { answer->set_value(std::move(result)); });
  return answer->get_future();
}

TEST(HttpClient, FindsPeersByAddressAndByName) {
  const HttpClient client;
  for (const char* host : {"127.0.0.1", "localhost"}) {
    const Peer peer("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nyes");
    const auto answer = Ask(client, host, peer, nullptr).get();
    ASSERT_TRUE(answer.ok()) << answer.status().message();
    EXPECT_EQ(answer->response.body(), "yes");
  }
}

// One that has the turn and says no more costs its own time, and not that of who comes next.
TEST(HttpClient, TheTimeOfAPeerIsNotWhatItWaitsForItsTurn) {
  const HttpClient client;
  const std::shared_ptr<Turns> turns = client.NewTurns(1);
  Peer stalls("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n");
  auto first = Ask(client, "127.0.0.1", stalls, turns);
  stalls.WaitUntilSent();
  Peer answers("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nyes");
  auto second = Ask(client, "127.0.0.1", answers, turns);
  EXPECT_EQ(first.get().status().code(), Code::kTimeout);
  const auto answer = second.get();
  ASSERT_TRUE(answer.ok()) << answer.status().message();
  EXPECT_EQ(answer->response.body(), "yes");
}

TEST(HttpClient, AConnectionThatEndsWithoutAnAnswerIsNoFaultOfTheAnswer) {
  const HttpClient client;
  for (const char* begun : {"", "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n"}) {
    const Peer peer(begun, Peer::Then::kCloses);
    const auto answer = Ask(client, "127.0.0.1", peer, nullptr).get();
    EXPECT_EQ(answer.status().code(), Code::kUnavailable) << answer.status().message();
  }
}

// As many questions as a step has metrics, to a head with a server's usual bounds.
TEST(HttpClient, AsksOnePeerNoMoreAtATimeThanItTakes) {
  constexpr size_t kQuestions = 500;
  web::Server::Options options;
  options.port = 0;
  options.token = "token-of-this-server";
  const auto source = std::make_shared<web::FakeSource>(Clock::System().Now());
  const auto server = web::Server::Start(options, source);
  ASSERT_TRUE(server.ok()) << server.status().message();
  const Endpoint head{HostName(), "127.0.0.1", (*server)->port(), options.token};
  const HttpClient client;
  std::vector<std::promise<Result<HttpAnswer>>> answers(kQuestions);
  for (auto& answer : answers) {
    HttpRequest request(http::verb::get, "/api/v1/profile?job=4712.0", 11);
    client.Exchange(*QuestionFor(head, std::move(request), 60 * kSecond),
                    [&](Result<HttpAnswer> result) { answer.set_value(std::move(result)); });
  }
  for (auto& promised : answers) {
    const auto answer = promised.get_future().get();
    ASSERT_TRUE(answer.ok()) << answer.status().message();
    ASSERT_EQ(answer->response.result(), http::status::ok) << answer->response.body();
  }
}

// They do not wait for its time one behind the other.
TEST(HttpClient, APeerThatIsSilentCostsItsTimeOnceForAllThatWait) {
  constexpr size_t kQuestions = 100;
  constexpr size_t kAtATime = 16;
  const LoopbackListener silent(kQuestions);
  const HttpClient client;
  std::vector<std::promise<Code>> answers(kQuestions);
  for (auto& answer : answers) {
    HttpRequest request(http::verb::get, "/", 11);
    client.Exchange(
        {"127.0.0.1", std::to_string(silent.port), std::move(request), "ask", kLimit, 9},
        [&](const Result<HttpAnswer>& result) { answer.set_value(result.status().code()); });
  }
  size_t timeouts = 0;
  size_t others = 0;
  for (auto& answer : answers) {
    const Code code = answer.get_future().get();
    timeouts += code == Code::kTimeout ? 1 : 0;
    others += code == Code::kUnavailable ? 1 : 0;
  }
  EXPECT_EQ(timeouts + others, kQuestions);
  EXPECT_LE(timeouts, kAtATime);
  fcntl(silent.fd.get(), F_SETFL, O_NONBLOCK);
  size_t connections = 0;
  for (int peer = 0; (peer = accept(silent.fd.get(), nullptr, nullptr)) >= 0; close(peer)) {
    ++connections;
  }
  EXPECT_LE(connections, kAtATime);
}

// It does if it waits for others itself, and then it may answer who comes next.
TEST(HttpClient, APeerThatWaitsForOthersIsAskedByAll) {
  constexpr size_t kQuestions = 17;  // one more than at a time
  const LoopbackListener waits(kQuestions);
  const HttpClient client;
  std::vector<std::promise<Code>> answers(kQuestions);
  for (auto& answer : answers) {
    HttpQuestion question{"127.0.0.1",
                          std::to_string(waits.port),
                          HttpRequest(http::verb::get, "/", 11),
                          "ask",
                          kLimit,
                          9};
    question.waits_for_others = true;
    client.Exchange(std::move(question), [&](const Result<HttpAnswer>& result) {
      answer.set_value(result.status().code());
    });
  }
  for (auto& answer : answers) EXPECT_EQ(answer.get_future().get(), Code::kTimeout);
}

}  // namespace
}  // namespace sonde::serve::serve_http_client_test
