// What holds for every link, whatever carries it.
#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <typeinfo>

#include "tests/unit/links_carriers.h"

namespace sonde::tree {
namespace {

using testing::HasSubstr;

template <typename Carrier>
class EveryCarrier : public testing::Test {
 protected:
  EveryCarrier() : carrier(loop) {
    address = carrier.Listen([this](std::unique_ptr<Link> link) { server.Own(std::move(link)); });
  }
  void Connect() {
    client.Own(carrier.Connect(address));
    ASSERT_TRUE(client.link->Send(0, "hello").ok());
    ASSERT_TRUE(RunUntil(loop, [this] { return !server.messages.empty(); }));
    server.messages.clear();
  }
  bool Until(const std::function<bool()>& done) { return RunUntil(loop, done); }

  Loop loop;
  Carrier carrier;
  std::string address;
  End client;
  End server;
};

using Carriers =
    testing::Types<SocketCarrier, LocalCarrier, FabricCarrier<OverMsg>, FabricCarrier<OverRdm>,
                   FabricCarrier<OverPolledRdm>, SocketFabricCarrier, Sealing<SocketCarrier>,
                   Sealing<LocalCarrier>, Sealing<FabricCarrier<OverMsg>>,
                   Sealing<FabricCarrier<OverRdm>>, Sealing<FabricCarrier<OverPolledRdm>>,
                   Sealing<SocketFabricCarrier>>;
TYPED_TEST_SUITE(EveryCarrier, Carriers);

std::string Pattern(size_t size) {
  std::string text(size, '\0');
  for (size_t i = 0; i < size; ++i) text[i] = static_cast<char>(i * 131 + i / 251);
  return text;
}

TYPED_TEST(EveryCarrier, MessagesOfAllSizesArriveInOrderInBothDirections) {
  this->Connect();
  std::vector<Message> sent;
  for (const size_t size : {0u, 1u, 5u, 4091u, 16379u, 16380u, 16384u, 65536u, 1u << 20, 3u}) {
    sent.push_back({static_cast<uint8_t>(sent.size()), Pattern(size)});
  }
  for (const Message& m : sent) {
    ASSERT_TRUE(this->client.link->Send(m.type, m.payload).ok());
    ASSERT_TRUE(this->server.link->Send(m.type, m.payload).ok());
  }
  ASSERT_TRUE(this->Until([&] {
    return this->server.messages.size() == sent.size() &&
           this->client.messages.size() == sent.size();
  }));
  EXPECT_TRUE(this->server.messages == sent);
  EXPECT_TRUE(this->client.messages == sent);
  EXPECT_EQ(this->client.link->queued(), 0u);
  EXPECT_EQ(this->client.link->bytes_received(), this->server.link->bytes_sent());
}

TYPED_TEST(EveryCarrier, TenThousandSmallMessagesArriveInOrder) {
  this->Connect();
  constexpr size_t kCount = 10'000;
  for (size_t i = 0; i < kCount; ++i) {
    ASSERT_TRUE(this->client.link->Send(1, std::to_string(i)).ok());
  }
  ASSERT_TRUE(this->Until([&] { return this->server.messages.size() == kCount; }));
  for (size_t i = 0; i < kCount; ++i)
    ASSERT_EQ(this->server.messages[i].payload, std::to_string(i));
}

TYPED_TEST(EveryCarrier, AHandlerMayDestroyItsLinkAndStillReadTheMessage) {
  this->Connect();
  std::string seen;
  this->server.link->SetHandler({[&](uint8_t, std::string_view payload) {
                                   this->server.link.reset();
                                   seen += payload;
                                 },
                                 {}});
  for (const char* text : {"first", "second"}) ASSERT_TRUE(this->client.link->Send(1, text).ok());
  ASSERT_TRUE(this->Until([&] { return this->client.closed > 0; }));
  EXPECT_EQ(seen, "first");
  EXPECT_EQ(this->client.closed, 1);
  EXPECT_THAT(std::string(this->client.why.message()), HasSubstr(this->client.link->peer()));
  EXPECT_EQ(this->client.link->Send(1, "x").code(), Code::kUnavailable);
}

TYPED_TEST(EveryCarrier, ALinkMayBeDestroyedWhenItHearsThatItIsClosed) {
  this->Connect();
  bool heard = false;
  this->client.link->SetHandler({{}, [&](const Status&) {
                                   this->client.link.reset();
                                   heard = true;
                                 }});
  this->server.link.reset();
  EXPECT_TRUE(this->Until([&] { return heard; }));
}

TYPED_TEST(EveryCarrier, AHandlerMayReplaceItself) {
  this->Connect();
  std::vector<std::string> seen;
  this->server.link->SetHandler(
      {[&](uint8_t, std::string_view) {
         this->server.link->SetHandler(
             {[&](uint8_t, std::string_view p) { seen.emplace_back(p); }, {}});
       },
       {}});
  for (const char* text : {"key", "a", "b"}) ASSERT_TRUE(this->client.link->Send(1, text).ok());
  ASSERT_TRUE(this->Until([&] { return seen.size() == 2; }));
  EXPECT_EQ(seen, (std::vector<std::string>{"a", "b"}));
}

TYPED_TEST(EveryCarrier, AGoodbyeLosesNothing) {
  this->Connect();
  const std::string big = Pattern(3u << 20);
  // The peer's own bytes under way must not reset what is still to be read.
  ASSERT_TRUE(this->server.link->Send(7, big).ok());
  ASSERT_TRUE(this->client.link->Send(1, big).ok());
  ASSERT_TRUE(this->client.link->Send(2, "last").ok());
  this->client.link->CloseWhenSent();
  EXPECT_EQ(this->client.link->Send(3, "").code(), Code::kUnavailable);
  ASSERT_TRUE(this->Until([&] { return this->server.closed > 0 && this->client.closed > 0; }));
  EXPECT_TRUE(this->client.why.ok()) << this->client.why.message();
  EXPECT_EQ(this->server.why.code(), Code::kUnavailable);
  ASSERT_EQ(this->server.messages.size(), 2u);
  EXPECT_TRUE(this->server.messages[0].payload == big);
  EXPECT_EQ(this->server.messages[1].payload, "last");
}

TYPED_TEST(EveryCarrier, AGoodbyeBeforeTheConnectionStandsLosesNothing) {
  this->client.Own(this->carrier.Connect(this->address));
  ASSERT_TRUE(this->client.link->Send(1, "only").ok());
  this->client.link->CloseWhenSent();
  ASSERT_TRUE(this->Until([&] { return this->server.closed > 0 && this->client.closed > 0; }));
  EXPECT_TRUE(this->client.why.ok()) << this->client.why.message();
  ASSERT_EQ(this->server.messages.size(), 1u);
  EXPECT_EQ(this->server.messages[0].payload, "only");
}

TYPED_TEST(EveryCarrier, WhatWaitsIsBounded) {
  this->Connect();
  const std::string big = Pattern(4u << 20);
  Status last;
  int accepted = 0;
  while (accepted < 64 && (last = this->client.link->Send(1, big)).ok()) ++accepted;
  EXPECT_EQ(last.code(), Code::kLimit);
  EXPECT_LE(this->client.link->queued(), kMaxQueued);
  EXPECT_EQ(this->client.link->Send(1, std::string(kMaxMessage, 'x')).code(), Code::kLimit);
  // What was taken arrives, and then there is room again.
  ASSERT_TRUE(
      this->Until([&] { return static_cast<int>(this->server.messages.size()) == accepted; }));
  EXPECT_TRUE(this->client.link->Send(1, big).ok());
}

TYPED_TEST(EveryCarrier, ATooLongMessageClosesTheLink) {
  this->Connect();
  this->server.link->SetMaxMessage(100);
  ASSERT_TRUE(this->client.link->Send(1, std::string(99, 'x')).ok());
  ASSERT_TRUE(this->client.link->Send(1, std::string(100, 'x')).ok());
  ASSERT_TRUE(this->Until([&] { return this->server.closed > 0 && this->client.closed > 0; }));
  EXPECT_EQ(this->server.messages.size(), 1u);
  EXPECT_EQ(this->server.why.code(), Code::kCorrupt);
  EXPECT_THAT(std::string(this->server.why.message()),
              HasSubstr(fmt::format("a message of {} bytes", 101 + TypeParam::kOverhead)));
}

TYPED_TEST(EveryCarrier, ALinkTakesOnlyShortMessagesUnlessTold) {
  std::unique_ptr<Link> unproven;
  Status why;
  this->address = this->carrier.Listen([&](std::unique_ptr<Link> link) {
    link->SetHandler({{}, [&](const Status& status) { why = status; }});
    unproven = std::move(link);
  });
  this->client.Own(this->carrier.Connect(this->address));
  ASSERT_TRUE(this->client.link->Send(1, std::string(kMaxUnprovenMessage, 'x')).ok());
  ASSERT_TRUE(this->Until([&] { return !why.ok(); }));
  EXPECT_EQ(why.code(), Code::kCorrupt);
}

TYPED_TEST(EveryCarrier, AnIdleLinkNeverWakesTheLoop) {
  this->Connect();
  bool passed = false;
  this->loop.After(50 * kMillisecond, [&] { passed = true; });
  const uint64_t before = this->loop.wakeups();
  ASSERT_TRUE(this->Until([&] { return passed; }));
  EXPECT_LE(this->loop.wakeups() - before, TypeParam::kIdleWakeups);
}

// A process that connects, says hello and then what it reads back, until it is killed. It is this
// program anew: libfabric does not survive a fork.
template <typename Carrier>
[[noreturn]] void Echo(const std::string& address) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  Loop loop;
  Carrier carrier(loop);
  const auto link = carrier.Connect(address);
  link->SetHandler({[&](uint8_t type, std::string_view p) { (void)link->Send(type, p); },
                    [&](const Status&) { loop.Stop(); }});
  (void)link->Send(1, "hello");
  loop.Run();
  _exit(0);
}

constexpr const char* kEchoOver = "LINKS_TEST_ECHO_OVER";
constexpr const char* kEchoTo = "LINKS_TEST_ECHO_TO";

template <typename Carrier>
std::string CarrierName() {
  return typeid(Carrier).name();
}

const bool kEchoed = [] {
  const char* over = getenv(kEchoOver);
  const char* digits = getenv(kEchoTo);
  if (over == nullptr || digits == nullptr) return false;
  std::string address;
  for (const std::string text = digits; address.size() < text.size() / 2;) {
    address += static_cast<char>(std::stoi(text.substr(2 * address.size(), 2), nullptr, 16));
  }
  if (over == CarrierName<SocketCarrier>()) Echo<SocketCarrier>(address);
  if (over == CarrierName<SocketFabricCarrier>()) Echo<SocketFabricCarrier>(address);
  if (over == CarrierName<FabricCarrier<OverMsg>>()) Echo<FabricCarrier<OverMsg>>(address);
  if (over == CarrierName<FabricCarrier<OverRdm>>()) Echo<FabricCarrier<OverRdm>>(address);
  if (over == CarrierName<Sealing<SocketCarrier>>()) Echo<Sealing<SocketCarrier>>(address);
  if (over == CarrierName<Sealing<SocketFabricCarrier>>()) {
    Echo<Sealing<SocketFabricCarrier>>(address);
  }
  if (over == CarrierName<Sealing<FabricCarrier<OverMsg>>>()) {
    Echo<Sealing<FabricCarrier<OverMsg>>>(address);
  }
  if (over == CarrierName<Sealing<FabricCarrier<OverRdm>>>()) {
    Echo<Sealing<FabricCarrier<OverRdm>>>(address);
  }
  if (over == CarrierName<Sealing<FabricCarrier<OverPolledRdm>>>()) {
    Echo<Sealing<FabricCarrier<OverPolledRdm>>>(address);
  }
  Echo<FabricCarrier<OverPolledRdm>>(address);
}();

template <typename Carrier>
pid_t StartEcho(const std::string& address) {
  std::string digits;
  for (const char c : address) digits += fmt::format("{:02x}", static_cast<unsigned char>(c));
  const pid_t child = fork();
  if (child != 0) return child;
  setenv(kEchoOver, CarrierName<Carrier>().c_str(), 1);
  setenv(kEchoTo, digits.c_str(), 1);
  execl("/proc/self/exe", "links_test", nullptr);
  _exit(1);
}

TYPED_TEST(EveryCarrier, AKilledPeerIsNoticed) {
  if constexpr (!TypeParam::kProcesses) GTEST_SKIP() << "both ends are in one process";
  const pid_t child = StartEcho<TypeParam>(this->address);
  ASSERT_GE(child, 0);
  EXPECT_TRUE(this->Until([&] { return !this->server.messages.empty(); }));
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  ASSERT_TRUE(this->Until([&] { return this->server.closed > 0; }));
  EXPECT_THAT(std::string(this->server.why.message()), HasSubstr("127.0.0.1:"));
  EXPECT_EQ(this->server.closed, 1);
}

}  // namespace
}  // namespace sonde::tree
