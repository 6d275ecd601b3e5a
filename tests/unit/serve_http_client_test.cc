#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <boost/beast/http/verb.hpp>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "serve/http_client.h"
#include "tests/unit/loopback.h"

namespace sonde::serve {
namespace {

namespace http = boost::beast::http;

constexpr Nanos kLimit = kSecond;

// Takes one connection, reads a request, sends this text, and keeps the connection open.
class Peer {
 public:
  explicit Peer(std::string text) : text_(std::move(text)), thread_([this] { Serve(); }) {}
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
    while (recv(peer, request, sizeof(request), 0) > 0) {
    }
    close(peer);
  }

  const std::string text_;
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

}  // namespace
}  // namespace sonde::serve
