// How a head finds that another one acts in its place: over real connections on the loopback.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "daemon/head/registry/rivals.h"
#include "daemon/link/listener.h"
#include "daemon/link/trust/acceptor.h"
#include "daemon/message/places.h"

namespace sonde::head::head_rivals_test {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr const char* kLoopback = "127.0.0.1";

StepKey KeyOf(char byte) {
  StepKey key;
  key.fill(static_cast<StepKey::value_type>(byte));
  return key;
}

class RivalsTest : public testing::Test {
 protected:
  // The socket of a node that stands by: it listens, and nobody is let in.
  UniqueFd Stand() {
    Result<UniqueFd> fd = tree::ListenAt(kLoopback, {});
    EXPECT_TRUE(fd.ok()) << fd.status().message();
    return *std::move(fd);
  }
  static tree::Place PlaceOf(uint32_t node, const UniqueFd& fd) {
    return {node, kLoopback, tree::PortOf(tree::LocalAddress(fd.get()))};
  }
  // That node's acting head.
  void Act(UniqueFd fd, const StepKey& key, uint32_t node = 3) {
    acceptor_ = std::make_unique<tree::Acceptor>(
        loop_, key,
        tree::Channel{.purpose = tree::Channel::Purpose::kControl, .acceptor = node, .address = ""},
        [this](const tree::Registration&, std::unique_ptr<tree::Link>) { ++nodes_; });
    auto listener =
        tree::Listener::Adopt(loop_, std::move(fd), [this](std::unique_ptr<tree::SocketLink> link) {
          ++taken_;
          acceptor_->Take(std::move(link));
          if (taken_ == stop_at_) loop_.Stop();
        });
    ASSERT_TRUE(listener.ok()) << listener.status().message();
    listener_ = *std::move(listener);
  }
  void Run() {
    bool late = false;
    const Loop::TimerId limit = loop_.After(30 * kSecond, [&] {
      late = true;
      loop_.Stop();
    });
    loop_.Run();
    loop_.Cancel(limit);
    EXPECT_FALSE(late);
  }
  // Whatever is under way on the loopback by now is through.
  void Settle() {
    loop_.After(50 * kMillisecond, [this] { loop_.Stop(); });
    loop_.Run();
  }

  Loop loop_;
  const StepKey key_ = KeyOf('k');
  std::vector<uint32_t> found_;
  std::unique_ptr<tree::Acceptor> acceptor_;
  std::unique_ptr<tree::Listener> listener_;
  int taken_ = 0, nodes_ = 0, stop_at_ = 0;
  Rivals rivals_{loop_, key_, [this](const tree::Place& place) {
                   found_.push_back(place.index);
                   loop_.Stop();
                 }};
};

TEST_F(RivalsTest, ANodeThatStandsByIsNoneUntilItActs) {
  UniqueFd fd = Stand();
  rivals_.Watch(PlaceOf(3, fd));
  Settle();
  EXPECT_THAT(found_, IsEmpty());
  Act(std::move(fd), key_);
  Run();
  EXPECT_THAT(found_, ElementsAre(3));
  EXPECT_EQ(taken_, 1) << "over the connection that waited for it";
  Settle();
  EXPECT_EQ(nodes_, 0) << "this head is no node of the other one";
}

TEST_F(RivalsTest, AHostThatRefusesIsAskedAgain) {
  UniqueFd fd = Stand();
  const tree::Place place = PlaceOf(3, fd);
  fd.Reset();
  rivals_.Watch(place);
  Settle();
  EXPECT_THAT(found_, IsEmpty());
  Result<UniqueFd> again = tree::ListenAt(kLoopback, {place.port, place.port});
  ASSERT_TRUE(again.ok()) << again.status().message();
  Act(*std::move(again), key_);
  Run();
  EXPECT_THAT(found_, ElementsAre(3));
}

TEST_F(RivalsTest, WhoeverHasNotTheKeyIsNone) {
  UniqueFd fd = Stand();
  rivals_.Watch(PlaceOf(3, fd));
  stop_at_ = 2;  // it has come again, after an answer that proves nothing
  Act(std::move(fd), KeyOf('x'));
  Run();
  EXPECT_THAT(found_, IsEmpty());
}

TEST_F(RivalsTest, ANodeThatIsBackIsForgotten) {
  UniqueFd first = Stand(), second = Stand();
  rivals_.Watch(PlaceOf(3, first));
  rivals_.Watch(PlaceOf(4, second));
  rivals_.Forget(4);
  Act(std::move(second), key_, 4);
  Settle();
  EXPECT_THAT(found_, IsEmpty());
  Act(std::move(first), key_);
  Run();
  EXPECT_THAT(found_, ElementsAre(3));
}

// Of an acting head's launch message.
TEST(Places, AreReadBackAndWhatIsNoneIsLeftOut) {
  const std::string text = tree::ToText({{0, "10.0.0.2", 40000}, {7, "fe80::1", 1}});
  EXPECT_EQ(tree::ToText(tree::PlacesOf(text)), text);
  EXPECT_EQ(tree::PlacesOf(text).size(), 2u);
  EXPECT_THAT(tree::PlacesOf(""), IsEmpty());
  EXPECT_EQ(tree::ToText(
                tree::PlacesOf("x y z,1 h 2,-1 h 2,1 h 70000,1 h 0,1  2,1 h,1 h x,1 h 2 6,,2 i 3")),
            "1 h 2,2 i 3");
  std::string many;
  for (int i = 0; i < 100; ++i) many += "1 h 2,";
  EXPECT_EQ(tree::PlacesOf(many).size(), tree::kMaxSuccessors);
}

}  // namespace
}  // namespace sonde::head::head_rivals_test
