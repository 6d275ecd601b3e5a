// The server's bounds, through real sockets on the loopback: what clients can cost that are slow,
// many, or malicious.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <thread>
#include <vector>

#include "tests/unit/web_client.h"
#include "web/http/gzip.h"
#include "web/opentsdb/put_store.h"
#include "web/source/point_sink.h"

namespace sonde::web::web_limits_test {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

using LimitsTest = ServerTest;

TEST_F(LimitsTest, BoundsHeaderAndBody) {
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

TEST_F(LimitsTest, ASlowClientIsDroppedAndDisturbsNobody) {
  options_.limits.read_timeout = 200 * kMillisecond;
  Start();
  Client slow(server_->port());
  slow.Send("GET / HTTP/1.1\r\nHost:");
  EXPECT_THAT(Exchange(Get("/api/version")), StartsWith("HTTP/1.1 200 "));
  EXPECT_TRUE(slow.SeesClose());
}

TEST_F(LimitsTest, AStrangerMakesRoomForTheOwner) {
  options_.limits.connections = 4;
  Start();
  std::vector<std::unique_ptr<Client>> strangers;
  for (int i = 0; i < 50; ++i) strangers.push_back(std::make_unique<Client>(server_->port()));
  EXPECT_THAT(Exchange(Get("/api/version")), StartsWith("HTTP/1.1 200 "));
  EXPECT_TRUE(strangers.front()->SeesClose());
}

TEST_F(LimitsTest, WhoHasBeenIdleLongestMakesRoom) {
  options_.threads = 1;  // which notes that a connection is idle before it accepts another
  options_.limits.connections = 3;
  Start();
  std::vector<std::unique_ptr<Client>> mine;
  for (int i = 0; i < 3; ++i) {
    mine.push_back(std::make_unique<Client>(server_->port()));
    mine.back()->Send(Get("/api/version"));
    EXPECT_THAT(mine.back()->Receive(), StartsWith("HTTP/1.1 200 "));
  }
  mine[0]->Send(Get("/api/version"));
  EXPECT_THAT(mine[0]->Receive(), StartsWith("HTTP/1.1 200 "));
  EXPECT_THAT(Exchange(Get("/api/version")), StartsWith("HTTP/1.1 200 "));
  EXPECT_TRUE(mine[1]->SeesClose());
  mine[0]->Send(Get("/api/version"));
  EXPECT_THAT(mine[0]->Receive(), StartsWith("HTTP/1.1 200 "));
}

TEST_F(LimitsTest, WhoIsBeingAnsweredStaysAndANewOneIsTold) {
  options_.limits.connections = 2;
  Start();
  source_->SetMode(FakeSource::Mode::kNever);
  Client first(server_->port()), second(server_->port());
  first.Send(Post("/api/query", kQuery));
  second.Send(Post("/api/query", kQuery));
  while (source_->held() < 2) std::this_thread::yield();
  Client third(server_->port());
  const std::string refused = third.Receive();
  EXPECT_THAT(refused, StartsWith("HTTP/1.1 503 "));
  EXPECT_THAT(refused, HasSubstr("Retry-After: 1\r\n"));
  EXPECT_THAT(refused, HasSubstr("Connection: close\r\n"));
  EXPECT_THAT(refused, HasSubstr("X-Content-Type-Options: nosniff\r\n"));
  EXPECT_THAT(refused, HasSubstr(R"({"error":{"code":503,)"));
  EXPECT_TRUE(third.SeesClose());
  source_->SetMode(FakeSource::Mode::kAnswer);
  source_->Release();
  EXPECT_THAT(first.Receive(), HasSubstr("dps"));
  EXPECT_THAT(second.Receive(), HasSubstr("dps"));
}

// More clients than there are connections, all at once and again and again: each is answered.
TEST_F(LimitsTest, NobodyStarvesWhenThereAreMoreClientsThanConnections) {
  options_.limits.connections = 16;
  Start();
  constexpr int kClients = 40, kRequests = 20;
  std::atomic<int> answered = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < kClients; ++i) {
    threads.emplace_back([&] {
      auto client = std::make_unique<Client>(server_->port());
      for (int done = 0, tries = 0; done < kRequests && tries < 1000; ++tries) {
        client->Send(Get("/api/version"));
        const std::string answer = client->Receive();
        if (answer.starts_with("HTTP/1.1 200 ")) {
          ++done;
          ++answered;
          continue;
        }
        // Whose connection made room, as any HTTP client does.
        client = std::make_unique<Client>(server_->port());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(answered, kClients * kRequests);
}

size_t OpenFiles() {
  size_t count = 0;
  for ([[maybe_unused]] const auto& one : std::filesystem::directory_iterator("/proc/self/fd")) {
    ++count;
  }
  return count;
}

TEST_F(LimitsTest, ThousandsOfConnectionsAreBounded) {
  constexpr size_t kMany = 3000;
  rlimit files{};
  getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = files.rlim_max;
  setrlimit(RLIMIT_NOFILE, &files);
  if (files.rlim_cur < kMany + 500) GTEST_SKIP() << "too few open files are allowed";
  Start();
  std::vector<std::unique_ptr<Client>> strangers;
  for (size_t i = 0; i < kMany; ++i) {
    strangers.push_back(std::make_unique<Client>(server_->port()));
    if (i % 500 != 0) continue;
    EXPECT_THAT(Exchange(Get("/api/version")), StartsWith("HTTP/1.1 200 "));
  }
  EXPECT_THAT(Exchange(Get("/api/version")), StartsWith("HTTP/1.1 200 "));
  EXPECT_LT(OpenFiles(), kMany + 2 * options_.limits.connections);
  EXPECT_TRUE(strangers.front()->SeesClose());
}

// One series of 200,000 points: an answer of some 4 MB in chunks.
class LargeTest : public ServerTest {
 protected:
  void StartLarge() {
    for (int i = 0; i < kPoints; ++i) {
      ASSERT_TRUE(store_->sink()
                      ->Put({"long", {{"host", "n1"}}, (kFirst + i) * kSecond, i + 0.25, false})
                      .ok());
    }
    Result<std::unique_ptr<Server>> server = Server::Start(options_, store_);
    ASSERT_TRUE(server.ok());
    server_ = *std::move(server);
  }
  static std::string Ask(std::string_view more = "") {
    return Get("/api/query?start=1700000000&end=1700200000&arrays=true&m=none:long", more);
  }
  static void ExpectWhole(const std::string& body) {
    EXPECT_EQ(std::count(body.begin(), body.end(), ','), 2 * kPoints + 2);
    EXPECT_THAT(body, StartsWith(R"([{"metric":"long",)"));
    EXPECT_TRUE(body.ends_with("[1700199999,199999.25]]}]")) << body.substr(body.size() - 60);
  }

  static constexpr int kPoints = 200'000;
  static constexpr Nanos kFirst = 1'700'000'000;
  std::shared_ptr<PutStore> store_ = std::make_shared<PutStore>();
};

TEST_F(LargeTest, ComesWholeInChunksAndTheConnectionGoesOn) {
  StartLarge();
  Client client(server_->port());
  client.Send(Ask() + Get("/api/version"));
  const std::string header = client.ReceiveTo("\r\n\r\n");
  EXPECT_THAT(header, HasSubstr("Transfer-Encoding: chunked\r\n"));
  EXPECT_THAT(header, Not(HasSubstr("Content-Length")));
  ExpectWhole(client.ReceiveChunks());
  EXPECT_THAT(client.Receive(), HasSubstr("2.4.1"));
}

TEST_F(LargeTest, PackedItIsTheSame) {
  StartLarge();
  Client client(server_->port());
  client.Send(Ask("Accept-Encoding: br, gzip;q=0.5\r\n"));
  EXPECT_THAT(client.ReceiveTo("\r\n\r\n"), HasSubstr("Content-Encoding: gzip\r\n"));
  const std::string packed = client.ReceiveChunks();
  EXPECT_LT(packed.size(), 2'000'000U);
  const Result<std::string> body = Gunzip(packed, 8u << 20);
  ASSERT_TRUE(body.ok()) << body.status().message();
  ExpectWhole(*body);
}

// HTTP/1.0 knows no chunks: what comes until the end is the body.
TEST_F(LargeTest, AnOldClientReadsToTheEnd) {
  StartLarge();
  Client client(server_->port());
  std::string request = Ask();
  request.replace(request.find("HTTP/1.1"), 8, "HTTP/1.0");
  client.Send(request);
  EXPECT_THAT(client.ReceiveTo("\r\n\r\n"), Not(HasSubstr("chunked")));
  const std::string body = client.ReceiveTo("199999.25]]}]");
  ExpectWhole(body);
  EXPECT_TRUE(client.SeesClose());
}

TEST_F(LargeTest, AHeadHasNoBodyAndNothingIsWritten) {
  StartLarge();
  Client client(server_->port());
  std::string request = Ask();
  request.replace(0, 3, "HEAD");
  client.Send(request + Get("/api/version"));
  EXPECT_THAT(client.ReceiveTo("\r\n\r\n"), StartsWith("HTTP/1.1 200 "));
  EXPECT_THAT(client.Receive(), HasSubstr("2.4.1"));
}

TEST_F(LargeTest, ASlowReaderIsDropped) {
  options_.limits.write_timeout = 200 * kMillisecond;
  options_.limits.write_rate = 1u << 30;
  StartLarge();
  Client slow(server_->port());
  slow.ShrinkReceiveBuffer();
  slow.Send(Ask());
  EXPECT_THAT(slow.ReceiveTo("\r\n\r\n"), StartsWith("HTTP/1.1 200 "));
  // Nothing is read until the server has given up.
  while (server_->held_bytes() != 0) std::this_thread::yield();
  EXPECT_TRUE(slow.SeesClose());
  EXPECT_THAT(Exchange(Get("/api/version")), StartsWith("HTTP/1.1 200 "));
}

TEST_F(LargeTest, AnswersOnTheirWayAreBoundedTogether) {
  options_.limits.answer_bytes = 1000;  // one may be larger
  StartLarge();
  Client slow(server_->port());
  slow.ShrinkReceiveBuffer();
  slow.Send(Ask());
  EXPECT_THAT(slow.ReceiveTo("\r\n\r\n"), StartsWith("HTTP/1.1 200 "));
  const std::string refused = Exchange(Ask());
  EXPECT_THAT(refused, StartsWith("HTTP/1.1 503 "));
  EXPECT_THAT(refused, HasSubstr("Retry-After: 1\r\n"));
  ExpectWhole(slow.ReceiveChunks());
  Client again(server_->port());
  again.Send(Ask());
  EXPECT_THAT(again.ReceiveTo("\r\n\r\n"), StartsWith("HTTP/1.1 200 "));
}

TEST_F(LargeTest, WhatIsBeingSentIsSentWhenTheServerStops) {
  options_.limits.stop_timeout = 10 * kSecond;
  StartLarge();
  Client client(server_->port());
  client.ShrinkReceiveBuffer();
  client.Send(Ask());
  EXPECT_THAT(client.ReceiveTo("\r\n\r\n"), StartsWith("HTTP/1.1 200 "));
  std::thread stopping([this] { server_.reset(); });
  ExpectWhole(client.ReceiveChunks());
  stopping.join();
}

TEST_F(LargeTest, ButNotForEver) {
  options_.limits.stop_timeout = 100 * kMillisecond;
  StartLarge();
  Client client(server_->port());
  client.ShrinkReceiveBuffer();
  client.Send(Ask());
  EXPECT_THAT(client.ReceiveTo("\r\n\r\n"), StartsWith("HTTP/1.1 200 "));
  const auto before = std::chrono::steady_clock::now();
  server_.reset();
  EXPECT_LT(std::chrono::steady_clock::now() - before, std::chrono::seconds(5));
}

}  // namespace
}  // namespace sonde::web::web_limits_test
