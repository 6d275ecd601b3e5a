#include "daemon/node/ask/ask_desk.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "fake_clock.h"
#include "libclient/ask/bytes.h"
#include "libclient/sonde_query.h"

namespace sonde::node {
namespace {

using client::AskKind;
using client::Bytes;
using client::Packet;

struct Got {
  Packet head{};
  std::string body;
};

// A process that asks, as bytes; it may misbehave.
class Process {
 public:
  explicit Process(const std::string& socket_name) {
    const std::string name = socket_name + client::kAskSuffix;
    sockaddr_un address = {};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path + 1, name.data(), name.size());
    fd_ = UniqueFd(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0));
    const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
    EXPECT_EQ(connect(fd_.get(), reinterpret_cast<const sockaddr*>(&address), length), 0);
  }

  void Send(AskKind kind, uint64_t id, std::string_view body) const {
    const Packet head{id, static_cast<uint8_t>(kind), 0, 0, 0};
    std::string packet(reinterpret_cast<const char*>(&head), sizeof head);
    packet.append(body);
    SendRaw(packet);
  }
  void SendRaw(std::string_view packet) const {
    EXPECT_EQ(send(fd_.get(), packet.data(), packet.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(packet.size()));
  }
  void Hello() const {
    const client::AskHello hello = {client::kAskMagic, client::kAskVersion, 0};
    Send(AskKind::kHello, 0, {reinterpret_cast<const char*>(&hello), sizeof hello});
  }
  void Ask(AskKind kind, uint64_t id, const char* metric = "load") const {
    Bytes out;
    out.Text(metric);
    if (kind != AskKind::kList) {
      out.Text("avg");
      out.Text("");
      out.Fixed<uint8_t>(0);
      out.Varint(0);
      out.Signed(0);
      out.Signed(kSecond);
    }
    Send(kind, id, out.view());
  }

  bool readable() const {
    pollfd waited = {fd_.get(), POLLIN, 0};
    return poll(&waited, 1, 0) > 0;
  }
  // Nothing at the end of the connection.
  std::optional<Got> Take() const {
    std::string packet(client::kMaxPacket, '\0');
    const ssize_t got = recv(fd_.get(), packet.data(), packet.size(), 0);
    if (got < static_cast<ssize_t>(sizeof(Packet))) return {};
    Got taken;
    std::memcpy(&taken.head, packet.data(), sizeof taken.head);
    taken.body = packet.substr(sizeof(Packet), static_cast<size_t>(got) - sizeof(Packet));
    return taken;
  }
  void Close() { fd_.Reset(); }

 private:
  UniqueFd fd_;
};

class Desk : public testing::Test {
 protected:
  Desk() {
    options_.socket = "sonde-test/" + std::to_string(getpid()) + "/desk";
    options_.uid = geteuid();
    options_.level = 2;
  }
  void Open() {
    auto desk = AskDesk::Open(loop_, options_, [this](const tree::AskMessage& message) {
      if (connected_) up_.push_back(message);
      return connected_;
    });
    ASSERT_TRUE(desk.ok()) << desk.status().message();
    desk_ = *std::move(desk);
  }
  // Lets the loop work until that is so.
  void Until(const std::function<bool()>& so) {
    bool in_time = true;
    const Loop::TimerId guard = loop_.After(10 * kSecond, [&] {
      in_time = false;
      loop_.Stop();
    });
    std::function<void()> look = [&] {
      so() ? loop_.Stop() : (void)loop_.After(kMillisecond, look);
    };
    loop_.Post(look);
    loop_.Run();
    loop_.Cancel(guard);
    ASSERT_TRUE(in_time);
  }
  Got Next(const Process& process) {
    Until([&] { return process.readable(); });
    const std::optional<Got> got = process.Take();
    EXPECT_TRUE(got.has_value()) << "the desk has closed the connection";
    return got.value_or(Got{});
  }
  AskKind KindOf(const Got& got) { return static_cast<AskKind>(got.head.kind); }
  void ExpectClosed(const Process& process) {
    Until([&] { return process.readable(); });
    EXPECT_FALSE(process.Take().has_value());
  }
  std::unique_ptr<Process> Greeted() {
    auto process = std::make_unique<Process>(options_.socket);
    process->Hello();
    EXPECT_EQ(KindOf(Next(*process)), AskKind::kWelcome);
    return process;
  }
  void Answer(uint64_t number, AskKind kind, std::string body = "") {
    desk_->OnAnswer({number, static_cast<uint32_t>(kind), std::move(body)});
  }

  Loop loop_;
  AskDesk::Options options_;
  bool connected_ = true;
  std::vector<tree::AskMessage> up_;
  std::unique_ptr<AskDesk> desk_;
};

TEST_F(Desk, AnAnswerGoesToWhoeverAskedUnderItsOwnNumber) {
  Open();
  const auto first = Greeted(), second = Greeted();
  first->Ask(AskKind::kQuery, 7);
  second->Ask(AskKind::kList, 7);
  Until([&] { return up_.size() == 2; });
  EXPECT_NE(up_[0].id, up_[1].id);
  for (const tree::AskMessage& message : up_) {
    const bool list = message.kind == static_cast<uint32_t>(AskKind::kList);
    Answer(message.id, list ? AskKind::kListing : AskKind::kAnswer, list ? "list" : "values");
  }
  const Got values = Next(*first), list = Next(*second);
  EXPECT_EQ(values.head.id, 7u);
  EXPECT_EQ(KindOf(values), AskKind::kAnswer);
  EXPECT_EQ(values.body, "values");
  EXPECT_EQ(list.body, "list");
  EXPECT_EQ(desk_->open_questions(), 0u);
}

// The process asks by its machine's wall clock, which was set an hour forward.
TEST_F(Desk, AQuestionUntilNowIsByTheStepsTime) {
  FakeClock step;
  const Nanos wall = Clock::System().Now();
  step.time = wall - 3600 * kSecond;
  options_.clock = &step;
  Open();
  const auto process = Greeted();
  const auto ask = [&](uint64_t id, Nanos end) {
    Bytes out;
    for (const char* text : {"load", "avg", ""}) out.Text(text);
    out.Fixed<uint8_t>(0);
    out.Varint(0);
    out.Signed(end - 60 * kSecond);
    out.Signed(end);
    process->Send(AskKind::kQuery, id, out.view());
    Until([&] { return up_.size() == id; });
    const Result<QuerySpec> spec = DecodeQuery(up_.back().body);
    EXPECT_EQ(spec->end - spec->start, 60 * kSecond);
    return spec->end;
  };
  EXPECT_LT(std::abs(ask(1, wall) - step.time), 10 * kSecond);
  const Nanos of_an_answer = step.time - 60 * kSecond;
  EXPECT_EQ(ask(2, of_an_answer), of_an_answer);
}

TEST_F(Desk, ALongAnswerComesInPiecesThatFollowEachOther) {
  Open();
  const auto process = Greeted();
  process->Ask(AskKind::kQuery, 1);
  Until([&] { return up_.size() == 1; });
  std::string body(300'000, 'x');
  for (size_t i = 0; i < body.size(); ++i) body[i] = static_cast<char>(i * 7);
  Answer(up_[0].id, AskKind::kAnswer, body);
  std::string whole;
  for (bool more = true; more;) {
    const Got piece = Next(*process);
    EXPECT_EQ(piece.head.id, 1u);
    whole += piece.body;
    more = piece.head.more != 0;
  }
  EXPECT_EQ(whole, body);
}

TEST_F(Desk, WhatIsWrongIsToldAndTheConnectionStays) {
  Open();
  const auto process = Greeted();
  process->Ask(AskKind::kQuery, 3, "no name");
  const Got failed = Next(*process);
  EXPECT_EQ(KindOf(failed), AskKind::kFailed);
  EXPECT_EQ(failed.body[0], SONDE_INVALID);
  EXPECT_THAT(failed.body, testing::HasSubstr("'no name' is no metric name"));
  process->Ask(AskKind::kQuery, 4);
  Until([&] { return up_.size() == 1; });
}

TEST_F(Desk, WhoBreaksTheLayoutIsClosed) {
  Open();
  const std::function<void(const Process&)> ways[] = {
      [](const Process& p) { p.SendRaw("x"); },
      [](const Process& p) { p.Ask(AskKind::kQuery, 1); },  // without a hello
      [](const Process& p) { p.Send(AskKind::kHello, 0, "no hello at all.."); },
  };
  for (const auto& way : ways) {
    const Process process(options_.socket);
    way(process);
    Until([&] { return process.readable(); });
    while (const std::optional<Got> got = process.Take()) EXPECT_EQ(KindOf(*got), AskKind::kFailed);
  }
  const auto greeted = Greeted();
  greeted->Send(AskKind::kPoints, 1, "");
  ExpectClosed(*greeted);
  const auto twice = Greeted();
  twice->Ask(AskKind::kQuery, 1);
  twice->Ask(AskKind::kQuery, 1);
  ExpectClosed(*twice);
  EXPECT_EQ(desk_->connections(), 0u);
  EXPECT_EQ(desk_->open_questions(), 0u) << "what they asked is forgotten";
}

TEST_F(Desk, AnotherUserIsRefused) {
  options_.uid = geteuid() + 1;
  Open();
  const Process process(options_.socket);
  process.Hello();
  ExpectClosed(process);  // and no welcome
  EXPECT_EQ(desk_->connections(), 0u);
}

TEST_F(Desk, ConnectionsAndQuestionsAreBounded) {
  options_.max_connections = 2;
  options_.max_open = 3;
  options_.max_subscriptions = 2;
  Open();
  const auto first = Greeted(), second = Greeted();
  const Process third(options_.socket);
  ExpectClosed(third);
  for (uint64_t id = 1; id <= 4; ++id) first->Ask(AskKind::kQuery, id);
  const Got refused = Next(*first);
  EXPECT_EQ(refused.head.id, 4u);
  EXPECT_EQ(refused.body[0], SONDE_LIMIT);
  for (uint64_t id = 1; id <= 3; ++id) {
    second->Ask(AskKind::kSubscribe, id, ("m" + std::to_string(id)).c_str());
  }
  EXPECT_EQ(Next(*second).head.id, 3u);
  EXPECT_EQ(up_.size(), 5u);
}

TEST_F(Desk, SilentConnectionsDoNotKeepTheirPlace) {
  options_.hello_within = 20 * kMillisecond;
  Open();
  const Process process(options_.socket);
  ExpectClosed(process);
}

TEST_F(Desk, EqualSubscriptionsAreOneToTheHead) {
  Open();
  const auto first = Greeted(), second = Greeted();
  first->Ask(AskKind::kSubscribe, 1);
  Until([&] { return up_.size() == 1; });
  Answer(up_[0].id, AskKind::kAccepted);
  EXPECT_EQ(KindOf(Next(*first)), AskKind::kAccepted);
  second->Ask(AskKind::kSubscribe, 9);
  EXPECT_EQ(KindOf(Next(*second)), AskKind::kAccepted);
  EXPECT_EQ(up_.size(), 1u);
  Answer(up_[0].id, AskKind::kPoints, "tick");
  EXPECT_EQ(Next(*first).body, "tick");
  EXPECT_EQ(Next(*second).head.id, 9u);
  // The last one that leaves ends it.
  first->Send(AskKind::kCancel, 1, "");
  Answer(up_[0].id, AskKind::kPoints, "tock");
  EXPECT_EQ(Next(*second).body, "tock");
  second->Close();
  Until([&] { return up_.size() == 2; });
  EXPECT_EQ(up_[1].kind, static_cast<uint32_t>(AskKind::kCancel));
  EXPECT_EQ(up_[1].id, up_[0].id);
  EXPECT_EQ(desk_->open_questions(), 0u);
}

TEST_F(Desk, ValuesThatAreNotReadAreLeftOutAndCounted) {
  options_.max_queued_values = 100'000;
  Open();
  const auto process = Greeted();
  process->Ask(AskKind::kSubscribe, 1);
  Until([&] { return up_.size() == 1; });
  Answer(up_[0].id, AskKind::kAccepted);
  Next(*process);
  constexpr uint32_t kTicks = 100;
  for (uint32_t i = 0; i < kTicks; ++i) {
    Answer(up_[0].id, AskKind::kPoints, std::string(20'000, 'v'));
  }
  uint32_t read = 0;
  for (; process->readable(); ++read) Next(*process);
  EXPECT_LT(read, kTicks);
  Answer(up_[0].id, AskKind::kPoints, "newest");
  const Got newest = Next(*process);
  EXPECT_EQ(newest.body, "newest");
  EXPECT_EQ(newest.head.missed, kTicks - read);
}

TEST_F(Desk, WhoDoesNotReadAnswersIsClosed) {
  options_.max_queued = 1u << 20;
  options_.max_open = 100;
  Open();
  const auto process = Greeted();
  for (uint64_t id = 1; id <= 10; ++id) process->Ask(AskKind::kQuery, id);
  Until([&] { return up_.size() == 10; });
  for (const tree::AskMessage& message : up_) {
    Answer(message.id, AskKind::kAnswer, std::string(400'000, 'v'));
  }
  Until([&] { return desk_->connections() == 0; });
}

TEST_F(Desk, AQuestionWaitsForTheWayUpAndFailsWhenItIsGone) {
  connected_ = false;
  Open();
  const auto process = Greeted();
  process->Ask(AskKind::kQuery, 1);
  process->Ask(AskKind::kSubscribe, 2);
  Until([&] { return desk_->open_questions() == 2; });
  connected_ = true;
  desk_->Connected();
  EXPECT_EQ(up_.size(), 2u);
  desk_->Disconnected("the head is gone");
  for (int i = 0; i < 2; ++i) {
    const Got failed = Next(*process);
    EXPECT_EQ(KindOf(failed), AskKind::kFailed);
    EXPECT_EQ(failed.body[0], SONDE_LOST);
    EXPECT_THAT(failed.body, testing::HasSubstr("the head is gone"));
  }
}

TEST_F(Desk, AQuestionWithoutAnAnswerFailsInTime) {
  options_.patience = 20 * kMillisecond;
  Open();
  const auto process = Greeted();
  process->Ask(AskKind::kQuery, 1);
  const Got failed = Next(*process);
  EXPECT_EQ(failed.body[0], SONDE_TIMEOUT);
  Answer(up_[0].id, AskKind::kAnswer, "too late");
  EXPECT_FALSE(process->readable());
}

}  // namespace
}  // namespace sonde::node
