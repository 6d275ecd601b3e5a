// Who may bring other nodes to the head: the head believes a gateway that they have proved the key.
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "core/bytes.h"
#include "daemon/head/head.h"
#include "daemon/link/via_links.h"
#include "daemon/loop.h"
#include "temp_dir.h"
#include "tests/unit/head_ends.h"

namespace sonde::head::head_gateways_test {
namespace {

using tree::Type;

// Counts what the head says to a node, and to those behind it.
class GatewayEnd final : public HeadEnd {
 public:
  explicit GatewayEnd(int& welcomes) : welcomes_(welcomes) {}
  // The index that the node itself was told.
  const std::optional<uint32_t>& index() const { return index_; }
  bool over() const { return over_; }
  Status Send(uint8_t type, std::string_view payload) override {
    tree::Welcome welcome;
    if (static_cast<Type>(type) == Type::kWelcome && Decode(payload, welcome).ok()) {
      index_ = welcome.index;
    }
    over_ |= static_cast<Type>(type) == Type::kOver;
    tree::ViaMessage message;
    if (static_cast<Type>(type) == Type::kVia && DecodeVia(payload, message).ok()) {
      // Also to who is behind one of these.
      while (static_cast<Type>(message.type) == Type::kVia) {
        if (!DecodeVia(message.payload, message).ok()) return {};
      }
      welcomes_ += static_cast<Type>(message.type) == Type::kWelcome;
    }
    return {};
  }

 private:
  int& welcomes_;
  std::optional<uint32_t> index_;
  bool over_ = false;
};

class Gateways : public testing::Test {
 protected:
  Gateways() {
    LaunchMessage launch;
    launch.role = Role::kHead;
    launch.archive = directory_.path();
    launch.job.id = {"7", "0"};
    launch.job.start = Clock::System().Now();
    launch.job.expected_nodes = 4;
    launch.job.period = kSecond;
    Config config;
    config.http = "off";
    head_ = std::make_unique<Head>(loop_, clock_, launch, config, [](const std::string&) {});
    EXPECT_TRUE(head_->Start({}).ok());
  }
  static tree::Registration Who(uint32_t node) {
    return {
        .job = "7", .step = "0", .node_id = node, .nodes = 4, .host = "n" + std::to_string(node)};
  }
  GatewayEnd* Add(uint32_t node) {
    auto end = std::make_unique<GatewayEnd>(welcomes_);
    GatewayEnd* raw = end.get();
    EXPECT_TRUE(head_->AddNode(Who(node), std::move(end)).ok());
    return raw;
  }

  TempDir directory_;
  Loop loop_;
  StepClock clock_;
  int welcomes_ = 0;
  std::unique_ptr<Head> head_;
};

TEST_F(Gateways, BringOthers) {
  GatewayEnd* gateway = Add(0);
  gateway->Hear(Type::kViaOpen, Encode(tree::ViaOpen{0, Who(1)}));
  gateway->Hear(Type::kViaOpen, Encode(tree::ViaOpen{1, Who(2)}));
  EXPECT_EQ(welcomes_, 2);
}

// So that messages do not lie within each other as deep as somebody likes.
TEST_F(Gateways, NobodyComesThroughTwo) {
  GatewayEnd* gateway = Add(0);
  gateway->Hear(Type::kViaOpen, Encode(tree::ViaOpen{0, Who(1)}));
  EXPECT_EQ(welcomes_, 1);
  const std::string open = Encode(tree::ViaOpen{0, Who(2)});
  gateway->Hear(Type::kVia, tree::EncodeVia({0, static_cast<uint8_t>(Type::kViaOpen), open}));
  EXPECT_EQ(welcomes_, 1);
}

// The gateway stood still after the node had said who it is, so that the node came by itself; what
// the gateway says when it goes on is late.
TEST_F(Gateways, ThatAreLateReplaceNobody) {
  GatewayEnd* gateway = Add(0);
  const GatewayEnd* itself = Add(1);
  gateway->Hear(Type::kViaOpen, Encode(tree::ViaOpen{0, Who(1)}));
  EXPECT_EQ(welcomes_, 0);
  EXPECT_FALSE(itself->over());
  EXPECT_EQ(Add(2)->index(), 2u);
}

// The same, when the head has heard the gateway first: the node has not heard which one it is.
TEST_F(Gateways, ThatToldTheHeadAndNotTheNodeMakeNoSecondOne) {
  GatewayEnd* gateway = Add(0);
  gateway->Hear(Type::kViaOpen, Encode(tree::ViaOpen{0, Who(1)}));
  EXPECT_EQ(welcomes_, 1);
  EXPECT_EQ(Add(1)->index(), 1u);
}

// Who has spoken had been told: then it is another daemon that comes.
TEST_F(Gateways, ADaemonThatWasStartedAnewIsAnotherOne) {
  GatewayEnd* gateway = Add(0);
  gateway->Hear(Type::kViaOpen, Encode(tree::ViaOpen{0, Who(1)}));
  const auto ask = static_cast<uint8_t>(Type::kAskTime);
  gateway->Hear(Type::kVia, tree::EncodeVia({0, ask, VarintBytes(1)}));
  EXPECT_EQ(Add(1)->index(), 2u);
}

}  // namespace
}  // namespace sonde::head::head_gateways_test
