// Heads that take a connection and never answer: what `sonde serve` does meanwhile.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>

#include <chrono>
#include <future>
#include <string>
#include <vector>

#include "profiles/live/live_archive.h"
#include "serve/head_client.h"
#include "tests/unit/cli_serve_fixture.h"
#include "tests/unit/loopback.h"
#include "tests/unit/web_fake_source.h"
#include "web/server/server.h"

namespace sonde::cli::cli_silent_heads_test {
namespace {

using testing::HasSubstr;

constexpr Nanos kLimit = 5 * kSecond;      // of a head
constexpr Nanos kPatience = 60 * kSecond;  // with what is asked here

// The kernel takes its connections; nobody reads them.
class SilentHead {
 public:
  uint16_t port() const { return listener_.port; }
  bool WaitUntilAsked() const {
    pollfd waiting{listener_.fd.get(), POLLIN, 0};
    return poll(&waiting, 1, static_cast<int>(kPatience / kMillisecond)) == 1;
  }

 private:
  const LoopbackListener listener_{64};
};

class SilentHeads : public ServeTest {
 protected:
  static constexpr int kHeads = 4;

  void SetUp() override {
    ServeTest::SetUp();
    const Nanos began = Clock::System().Now() - 60 * kSecond;
    for (int i = 0; i < kHeads; ++i) {
      heads_.push_back(std::make_unique<SilentHead>());
      auto live = LiveArchive::Create(root(), TestJob(std::to_string(4712 + i), began));
      ASSERT_TRUE(live.ok()) << live.status().message();
      live_.push_back(*std::move(live));
      ASSERT_TRUE(live_.back()
                      ->PutEndpoint({HostName(), "127.0.0.1", heads_.back()->port(), "a-token"})
                      .ok());
    }
    web::Server::Options options;
    options.port = 0;
    options.token = endpoint_.token;
    options.threads = 2;
    auto server = web::Server::Start(options, OpenSource(kLimit));
    ASSERT_TRUE(server.ok()) << server.status().message();
    server_ = *std::move(server);
    endpoint_.port = server_->port();
  }
  using Answer = Result<std::string>;
  std::future<Answer> Ask(const std::string& target) const {
    return std::async(std::launch::async, [endpoint = endpoint_, target] {
      return serve::AskHead(endpoint, target, kPatience);
    });
  }
  static bool IsThere(const std::future<Answer>& answer) {
    return answer.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
  }

  std::vector<std::unique_ptr<SilentHead>> heads_;
  std::vector<std::unique_ptr<LiveArchive>> live_;
  Endpoint endpoint_{HostName(), "127.0.0.1", 0, "token-of-this-server"};
  std::unique_ptr<web::Server> server_;
};

// Each endpoint that asks all of them: their limits are one, and not one after the other.
TEST_F(SilentHeads, CostTheirLimitOnceForAll) {
  const Nanos began = Clock::System().Monotonic();
  const Answer list = Ask("/job/list").get();
  const Nanos took = Clock::System().Monotonic() - began;
  ASSERT_TRUE(list.ok()) << list.status().message();
  EXPECT_THAT(*list, HasSubstr("4715"));
  EXPECT_GE(took, kLimit) << "nobody was asked";
  EXPECT_LT(took, kHeads * kLimit);
}

// One that answers is told of with the others, within the limit of these.
class WithExporter final : public web::FakeSource {
 public:
  using FakeSource::FakeSource;
  void Exporters(const JobStep&, ExportersCallback callback) const override {
    web::Exporter one;
    one.host = "n1";
    one.target = {"n1", "9100", "/metrics"};
    callback(std::vector<web::Exporter>{one});
  }
};

TEST_F(SilentHeads, HoldUpNoAnswersOfOtherHeads) {
  web::Server::Options options;
  options.port = 0;
  options.token = "a-token";
  const auto source = std::make_shared<WithExporter>(Clock::System().Now());
  const auto head = web::Server::Start(options, source);
  ASSERT_TRUE(head.ok()) << head.status().message();
  const auto live = LiveArchive::Create(root(), TestJob("4800", Clock::System().Now()));
  ASSERT_TRUE(live.ok()) << live.status().message();
  ASSERT_TRUE((*live)->PutEndpoint({HostName(), "127.0.0.1", (*head)->port(), options.token}).ok());
  const Nanos began = Clock::System().Monotonic();
  const Answer list = Ask("/join/list").get();
  const Nanos took = Clock::System().Monotonic() - began;
  ASSERT_TRUE(list.ok()) << list.status().message();
  EXPECT_THAT(*list, HasSubstr("\"job\":\"4800.0\""));
  EXPECT_GE(took, kLimit) << "nobody was asked";
  EXPECT_LT(took, 2 * kLimit);
}

// Both threads of the server go on answering while more requests than they wait for heads.
TEST_F(SilentHeads, HoldUpNoThreadOfTheServer) {
  std::vector<std::future<Answer>> slow;
  for (const char* target :
       {"/job/list", "/job", "/metrics", "/trace/list", "/api/suggest?type=tagv",
        "/api/v1/profile?job=4713.0", "/api/search/lookup?m=node_load1",
        "/api/annotations?start_time=1h-ago", "/join/list",
        "/api/query?start=1h-ago&m=sum:task_resident_memory_bytes"}) {
    slow.push_back(Ask(target));
  }
  for (const auto& head : heads_) ASSERT_TRUE(head->WaitUntilAsked());
  for (const char* target : {"/api/version", "/api/v1/profile?job=123.0", "/api/v1/steps?job=123",
                             "/api/v1/tags?job=124.0", "/profiles?limit=10"}) {
    const Answer quick = Ask(target).get();
    EXPECT_TRUE(quick.ok()) << target << ": " << quick.status().message();
  }
  for (const auto& one : slow) EXPECT_FALSE(IsThere(one)) << "it did not wait for the heads";
  for (auto& one : slow) {
    const Answer answer = one.get();
    // What the archive has is told; a name that nothing has is an error as ever.
    EXPECT_TRUE(answer.ok() || answer.status().code() == Code::kNotFound)
        << answer.status().message();
  }
}

}  // namespace
}  // namespace sonde::cli::cli_silent_heads_test
