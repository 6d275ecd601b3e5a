// Since when nodes did not reach a head that leaves the step to another one: told in its report.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "daemon/head/head.h"
#include "daemon/link/listener.h"
#include "daemon/link/trust/acceptor.h"
#include "daemon/loop.h"
#include "temp_dir.h"
#include "tests/unit/fake_clock.h"
#include "tests/unit/head_ends.h"

namespace sonde::head::head_out_of_reach_test {
namespace {

using testing::HasSubstr;
using testing::Not;
using tree::Type;

constexpr const char* kHere = "127.0.0.1";

// Says that it stands by, when it is asked to.
class StandbyEnd final : public HeadEnd {
 public:
  StandbyEnd(Loop& loop, uint16_t port) : loop_(loop), port_(port) {}
  Status Send(uint8_t type, std::string_view) override {
    if (static_cast<Type>(type) == Type::kStandby) {
      loop_.Post([this] {
        Hear(Type::kStandingBy, Encode(tree::StandingBy{kHere, port_}));
        loop_.Stop();
      });
    }
    return {};
  }

 private:
  Loop& loop_;
  const uint16_t port_;
};

class OutOfReach : public testing::Test {
 protected:
  OutOfReach() {
    launch_.role = Role::kHead;
    launch_.archive = directory_.path();
    launch_.job.id = {"7", "0"};
    launch_.job.start = clock_.Now();
    launch_.job.expected_nodes = 4;
    launch_.job.period = kSecond;
    launch_.key.fill(1);
    Config config;
    config.http = "off";
    config.fabric_after = kMillisecond;
    head_ = std::make_unique<Head>(loop_, clock_, launch_, config, [this](const std::string& text) {
      report_ = text;
      loop_.Stop();
    });
    EXPECT_TRUE(head_->Start(*tree::ListenAt(kHere, {})).ok());
  }
  // The node 0 is there and stands by.
  StandbyEnd* ComesAndStandsBy(uint32_t index) {
    auto end = std::make_unique<StandbyEnd>(loop_, port_);
    StandbyEnd* raw = end.get();
    const tree::Registration who = {
        .job = "7", .step = "0", .nodes = 4, .host = "n0", .index = index};
    EXPECT_TRUE(head_->AddNode(who, std::move(end)).ok());
    Run();
    return raw;
  }
  // Until somebody stops the loop.
  void Run() {
    bool late = false;
    const Loop::TimerId limit = loop_.After(20 * kSecond, [&] {
      late = true;
      loop_.Stop();
    });
    loop_.Run();
    loop_.Cancel(limit);
    ASSERT_FALSE(late);
  }
  // That node's acting head.
  void Act() {
    acceptor_ = std::make_unique<tree::Acceptor>(
        loop_, launch_.key, tree::Channel{tree::Channel::Purpose::kControl, 0, ""},
        [](const tree::Registration&, std::unique_ptr<tree::Link>) {});
    auto listener = tree::Listener::Adopt(
        loop_, std::move(standing_),
        [this](std::unique_ptr<tree::SocketLink> link) { acceptor_->Take(std::move(link)); });
    ASSERT_TRUE(listener.ok()) << listener.status().message();
    listener_ = *std::move(listener);
  }

  TempDir directory_;
  Loop loop_;
  FakeClock machine_;
  StepClock clock_{0, machine_};
  LaunchMessage launch_;
  std::string report_;
  UniqueFd standing_ = *tree::ListenAt(kHere, {});
  const uint16_t port_ = tree::PortOf(tree::LocalAddress(standing_.get()));
  std::unique_ptr<tree::Acceptor> acceptor_;
  std::unique_ptr<tree::Listener> listener_;
  std::unique_ptr<Head> head_;
};

TEST_F(OutOfReach, ATimeBeforeNodesCameBackIsNotTold) {
  const std::string first = FormatTime(clock_.Now());
  ComesAndStandsBy(tree::kHeadIndex)->Break();
  StandbyEnd* back = ComesAndStandsBy(0);
  machine_.time += 100 * kSecond;
  const std::string second = FormatTime(clock_.Now());
  back->Break();
  machine_.time += 100 * kSecond;
  Act();
  Run();
  EXPECT_THAT(report_, HasSubstr("from " + second + " on"));
  EXPECT_THAT(report_, Not(HasSubstr(first)));
}

}  // namespace
}  // namespace sonde::head::head_out_of_reach_test
