// Sealed links with somebody between their ends, and how they come to be.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "daemon/link/send.h"
#include "daemon/link/trust/acceptor.h"
#include "daemon/link/trust/handshake.h"
#include "daemon/link/trust/protocol.h"
#include "tests/unit/links_carriers.h"

namespace sonde::tree {
namespace {

using testing::HasSubstr;

// A connecting side and an accepting side, and between them one that has what each says and decides
// what goes on.
class SealedLinks : public testing::Test {
 protected:
  SealedLinks() {
    auto [near, near_middle] = LocalLink::MakePair(loop, "client", "middle");
    auto [far_middle, far] = LocalLink::MakePair(loop, "middle", "server");
    client.Own(SealOver(std::move(near), true));
    server.Own(SealOver(std::move(far), false));
    to_client.Own(std::move(near_middle));
    to_server.Own(std::move(far_middle));
  }
  // What the client says, as it comes to the middle.
  std::vector<Message> Sealed(const std::vector<std::string>& payloads) {
    for (const std::string& payload : payloads) {
      EXPECT_TRUE(client.link->Send(21, payload).ok());
    }
    EXPECT_TRUE(RunUntil(loop, [&] { return to_client.messages.size() >= payloads.size(); }));
    return std::exchange(to_client.messages, {});
  }
  void PassOn(End& to, const Message& message) {
    EXPECT_TRUE(to.link->Send(message.type, message.payload).ok());
  }
  // The server has closed its link, and taken nothing but what came before.
  void ExpectRefused(size_t taken = 0) {
    ASSERT_TRUE(RunUntil(loop, [&] { return server.closed > 0 && to_server.closed > 0; }));
    EXPECT_EQ(server.messages.size(), taken);
    EXPECT_EQ(server.closed, 1);
    EXPECT_EQ(server.why.code(), Code::kCorrupt);
    EXPECT_THAT(std::string(server.why.message()), HasSubstr("middle: a message that"));
    EXPECT_EQ(server.link->peer(), "middle");
    EXPECT_EQ(server.link->queued(), 0u);
    EXPECT_EQ(server.link->Send(1, "x").code(), Code::kUnavailable);
    server.link->CloseWhenSent();
    server.link->ExpectMore();
  }

  Loop loop;
  End client;
  End to_client;
  End to_server;
  End server;
};

TEST_F(SealedLinks, WhatIsPassedOnAsItIsArrives) {
  for (const Message& message : Sealed({"one", "two"})) {
    EXPECT_EQ(message.type, static_cast<uint8_t>(Type::kSealed));
    PassOn(to_server, message);
  }
  ASSERT_TRUE(RunUntil(loop, [&] { return server.messages.size() == 2; }));
  EXPECT_EQ(server.messages, (std::vector<Message>{{21, "one"}, {21, "two"}}));
}

TEST_F(SealedLinks, AChangedMessageClosesTheLink) {
  Message message = Sealed({"one"})[0];
  message.payload[2] ^= 1;
  PassOn(to_server, message);
  ExpectRefused();
}

TEST_F(SealedLinks, ACutMessageClosesTheLink) {
  Message message = Sealed({"one"})[0];
  message.payload.pop_back();
  PassOn(to_server, message);
  ExpectRefused();
}

TEST_F(SealedLinks, AnEmptyMessageClosesTheLink) {
  PassOn(to_server, {static_cast<uint8_t>(Type::kSealed), ""});
  ExpectRefused();
}

TEST_F(SealedLinks, ARepeatedMessageClosesTheLink) {
  const Message message = Sealed({"one"})[0];
  PassOn(to_server, message);
  PassOn(to_server, message);
  ExpectRefused(1);
}

TEST_F(SealedLinks, MessagesInAnotherOrderCloseTheLink) {
  const std::vector<Message> messages = Sealed({"one", "two"});
  PassOn(to_server, messages[1]);
  PassOn(to_server, messages[0]);
  ExpectRefused();
}

TEST_F(SealedLinks, AMissingMessageClosesTheLink) {
  const std::vector<Message> messages = Sealed({"one", "two", "three"});
  PassOn(to_server, messages[0]);
  PassOn(to_server, messages[2]);
  ExpectRefused(1);
}

TEST_F(SealedLinks, AMessageThatComesBackClosesTheLink) {
  ASSERT_TRUE(server.link->Send(21, "one").ok());
  ASSERT_TRUE(RunUntil(loop, [&] { return !to_server.messages.empty(); }));
  PassOn(to_server, to_server.messages[0]);
  ExpectRefused();
}

TEST_F(SealedLinks, AMessageThatIsNotSealedClosesTheLink) {
  PassOn(to_server, {static_cast<uint8_t>(Type::kFrame), "a frame of somebody else"});
  ExpectRefused();
}

TEST_F(SealedLinks, ALinkMayBeDestroyedWhenItHearsOfAChangedMessage) {
  bool heard = false;
  server.link->SetHandler({{}, [&](const Status&) {
                             server.link.reset();
                             heard = true;
                           }});
  PassOn(to_server, {static_cast<uint8_t>(Type::kSealed), "x"});
  EXPECT_TRUE(RunUntil(loop, [&] { return heard; }));
}

// A message that the carrier has no room for takes no number: the ones after it are opened.
TEST_F(SealedLinks, ARefusedMessageLeavesNoGap) {
  const std::string big(4u << 20, 'x');
  size_t taken = 0;
  while (client.link->Send(1, big).ok()) ++taken;
  ASSERT_TRUE(RunUntil(loop, [&] { return to_client.messages.size() == taken; }));
  for (const Message& m : std::exchange(to_client.messages, {})) PassOn(to_server, m);
  ASSERT_TRUE(RunUntil(loop, [&] { return server.messages.size() == taken; }));
  PassOn(to_server, Sealed({"after"})[0]);
  ASSERT_TRUE(RunUntil(loop, [&] { return server.messages.size() == taken + 1; }));
  EXPECT_EQ(server.messages.back().payload, "after");
}

TEST(SealedLinkEnds, WhenItsKeysAreUsedUp) {
  Loop loop;
  End client;
  End server;
  auto [near, far] = LocalLink::MakePair(loop, "client", "server");
  constexpr uint64_t kNumber = SealedStream::kMaxMessages - 2;
  client.Own(SealOver(std::move(near), true, kNumber));
  server.Own(SealOver(std::move(far), false, kNumber));
  EXPECT_TRUE(client.link->Send(1, "last but one").ok());
  EXPECT_TRUE(client.link->Send(1, "last").ok());
  EXPECT_EQ(client.link->Send(1, "beyond").code(), Code::kUnavailable);
  ASSERT_TRUE(RunUntil(loop, [&] { return client.closed > 0 && server.closed > 0; }));
  EXPECT_EQ(server.messages.size(), 2u);
  EXPECT_EQ(client.why.code(), Code::kUnavailable);
  EXPECT_THAT(std::string(client.why.message()), HasSubstr("as much as one key may seal"));
}

// --- Through the handshake ---

StepKey SomeKey() {
  StepKey key;
  key.fill(1);
  return key;
}

// A connecting side that says more in one breath with its last word than anybody reads at once.
TEST(SealedHandshake, WhatComesRightBehindTheProofIsNotLost) {
  Loop loop;
  std::vector<Message> taken;
  std::unique_ptr<Link> accepted;
  const Channel channel{Channel::Purpose::kChild, 5, ""};
  Acceptor acceptor(loop, SomeKey(), channel,
                    [&](const Registration& who, std::unique_ptr<Link> l) {
                      EXPECT_EQ(who.host, "n1");
                      accepted = std::move(l);
                      accepted->SetHandler({[&](uint8_t type, std::string_view payload) {
                                              taken.push_back({type, std::string(payload)});
                                            },
                                            {}});
                    });
  SocketCarrier carrier(loop);
  const std::string address =
      carrier.Listen([&](std::unique_ptr<Link> link) { acceptor.Take(std::move(link)); });
  std::unique_ptr<Link> link = carrier.Connect(address);
  const ConnectingHandshake handshake(SomeKey(), channel, {.job = "1", .step = "0", .host = "n1"});
  std::vector<Message> sent;
  link->SetHandler({[&](uint8_t type, std::string_view payload) {
                      Result<HandshakeStep> step = handshake.OnMessage(type, payload);
                      ASSERT_TRUE(step.ok()) << step.status().message();
                      link->ExpectMore();
                      Send(*link, step->answer->type, step->answer->payload);
                      link = SealWith(*std::move(step->seals), std::move(link));
                      for (const size_t size : {0u, 10u, 5000u, 100'000u}) {
                        sent.push_back({21, std::string(size, 'x')});
                        ASSERT_TRUE(link->Send(21, sent.back().payload).ok());
                      }
                    },
                    {}});
  Send(*link, Type::kHello, handshake.Hello());
  ASSERT_TRUE(RunUntil(loop, [&] { return taken.size() == 4; }));
  EXPECT_TRUE(taken == sent);
}

}  // namespace
}  // namespace sonde::tree
