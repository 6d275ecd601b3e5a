// Control connections that come through a gateway, at the head's end.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/bytes.h"
#include "daemon/link/send.h"
#include "daemon/link/via_links.h"
#include "tests/unit/links_carriers.h"

namespace sonde::tree {
namespace {

using testing::HasSubstr;

// A gateway, as far as the head knows it, and what the head makes of its messages.
class ViaLink : public testing::Test {
 protected:
  ViaLink() {
    auto [near, far] = LocalLink::MakePair(loop, "head", "gateway");
    gateway.Own(std::move(far));
    control = std::move(near);
    control->SetMaxMessage(kMaxMessage);
    control->SetHandler({[this](uint8_t type, std::string_view payload) {
                           const auto keep = via;
                           status = keep->OnMessage(static_cast<Type>(type), payload);
                           ++taken;
                         },
                         [](const Status&) {}});
    via = std::make_shared<ViaLinks>(loop, *control,
                                     [this](const Registration& who, std::unique_ptr<Link> link) {
                                       registered.push_back(who.host);
                                       nodes.emplace_back().Own(std::move(link));
                                     });
    nodes.reserve(8);
  }
  void Open(uint64_t channel, const std::string& host) {
    Say(Type::kViaOpen, Encode(ViaOpen{channel, Registration{.job = "1", .host = host}}));
  }
  void Say(Type type, const std::string& payload) {
    const size_t before = taken;
    EXPECT_TRUE(Send(*gateway.link, type, payload));
    EXPECT_TRUE(RunUntil(loop, [&] { return taken > before; }));
  }
  // The next message of the head's.
  Message Heard(size_t i) {
    EXPECT_TRUE(RunUntil(loop, [&] { return gateway.messages.size() > i; }));
    return gateway.messages[i];
  }

  Loop loop;
  End gateway;
  std::unique_ptr<Link> control;
  std::shared_ptr<ViaLinks> via;
  std::vector<std::string> registered;
  std::vector<End> nodes;
  Status status;
  size_t taken = 0;
};

TEST_F(ViaLink, EachNodeHasALinkOfItsOwn) {
  Open(0, "n1");
  Open(1, "n2");
  EXPECT_EQ(registered, (std::vector<std::string>{"n1", "n2"}));
  EXPECT_EQ(nodes[1].link->peer(), "n2 through gateway");
  Say(Type::kVia, EncodeVia({1, 40, "two"}));
  Say(Type::kVia, EncodeVia({0, 41, ""}));
  EXPECT_EQ(nodes[0].messages, (std::vector<Message>{{41, ""}}));
  EXPECT_EQ(nodes[1].messages, (std::vector<Message>{{40, "two"}}));
  ASSERT_TRUE(nodes[1].link->Send(42, "back").ok());
  const Message heard = Heard(0);
  EXPECT_EQ(heard.type, static_cast<uint8_t>(Type::kVia));
  ViaMessage message;
  ASSERT_TRUE(DecodeVia(heard.payload, message).ok());
  EXPECT_EQ(message.channel, 1u);
  EXPECT_EQ(message.type, 42);
  EXPECT_EQ(message.payload, "back");
  EXPECT_TRUE(status.ok());
}

TEST_F(ViaLink, EitherSideMayEndIt) {
  Open(0, "n1");
  Open(1, "n2");
  Say(Type::kViaClose, VarintBytes(0));
  ASSERT_TRUE(RunUntil(loop, [&] { return nodes[0].closed == 1; }));
  EXPECT_EQ(nodes[0].why.code(), Code::kUnavailable);
  EXPECT_FALSE(nodes[0].link->Send(1, "").ok());
  // What was on its way is passed over.
  Say(Type::kVia, EncodeVia({0, 40, "late"}));
  EXPECT_TRUE(status.ok());
  EXPECT_TRUE(nodes[0].messages.empty());
  nodes[1].link.reset();
  const Message heard = Heard(0);
  EXPECT_EQ(heard.type, static_cast<uint8_t>(Type::kViaClose));
  EXPECT_EQ(heard.payload, VarintBytes(1));
  Say(Type::kVia, EncodeVia({1, 40, "late"}));
  EXPECT_TRUE(status.ok());
}

TEST_F(ViaLink, WithTheGatewayAllEnd) {
  Open(0, "n1");
  Open(1, "n2");
  via->Lose();
  ASSERT_TRUE(RunUntil(loop, [&] { return nodes[0].closed == 1 && nodes[1].closed == 1; }));
  EXPECT_THAT(std::string(nodes[1].why.message()), HasSubstr("gateway gateway is lost"));
  via.reset();
  control.reset();
  EXPECT_EQ(nodes[0].link->Send(1, "").code(), Code::kUnavailable);
  EXPECT_EQ(nodes[0].link->queued(), 0u);
}

TEST_F(ViaLink, ALinkWhoseOwnerIsGoneIsNotCalled) {
  Open(0, "n1");
  via->Lose();
  nodes[0].link.reset();
  loop.Post([this] { loop.Stop(); });
  loop.Run();
  EXPECT_EQ(nodes[0].closed, 0);
}

// The node comes again, and is told all of it.
TEST_F(ViaLink, WhatTheGatewayDoesNotTakeEndsTheLink) {
  Open(0, "n1");
  const std::string much(7u << 20, 'x');
  Status sent;
  for (int i = 0; i < 8 && sent.ok(); ++i) sent = nodes[0].link->Send(42, much);
  EXPECT_EQ(sent.code(), Code::kLimit);
  ASSERT_TRUE(RunUntil(loop, [&] { return nodes[0].closed == 1; }));
  EXPECT_EQ(nodes[0].why.code(), Code::kLimit);
}

// Else the gateway would keep the node's connection, and the head would hear nothing of it.
TEST_F(ViaLink, OfWhichTheGatewayCannotBeToldNowIsToldLater) {
  Open(0, "n1");
  for (const size_t size : {size_t{7} << 20, size_t{1} << 20, size_t{1} << 10, size_t{0}}) {
    while (control->Send(40, std::string(size, 'x')).ok()) {
    }
  }
  EXPECT_EQ(nodes[0].link->Send(42, "x").code(), Code::kLimit);
  ASSERT_TRUE(RunUntil(loop, [&] { return control->queued() == 0; }));
  Say(Type::kVia, EncodeVia({0, 40, "to nobody"}));
  const Message last{static_cast<uint8_t>(Type::kViaClose), VarintBytes(0)};
  EXPECT_TRUE(RunUntil(loop, [&] { return gateway.messages.back() == last; }));
}

TEST_F(ViaLink, AMessageThatIsTooLongIsRefusedAlone) {
  Open(0, "n1");
  EXPECT_EQ(nodes[0].link->Send(42, std::string(kMaxMessage, 'x')).code(), Code::kLimit);
  EXPECT_TRUE(nodes[0].link->Send(42, "x").ok());
}

TEST_F(ViaLink, GarbageIsRefused) {
  Open(0, "n1");
  const std::pair<Type, std::string> garbage[] = {
      {Type::kVia, ""},
      {Type::kVia, EncodeVia({1, 40, "of a channel that is not open yet"})},
      {Type::kViaClose, ""},
      {Type::kViaClose, VarintBytes(1)},
      {Type::kViaOpen, ""},
      {Type::kViaOpen, EncodeVia({1, 0, "no registration"})},
      {Type::kViaOpen, Encode(ViaOpen{2, Registration{.job = "1", .host = "n3"}})},
      {Type::kViaOpen, Encode(ViaOpen{0, Registration{.job = "1", .host = "n3"}})},
      {Type::kBlock, ""}};
  for (const auto& [type, payload] : garbage) {
    Say(type, payload);
    EXPECT_EQ(status.code(), Code::kCorrupt) << static_cast<int>(type) << ' ' << payload;
  }
  EXPECT_EQ(registered.size(), 1u);
}

}  // namespace
}  // namespace sonde::tree
