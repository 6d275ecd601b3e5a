// What is particular to links over reliable datagrams, and which kind of endpoints is chosen.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstring>

#include "core/bytes.h"
#include "daemon/link/libfabric/fabric_info.h"
#include "daemon/link/libfabric/rdm_domain.h"
#include "daemon/link/libfabric/rdm_link.h"
#include "tests/unit/links_carriers.h"

namespace sonde::tree {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;

// Says one hello after the other, each of another link.
struct Hellos {
  RdmDomain& from;
  RdmDomain::Target to;
  std::string answer_at;
  size_t said = 0;

  // True once so many are said; false if it has to be tried again.
  bool Say(size_t number) {
    for (; said < number; ++said) {
      const RdmPacket hello{RdmKind::kHello, to.number, said + 1, 0, 0, {}};
      const auto taken = from.Send(to.peer, hello, answer_at);
      if (!taken.ok() || !*taken) return false;
    }
    return true;
  }
};

class Rdm : public testing::Test {
 protected:
  std::unique_ptr<Fabric> Open(const FabricOptions& options = OverPolledRdm::Options()) {
    auto opened = OpenFabric(loop, options);
    EXPECT_TRUE(opened.ok()) << opened.status().message();
    return *std::move(opened);
  }
  // The endpoints themselves, to say what no link would.
  std::shared_ptr<RdmDomain> OpenDomain(const FabricOptions& options = OverPolledRdm::Options()) {
    const auto library = FabricLibrary::Load();
    for (const std::string& provider : Fabric::Preference(options.provider)) {
      auto info = ChooseInfo(**library, Endpoint::kRdm, provider, options);
      if (!info.ok()) continue;
      auto domain = RdmDomain::Open(**library, options, *std::move(info));
      EXPECT_TRUE(domain.ok()) << domain.status().message();
      EXPECT_TRUE((*domain)->Attach(loop).ok());
      return *std::move(domain);
    }
    ADD_FAILURE() << "no provider with RDM endpoints";
    return nullptr;
  }
  std::string Listen(Fabric& fabric) {
    auto address = fabric.Listen([this](std::unique_ptr<Link> link) {
      accepted.emplace_back(std::make_unique<End>())->Own(std::move(link));
    });
    EXPECT_TRUE(address.ok()) << address.status().message();
    return *address;
  }
  void SayHello(Fabric& from, const std::string& address) {
    End end;
    const size_t before = accepted.size();
    auto link = from.Connect(address);
    ASSERT_TRUE(link.ok()) << link.status().message();
    end.Own(*std::move(link));
    ASSERT_TRUE(end.link->Send(1, "hello").ok());
    ASSERT_TRUE(Until([&] {
      return accepted.size() > before && !accepted.back()->messages.empty();
    })) << end.why.message();
  }
  bool Until(const std::function<bool()>& done) { return RunUntil(loop, done); }
  void Wait(Nanos time) {
    bool passed = false;
    loop.After(time, [&] { passed = true; });
    ASSERT_TRUE(Until([&] { return passed; }));
  }

  Loop loop;
  std::vector<std::unique_ptr<End>> accepted;
};

TEST_F(Rdm, AListenersFormerSelfIsRefused) {
  const auto here = Open();
  const auto there = Open();
  const std::string former = Listen(*there);
  const std::string address = Listen(*there);
  SayHello(*here, address);
  End end;
  auto link = here->Connect(former);
  ASSERT_TRUE(link.ok());
  end.Own(*std::move(link));
  ASSERT_TRUE(end.link->Send(1, "for somebody who is gone").ok());
  ASSERT_TRUE(Until([&] { return end.closed > 0; }));
  EXPECT_THAT(std::string(end.why.message()),
              AllOf(HasSubstr("127.0.0.1:"), HasSubstr("connect: refused")));
}

TEST_F(Rdm, NothingSpinsAndIdleLinksWakeSeldom) {
  const FabricOptions kinds[] = {OverPolledRdm::Options(), OverRdm::Options()};
  for (const FabricOptions& options : kinds) {
    SCOPED_TRACE(options.provider);
    const auto here = Open(options);
    const auto there = Open(options);
    const std::string address = Listen(*there);
    End end;
    end.Own(*here->Connect(address));
    ASSERT_TRUE(end.link->Send(1, "hello").ok());
    ASSERT_TRUE(Until([&] { return !accepted.empty() && !accepted.back()->messages.empty(); }));
    Wait(400 * kMillisecond);
    const uint64_t before = loop.wakeups();
    Wait(400 * kMillisecond);
    // Two endpoints that poll every 50 ms, a probe, and one look whether the descriptor serves.
    EXPECT_LE(loop.wakeups() - before, 2 * (8 + 10 + 50u));
    EXPECT_EQ(end.closed, 0);
    accepted.clear();
  }
}

// Not every provider counts how often it was given an address.
TEST_F(Rdm, ALinkStaysWhenAnotherOneToTheSamePeerEnds) {
  for (const char* provider : {"tcp;ofi_rxm", "net", "udp;ofi_rxd", "shm"}) {
    SCOPED_TRACE(provider);
    FabricOptions options = OverRdm::Options(provider);
    options.silence = 10 * kSecond;
    const auto library = FabricLibrary::Load();
    if (!ChooseInfo(**library, Endpoint::kRdm, provider, options).ok()) continue;
    const auto here = Open(options);
    const auto there = Open(options);
    const std::string address = Listen(*there);
    End stays;
    {
      SayHello(*here, address);
      stays.Own(*here->Connect(address));
      ASSERT_TRUE(stays.link->Send(1, "first").ok());
      ASSERT_TRUE(Until([&] { return accepted.size() == 2 && !accepted[1]->messages.empty(); }));
    }
    ASSERT_TRUE(Until([&] { return accepted[0]->closed > 0; }));
    Wait(RdmDomain::kFarewellLimit / 10);
    ASSERT_TRUE(stays.link->Send(1, "second").ok());
    ASSERT_TRUE(accepted[1]->link->Send(1, "answer").ok());
    EXPECT_TRUE(Until([&] {
      return stays.closed > 0 || (accepted[1]->messages.size() == 2 && !stays.messages.empty());
    }));
    EXPECT_EQ(stays.closed, 0) << stays.why.message();
    accepted.clear();
  }
}

TEST_F(Rdm, AnIdleLinkStays) {
  const auto here = Open();
  const auto there = Open();
  End end;
  end.Own(*here->Connect(Listen(*there)));
  ASSERT_TRUE(end.link->Send(1, "hello").ok());
  Wait(2 * kSecond);  // twice what a silent peer gets
  EXPECT_EQ(end.closed, 0) << end.why.message();
  ASSERT_EQ(accepted.size(), 1u);
  EXPECT_EQ(accepted[0]->closed, 0);
}

TEST_F(Rdm, AProviderWithoutADescriptorIsPolled) {
  FabricOptions options = OverPolledRdm::Options();
  options.provider = "udp;ofi_rxd";
  options.silence = 10 * kSecond;
  const auto here = Open(options);
  const auto there = Open(options);
  SayHello(*here, Listen(*there));
  const auto findings = Fabric::Examine(options);
  ASSERT_TRUE(findings.ok());
  EXPECT_THAT(findings->providers.front().text, HasSubstr("polled"));
}

TEST_F(Rdm, StrayPacketsLeaveNothingBehind) {
  const auto there = Open();
  const auto here = Open();
  const std::string address = Listen(*there);
  const auto stranger = OpenDomain();
  const auto target = stranger->TargetOf(address);
  ASSERT_TRUE(target.ok()) << target.status().message();
  size_t sent = 0;
  const auto send = [&] {
    for (; sent < 500; ++sent) {
      RdmPacket packet;
      packet.kind = static_cast<RdmKind>(2 + sent % 6);
      packet.to = sent;
      packet.from = sent * 3 + 1;
      const bool data = packet.kind == RdmKind::kData;
      const auto taken = stranger->Send(target->peer, packet, data ? "garbage" : "");
      if (!taken.ok() || !*taken) break;
    }
    return sent == 500;
  };
  ASSERT_TRUE(Until(send));
  SayHello(*here, address);
  EXPECT_EQ(accepted.size(), 1u);
}

TEST_F(Rdm, StrangersThatOnlyGreetKeepNobodyOut) {
  FabricOptions options = OverPolledRdm::Options();
  options.max_pending = 4;
  const auto there = OpenDomain(options);
  const auto address = there->Listen([this](std::unique_ptr<Link> link) {
    accepted.emplace_back(std::make_unique<End>())->Own(std::move(link));
  });
  ASSERT_TRUE(address.ok());
  const auto here = Open();
  const auto stranger = OpenDomain();
  const auto target = stranger->TargetOf(*address);
  ASSERT_TRUE(target.ok());
  Hellos hellos{*stranger, *target, stranger->own_address()};
  ASSERT_TRUE(Until([&] { return hellos.Say(20); }));
  ASSERT_TRUE(Until([&] { return there->pending() > 0; }));
  SayHello(*here, *address);
  EXPECT_EQ(accepted.size(), 1u) << "no stranger has answered";
  EXPECT_LE(there->pending(), options.max_pending);
  there->StopListening();  // strangers' links hold it
}

// Nobody answers there, so what is said to them last cannot be sent.
TEST_F(Rdm, StrangersThatAreNowhereKeepNobodyOut) {
  FabricOptions options = OverPolledRdm::Options();
  options.max_links = 4;
  options.max_pending = 2;
  const auto there = Open(options);
  const auto here = Open();
  const std::string address = Listen(*there);
  const auto stranger = OpenDomain();
  const auto target = stranger->TargetOf(address);
  ASSERT_TRUE(target.ok());
  std::string nowhere = stranger->own_address();
  nowhere[nowhere.size() - sizeof(sockaddr_in) + offsetof(sockaddr_in, sin_addr) + 3] = 99;
  Hellos hellos{*stranger, *target, nowhere};
  ASSERT_TRUE(Until([&] { return hellos.Say(40); }));
  const Nanos start = Clock::System().Monotonic();
  SayHello(*here, address);
  EXPECT_LT(Clock::System().Monotonic() - start, kSecond);
}

// Over providers that are made of TCP anybody can connect to the endpoint's port, listening or not.
TEST_F(Rdm, TheSilentAreShutOut) {
  for (const FabricOptions& options : {OverPolledRdm::Options(), OverRdm::Options()}) {
    SCOPED_TRACE(options.provider);
    const auto there = Open(options);
    const auto here = Open(options);
    const std::string address = Listen(*there);
    End end;
    auto link = here->Connect(address);
    ASSERT_TRUE(link.ok());
    end.Own(*std::move(link));
    ASSERT_TRUE(end.link->Send(1, "hello").ok());
    ASSERT_TRUE(Until([&] { return !accepted.empty(); }));
    sockaddr_in to{};
    ASSERT_EQ(address.size(), sizeof(uint32_t) + sizeof(uint64_t) + sizeof to);
    std::memcpy(&to, address.data() + sizeof(uint32_t) + sizeof(uint64_t), sizeof to);
    std::vector<UniqueFd> strangers;
    for (int i = 0; i < 300; ++i) {
      UniqueFd& fd = strangers.emplace_back(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
      ASSERT_EQ(connect(fd.get(), reinterpret_cast<const sockaddr*>(&to), sizeof to), 0);
      if (i % 2 == 0) (void)send(fd.get(), "\3", 1, MSG_NOSIGNAL);  // and no more
    }
    // So few are not looked at.
    const auto out = [&] {
      char byte = 0;
      return std::count_if(strangers.begin(), strangers.end(), [&](const UniqueFd& fd) {
               return recv(fd.get(), &byte, 1, MSG_DONTWAIT) != 0;
             }) < SilentConnections::kMore;
    };
    Loop::TimerId timer = 0;  // a daemon wakes up at every tick
    const std::function<void()> tick = [&] { timer = loop.After(100 * kMillisecond, tick); };
    tick();
    EXPECT_TRUE(Until(out));
    loop.Cancel(timer);
    EXPECT_EQ(end.closed, 0) << end.why.message();
    SayHello(*here, address);
    accepted.clear();
  }
}

// A link to nobody, to which the test says what a peer might.
class RdmPackets : public Rdm {
 protected:
  static constexpr uint64_t kPeer = 77;

  void SetUp() override {
    std::string nobody;
    {
      const auto gone = Open();
      nobody = Listen(*gone);
    }
    domain = OpenDomain();
    auto link = RdmLink::Connect(domain, nobody);
    ASSERT_TRUE(link.ok()) << link.status().message();
    raw = link->get();
    number = raw->number();
    end.Own(*std::move(link));
  }
  void Say(RdmKind kind, uint32_t sequence, std::string_view payload = {}, uint64_t from = kPeer) {
    raw->OnPacket({kind, number, from, sequence, 0, payload});
  }
  static std::string Bytes(const std::string& text) {
    std::string bytes;
    AppendMessage(1, text, bytes);
    return bytes;
  }
  std::vector<std::string> Heard() const {
    std::vector<std::string> heard;
    for (const Message& message : end.messages) heard.push_back(message.payload);
    return heard;
  }

  std::shared_ptr<RdmDomain> domain;
  End end;
  RdmLink* raw = nullptr;
  uint64_t number = 0;
};

TEST_F(RdmPackets, ArePutInOrderAndTakenOnce) {
  Say(RdmKind::kWelcome, 0);
  Say(RdmKind::kData, 2, Bytes("c"));
  Say(RdmKind::kData, 1, Bytes("b"));
  EXPECT_THAT(Heard(), IsEmpty());
  Say(RdmKind::kData, 0, Bytes("a"));
  Say(RdmKind::kData, 0, Bytes("a"));
  Say(RdmKind::kData, 2, Bytes("c"));
  EXPECT_EQ(Heard(), (std::vector<std::string>{"a", "b", "c"}));
  EXPECT_EQ(end.closed, 0);
}

TEST_F(RdmPackets, MayOvertakeTheWelcome) {
  Say(RdmKind::kData, 0, Bytes("a"));
  Say(RdmKind::kWelcome, 0);
  EXPECT_EQ(Heard(), (std::vector<std::string>{"a"}));
}

TEST_F(RdmPackets, OfOthersAreIgnored) {
  Say(RdmKind::kWelcome, 0);
  Say(RdmKind::kData, 0, Bytes("a"), kPeer + 1);
  Say(RdmKind::kGone, 0, {}, kPeer + 1);
  EXPECT_THAT(Heard(), IsEmpty());
  EXPECT_EQ(end.closed, 0);
}

TEST_F(RdmPackets, BeyondTheWindowCloseTheLink) {
  Say(RdmKind::kWelcome, 0);
  Say(RdmKind::kData, RdmLink::kWindow, Bytes("a"));
  EXPECT_EQ(end.closed, 1);
  EXPECT_EQ(end.why.code(), Code::kCorrupt);
}

TEST_F(RdmPackets, TheEndComesAfterAllThatWasSentBefore) {
  Say(RdmKind::kWelcome, 0);
  Say(RdmKind::kGone, 2);
  Say(RdmKind::kData, 1, Bytes("b"));
  EXPECT_EQ(end.closed, 0);
  Say(RdmKind::kData, 0, Bytes("a"));
  EXPECT_EQ(Heard(), (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(end.closed, 1);
}

TEST_F(RdmPackets, ALinkThatCannotDeliverIsClosed) {
  Say(RdmKind::kWelcome, 0);
  ASSERT_TRUE(end.link->Send(1, "to nobody").ok());
  // It is heard of all the time, but takes nothing.
  std::function<void()> chatter = [&] {
    Say(RdmKind::kAck, 0);
    loop.After(20 * kMillisecond, chatter);
  };
  chatter();
  ASSERT_TRUE(Until([&] { return end.closed > 0; }));
  EXPECT_EQ(end.why.code(), Code::kTimeout);
  EXPECT_THAT(std::string(end.why.message()), HasSubstr("nothing could be delivered for 1 s"));
}

TEST_F(RdmPackets, APeerThatIsSilentIsGivenUp) {
  Say(RdmKind::kWelcome, 0);
  ASSERT_TRUE(Until([&] { return end.closed > 0; }));
  EXPECT_EQ(end.why.code(), Code::kTimeout);
  EXPECT_THAT(std::string(end.why.message()), HasSubstr("nothing heard for 1 s"));
}

TEST(RdmPacket, OnlyWholeOnesAreTaken) {
  std::string bytes(kRdmHeader, '\0');
  const RdmPacket data{RdmKind::kData, 1, 2, 3, 4, {}};
  EncodeHeader(data, bytes.data());
  EXPECT_FALSE(DecodeRdmPacket(bytes)) << "data without data";
  bytes += "x";
  const auto packet = DecodeRdmPacket(bytes);
  ASSERT_TRUE(packet);
  EXPECT_EQ(packet->to, 1u);
  EXPECT_EQ(packet->from, 2u);
  EXPECT_EQ(packet->sequence, 3u);
  EXPECT_EQ(packet->acknowledged, 4u);
  EXPECT_EQ(packet->payload, "x");
  for (const size_t damaged : {0u, 4u, 5u, 7u}) {
    std::string bad = bytes;
    bad[damaged] = static_cast<char>(bad[damaged] ^ 0x40);
    EXPECT_FALSE(DecodeRdmPacket(bad)) << damaged;
  }
  EXPECT_FALSE(DecodeRdmPacket(bytes.substr(0, kRdmHeader - 1)));
  EXPECT_FALSE(DecodeRdmPacket(bytes + std::string(kRdmPacket, 'x')));
}

// --- Which provider, and which kind of endpoints

ProviderFinding FindingOf(const FabricOptions& options, const std::string& provider) {
  const auto findings = Fabric::Examine(options);
  EXPECT_TRUE(findings.ok());
  EXPECT_THAT(findings->library, HasSubstr("libfabric "));
  const auto& all = findings->providers;
  const auto found = std::find_if(
      all.begin(), all.end(), [&](const ProviderFinding& one) { return one.provider == provider; });
  return found == all.end() ? ProviderFinding{} : *found;
}

TEST(ChosenFabric, HasConnectionsWhereTheProviderOffersThem) {
  EXPECT_THAT(FindingOf({.provider = "tcp"}, "tcp").text, HasSubstr("FI_EP_MSG"));
  EXPECT_THAT(FindingOf({.provider = "udp;ofi_rxd"}, "udp;ofi_rxd").text, HasSubstr("FI_EP_RDM"));
}

TEST(ChosenFabric, IsTheFirstThatWorks) {
  const FabricOptions options{.provider = "warp,tcp,sockets"};
  EXPECT_THAT(FindingOf(options, "warp").text, HasSubstr("not found"));
  EXPECT_TRUE(FindingOf(options, "tcp").chosen);
  EXPECT_FALSE(FindingOf(options, "sockets").chosen);
  EXPECT_THAT(FindingOf(options, "sockets").text, HasSubstr("tcp is preferred"));
  EXPECT_THAT(FindingOf(options, "shm").text, HasSubstr("not asked for"));
  const FabricOptions anything{.provider = "auto"};
  EXPECT_TRUE(FindingOf(anything, "sockets").chosen) << "there is no fabric here";
}

TEST(ChosenFabric, IsOnTheInterfaceThatIsAskedFor) {
  for (const char* name : {"lo", "127.0.0.1"}) {
    const FabricOptions options{.provider = "tcp", .interface = name};
    EXPECT_THAT(FindingOf(options, "tcp").text, HasSubstr("at 127.0.0.1"));
  }
  const FabricOptions missing{.provider = "tcp", .interface = "ib7"};
  EXPECT_FALSE(FindingOf(missing, "tcp").chosen);
  EXPECT_THAT(FindingOf(missing, "tcp").text,
              AllOf(HasSubstr("no interface 'ib7'"), HasSubstr("lo")));
}

TEST(ChosenFabric, IsNotMixedWithOthers) {
  Loop loop;
  const auto msg = OpenFabric(loop, OverMsg::Options());
  const auto rdm = OpenFabric(loop, OverPolledRdm::Options());
  ASSERT_TRUE(msg.ok() && rdm.ok());
  const auto accept = [](std::unique_ptr<Link>) {};
  EXPECT_EQ((*msg)->Connect(*(*rdm)->Listen(accept)).status().code(), Code::kUnsupported);
  EXPECT_EQ((*rdm)->Connect(*(*msg)->Listen(accept)).status().code(), Code::kUnsupported);
}

}  // namespace
}  // namespace sonde::tree
