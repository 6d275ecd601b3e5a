#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "daemon/link/send.h"
#include "daemon/link/trust/acceptor.h"
#include "daemon/node/links/head_link.h"
#include "tests/unit/links_carriers.h"

namespace sonde::node {
namespace {

using tree::Type;

StepKey KeyOf(unsigned char fill) {
  StepKey key;
  key.fill(fill);
  return key;
}

// A head that drops the first connections that come, and welcomes the others that have its key.
class HeadLinks : public testing::Test, private HeadLink::Owner {
 protected:
  tree::Registration registration() const override { return {.nodes = nodes_, .host = "n1"}; }
  void OnWelcome(const tree::Welcome& welcome, Nanos /*waited*/) override {
    index_ = welcome.index;
  }
  void OnHeadMessage(Type /*type*/, std::string_view /*payload*/) override {}
  void OnHeadLost(tree::Link& /*link*/, const Status& /*why*/) override {}
  void OnNoHead(const Status& why) override { ended_ = why.message(); }
  void OnOver() override { ended_ = "the step is over"; }
  bool IsSuspended() const override { return suspended_; }
  void Note(std::string /*text*/) override {}
  bool BecomeHead() override {
    ++became_head_;
    return false;
  }

  void Listen(int drop) {
    auto opened = tree::Listener::Open(loop_, "127.0.0.1", {0, 0},
                                       [this, drop](std::unique_ptr<tree::SocketLink> link) {
                                         if (++came_ > drop) return acceptor_.Take(std::move(link));
                                         tree::DestroyLater(loop_, std::move(link));
                                       });
    ASSERT_TRUE(opened.ok()) << opened.status().message();
    listener_ = *std::move(opened);
  }
  void Welcome(std::unique_ptr<tree::Link> link) {
    Send(*link, Type::kWelcome, Encode(tree::Welcome{.index = 7}));
    links_.push_back(std::move(link));
  }
  HeadLink Node(const StepKey& key) { return {loop_, key, *this}; }
  void RunUntilKnown() {
    EXPECT_TRUE(tree::RunUntil(loop_, [this] { return index_.has_value() || ended_.has_value(); }));
  }

  Loop loop_;
  int came_ = 0;
  bool suspended_ = false;
  int became_head_ = 0;
  uint32_t nodes_ = 1;
  std::optional<uint32_t> index_;
  std::optional<std::string> ended_;
  std::vector<std::unique_ptr<tree::Link>> links_;
  tree::Acceptor acceptor_{loop_, KeyOf(1), tree::Channel(),
                           [this](const tree::Registration&, std::unique_ptr<tree::Link> link) {
                             Welcome(std::move(link));
                           }};
  std::unique_ptr<tree::Listener> listener_;
};

TEST_F(HeadLinks, AFirstConnectionThatFailsIsMadeAgain) {
  Listen(2);
  HeadLink node = Node(KeyOf(1));
  node.Connect("127.0.0.1", listener_->port());
  RunUntilKnown();
  EXPECT_EQ(index_, 7u);
  EXPECT_EQ(came_, 3);
}

// Whoever answers there has proved nothing yet.
TEST_F(HeadLinks, BeforeTheProofALongMessageIsNotTaken) {
  auto opened =
      tree::Listener::Open(loop_, "127.0.0.1", {0, 0}, [&](std::unique_ptr<tree::SocketLink> link) {
        Send(*link, Type::kOffer, std::string(tree::kMaxUnprovenMessage, 'x'));
        links_.push_back(std::move(link));
      });
  ASSERT_TRUE(opened.ok()) << opened.status().message();
  HeadLink node = Node(KeyOf(1));
  node.Connect("127.0.0.1", (*opened)->port());
  RunUntilKnown();
  ASSERT_TRUE(ended_.has_value());
  EXPECT_NE(ended_->find("at most 4096 are taken"), std::string::npos) << *ended_;
}

// One bit of a handshake that somebody changes looks the same.
TEST_F(HeadLinks, WithAnotherKeyItEndsWhenAFirstConnectionHasHadItsTime) {
  Listen(0);
  HeadLink node = Node(KeyOf(2));
  node.Connect("127.0.0.1", listener_->port());
  RunUntilKnown();
  EXPECT_EQ(ended_, "the peer does not know the step's key");
  EXPECT_GT(came_, 10);
}

TEST_F(HeadLinks, AFirstHandshakeThatWasChangedIsMadeAgain) {
  int changed = 0;
  auto opened =
      tree::Listener::Open(loop_, "127.0.0.1", {0, 0}, [&](std::unique_ptr<tree::SocketLink> link) {
        if (++changed > 3) return acceptor_.Take(std::move(link));
        Send(*link, Type::kOffer, changed == 2 ? "nonsense" : Encode(tree::Offer{.version = 1}));
        links_.push_back(std::move(link));
      });
  ASSERT_TRUE(opened.ok()) << opened.status().message();
  HeadLink node = Node(KeyOf(1));
  node.Connect("127.0.0.1", (*opened)->port());
  RunUntilKnown();
  EXPECT_EQ(index_, 7u);
  EXPECT_EQ(changed, 4);
}

TEST_F(HeadLinks, WhereNobodyListensItGivesUpInTheEnd) {
  Listen(0);
  const uint16_t port = listener_->port();
  listener_.reset();
  HeadLink node = Node(KeyOf(1));
  const Nanos start = Clock::System().Monotonic();
  node.Connect("127.0.0.1", port);
  RunUntilKnown();
  EXPECT_TRUE(ended_.has_value());
  EXPECT_GE(Clock::System().Monotonic() - start, HeadLink::kGiveUpFirst);
}

// Ten thousand that came in one moment would wait for each other until they give up.
TEST_F(HeadLinks, NodesOfALargeStepComeToASuccessorOneAfterTheOther) {
  constexpr uint32_t kOwn = 5000;
  nodes_ = 10'000;
  Listen(0);
  HeadLink node = Node(KeyOf(1));
  node.Connect("127.0.0.1", listener_->port());
  RunUntilKnown();
  Nanos came = 0;
  const tree::Channel place{tree::Channel::Purpose::kControl, 0, ""};
  tree::Acceptor acceptor(loop_, KeyOf(1), place,
                          [this](const tree::Registration&, std::unique_ptr<tree::Link> link) {
                            Welcome(std::move(link));
                          });
  auto successor =
      tree::Listener::Open(loop_, "127.0.0.1", {0, 0}, [&](std::unique_ptr<tree::SocketLink> link) {
        came = Clock::System().Monotonic();
        acceptor.Take(std::move(link));
      });
  ASSERT_TRUE(successor.ok());
  node.SetSuccessors({{.index = 0, .host = "127.0.0.1", .port = (*successor)->port()}}, kOwn);
  index_.reset();
  listener_.reset();
  const Nanos died = Clock::System().Monotonic();
  links_.clear();
  RunUntilKnown();
  EXPECT_TRUE(index_.has_value()) << *ended_;
  EXPECT_GE(came - died, kOwn * HeadLink::kEachNode);
}

// It has many others to answer.
TEST_F(HeadLinks, ASuccessorInALargeStepHasLongerToAnswer) {
  nodes_ = 1000;
  Listen(0);
  HeadLink node = Node(KeyOf(1));
  node.Connect("127.0.0.1", listener_->port());
  RunUntilKnown();
  std::vector<Nanos> came;
  auto busy =
      tree::Listener::Open(loop_, "127.0.0.1", {0, 0}, [&](std::unique_ptr<tree::SocketLink> link) {
        came.push_back(Clock::System().Monotonic());
        links_.push_back(std::move(link));
      });
  ASSERT_TRUE(busy.ok());
  node.SetSuccessors({{.index = 0, .host = "127.0.0.1", .port = (*busy)->port()}}, 1);
  listener_.reset();
  links_.clear();
  ASSERT_TRUE(tree::RunUntil(loop_, [&] { return came.size() == 2; }));
  EXPECT_GE(came[1] - came[0], HeadLink::kAnswer + nodes_ * HeadLink::kAnswerEach);
}

// It begins before the others come.
TEST_F(HeadLinks, TheSuccessorItselfWaitsForNobody) {
  nodes_ = 10'000'000;
  Listen(0);
  HeadLink node = Node(KeyOf(1));
  node.Connect("127.0.0.1", listener_->port());
  RunUntilKnown();
  node.SetSuccessors({{.index = 9'000'000, .host = "127.0.0.1", .port = 9}}, 9'000'000);
  listener_.reset();
  links_.clear();
  bool others_turn = false;
  loop_.After(HeadLink::kAllNodes / 2, [&] { others_turn = true; });
  EXPECT_TRUE(tree::RunUntil(loop_, [this] { return became_head_ > 0; }));
  EXPECT_FALSE(others_turn);
}

// Its head is frozen with the job, or dead: nobody can tell until the job goes on.
// Two heads that have the step at a time name different nodes, and only those of their own.
TEST_F(HeadLinks, AnActingHeadIsToldWhereAllStoodByThatComeBeforeItsNode) {
  using Ports = std::vector<std::pair<uint32_t, uint16_t>>;
  Listen(0);
  HeadLink node = Node(KeyOf(1));
  node.Connect("127.0.0.1", listener_->port());
  RunUntilKnown();
  const auto before = [&] {
    Ports ports;
    for (const tree::Place& place : node.PlacesBefore())
      ports.emplace_back(place.index, place.port);
    return ports;
  };
  node.SetSuccessors({{0, "10.0.0.1", 40}, {2, "10.0.0.3", 42}, {3, "10.0.0.4", 43}}, 3);
  EXPECT_EQ(before(), (Ports{{0, 40}, {2, 42}}));
  // One that acts is named first; the other one may act, too.
  node.SetSuccessors({{4, "10.0.0.5", 44}, {2, "10.0.0.3", 52}, {3, "10.0.0.4", 43}}, 3);
  EXPECT_EQ(before(), (Ports{{0, 40}, {2, 52}}));
  node.SetSuccessors({{1, "127.0.0.1", listener_->port()}, {3, "10.0.0.4", 43}}, 3);
  EXPECT_EQ(before(), (Ports{{0, 40}, {2, 52}})) << "the head that is lost yields to this one";
  std::vector<tree::Place> many;
  for (uint32_t i = 0; i < 2 * tree::kMaxSuccessors; ++i) many.push_back({i + 100, "10.0.0.9", 1});
  node.SetSuccessors(many, 200);
  EXPECT_EQ(before().size(), tree::kMaxSuccessors - 1) << "of 8 places, one is the head's";
}

TEST_F(HeadLinks, WhileTheJobIsSuspendedNobodyGoesPastTheHead) {
  Listen(0);
  HeadLink node = Node(KeyOf(1));
  const uint16_t port = listener_->port();
  node.Connect("127.0.0.1", port);
  RunUntilKnown();
  node.SetSuccessors({{.index = 7, .host = "127.0.0.1", .port = port}}, 7);
  suspended_ = true;
  listener_.reset();  // refuses from now on, as a dead head's host does
  links_.clear();
  loop_.After(2 * HeadLink::kPauseSuspended, [this] { loop_.Stop(); });
  loop_.Run();
  EXPECT_EQ(became_head_, 0);
  EXPECT_EQ(ended_, std::nullopt);
  suspended_ = false;
  EXPECT_TRUE(tree::RunUntil(loop_, [this] { return became_head_ > 0; }));
}

}  // namespace
}  // namespace sonde::node
