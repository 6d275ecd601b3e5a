// How daemons of two releases agree on a version: this program is linked with the next release's
// (tests/next_release/), which speaks 3 and also the version before.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "daemon/link/trust/auth.h"
#include "daemon/link/trust/handshake.h"
#include "daemon/link/trust/protocol.h"

namespace sonde::tree {
namespace {

using testing::HasSubstr;

const StepKey kStepKey{1, 2, 3};
const Channel kHead{};

struct Handshakes {
  ConnectingHandshake node{kStepKey, kHead, {.job = "12", .step = "0", .host = "n1"}};
  AcceptingHandshake head{kStepKey, kHead};
  Hello hello;
  Offer offer;

  // What the head makes of the node's hello, as `change` leaves it.
  Status Meet(const std::function<void(Hello&)>& change = nullptr) {
    SONDE_RETURN_IF_ERROR(Decode(node.Hello(), hello));
    if (change) change(hello);
    const auto step = head.OnMessage(static_cast<uint8_t>(Type::kHello), Encode(hello));
    if (!step.ok()) return step.status();
    return Decode(step->answer->payload, offer);
  }
  // Whether the node takes the head's offer.
  Status Take() {
    return node.OnMessage(static_cast<uint8_t>(Type::kOffer), Encode(offer)).status();
  }
};

TEST(NextRelease, SpeaksItsVersionWithItsLike) {
  Handshakes both;
  ASSERT_TRUE(both.Meet().ok());
  EXPECT_EQ(both.hello.version, 3u);
  EXPECT_EQ(both.offer.version, 3u);
  EXPECT_TRUE(both.Take().ok());
}

TEST(NextRelease, SpeaksTheVersionBeforeWithThatRelease) {
  Handshakes both;
  const auto hello_of_this_release = [](Hello& hello) { hello.version = 2; };
  ASSERT_TRUE(both.Meet(hello_of_this_release).ok());
  EXPECT_EQ(both.offer.version, 2u);

  // A head of this release, which has heard 3, answers 2.
  Handshaken said{3, both.hello.public_key, both.offer, ""};
  said.offer.proof = ProveOffer(kStepKey, said);
  both.offer = said.offer;
  EXPECT_TRUE(both.Take().ok());
}

// Somebody between two daemons of the next release would have them speak the version before.
TEST(NextRelease, NobodyMakesTwoOfThemSpeakLess) {
  Handshakes by_hello;
  ASSERT_TRUE(by_hello.Meet([](Hello& hello) { hello.version = 2; }).ok());
  EXPECT_EQ(by_hello.Take().code(), Code::kPermission);
  by_hello.offer.version = 3;
  EXPECT_EQ(by_hello.Take().code(), Code::kPermission) << "nor does he hide it";

  Handshakes by_offer;
  ASSERT_TRUE(by_offer.Meet().ok());
  by_offer.offer.version = 2;
  EXPECT_EQ(by_offer.Take().code(), Code::kPermission);
}

TEST(NextRelease, NamesAVersionThatIsTooOld) {
  Handshakes both;
  const Status refused = both.Meet([](Hello& hello) { hello.version = 1; });
  EXPECT_EQ(refused.code(), Code::kUnsupported);
  EXPECT_THAT(std::string(refused.message()), HasSubstr("speaks protocol 1, we speak 3"));
}

}  // namespace
}  // namespace sonde::tree
