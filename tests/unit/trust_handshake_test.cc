#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "daemon/link/trust/auth.h"
#include "daemon/link/trust/handshake.h"
#include "daemon/link/trust/key_exchange.h"
#include "daemon/link/trust/protocol.h"

namespace sonde::tree {
namespace {

using testing::HasSubstr;
using testing::Not;
using Purpose = Channel::Purpose;

StepKey KeyOf(unsigned char fill) {
  StepKey key;
  key.fill(fill);
  return key;
}

Registration Node3() {
  return {.job = "12", .step = "0", .node_id = 3, .nodes = 4, .tasks = 2, .host = "host-of-node-3"};
}

const Channel kParent{Purpose::kChild, 5, "tcp:127.0.0.1:60000"};

constexpr auto kHello = static_cast<uint8_t>(Type::kHello);
constexpr auto kOffer = static_cast<uint8_t>(Type::kOffer);

struct Said {
  uint8_t type;
  std::string payload;
};

// What becomes of a connection between the two when `middle` has its hands on each message.
struct Meeting {
  using Middle = std::function<void(int number, Said& said)>;

  Meeting(const Channel& wanted, const Channel& found, const Middle& middle = nullptr)
      : connecting(KeyOf(1), wanted, Node3()), accepting(KeyOf(1), found) {
    Run(middle);
  }
  void Run(const Middle& middle) {
    Said hello{kHello, connecting.Hello()};
    if (middle) middle(0, hello);
    Result<HandshakeStep> offered = accepting.OnMessage(hello.type, hello.payload);
    if (!offered.ok()) return Fail(offered.status());
    Said offer{static_cast<uint8_t>(offered->answer->type), offered->answer->payload};
    if (middle) middle(1, offer);
    Result<HandshakeStep> entered = connecting.OnMessage(offer.type, offer.payload);
    if (!entered.ok()) return Fail(entered.status());
    connecting_seals = std::move(entered->seals);
    Said entry{static_cast<uint8_t>(entered->answer->type), entered->answer->payload};
    if (middle) middle(2, entry);
    Result<HandshakeStep> proven = accepting.OnMessage(entry.type, entry.payload);
    if (!proven.ok()) return Fail(proven.status());
    accepting_seals = std::move(proven->seals);
  }
  void Fail(const Status& status) {
    code = status.code();
    why = status.message();
  }

  ConnectingHandshake connecting;
  AcceptingHandshake accepting;
  std::optional<LinkSeals> connecting_seals;
  std::optional<LinkSeals> accepting_seals;
  Code code = Code::kOk;
  std::string why;
};

bool Reaches(SealedStream& from, SealedStream& to) {
  std::string sealed(5 + kSealOverhead, '\0');
  from.Seal(21, "frame", sealed.data());
  from.Next();
  std::string room(sealed.size(), '\0');
  const auto message = to.Open(sealed, room.data());
  return message && message->type == 21 && message->payload == "frame";
}

TEST(Handshake, BothSidesProveTheKeyAndSealFromThenOn) {
  Meeting meeting(kParent, kParent);
  EXPECT_EQ(meeting.why, "");
  ASSERT_TRUE(meeting.accepting.proven());
  EXPECT_EQ(meeting.accepting.registration().host, "host-of-node-3");
  EXPECT_EQ(meeting.accepting.registration().node_id, 3u);
  ASSERT_TRUE(meeting.connecting_seals && meeting.accepting_seals);
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(Reaches(meeting.connecting_seals->send, meeting.accepting_seals->receive));
    EXPECT_TRUE(Reaches(meeting.accepting_seals->send, meeting.connecting_seals->receive));
  }
  // What comes back from where it was sent to is not opened.
  EXPECT_FALSE(Reaches(meeting.connecting_seals->send, meeting.connecting_seals->receive));
}

TEST(Handshake, NobodyOnTheWaySeesWhoConnects) {
  std::string all;
  const Meeting meeting(kParent, kParent, [&](int, const Said& said) { all += said.payload; });
  ASSERT_TRUE(meeting.accepting.proven());
  EXPECT_THAT(all, Not(HasSubstr("host-of")));
}

// Nor does who learns the step's key, before or after, and has heard everything.
TEST(Handshake, WhoKnowsTheStepsKeyAndListensReadsNothing) {
  std::vector<Said> heard;
  Meeting meeting(kParent, kParent, [&](int, const Said& said) { heard.push_back(said); });
  ASSERT_TRUE(meeting.accepting.proven());
  Hello hello;
  Handshaken said{0, "", {}, kParent.address};
  ASSERT_TRUE(Decode(heard[0].payload, hello).ok());
  ASSERT_TRUE(Decode(heard[1].payload, said.offer).ok());
  Entry entry;
  ASSERT_TRUE(Decode(heard[2].payload, entry).ok());
  said.hello_version = hello.version;
  said.connecting_key = hello.public_key;
  ASSERT_EQ(said.offer.proof, ProveOffer(KeyOf(1), said)) << "the listener has the step's key";
  SharedSecret secrets[3];  // what a listener might take for it
  std::memcpy(secrets[1].bytes.data(), hello.public_key.data(), kPublicKeySize);
  std::memcpy(secrets[2].bytes.data(), said.offer.public_key.data(), kPublicKeySize);
  for (const SharedSecret& secret : secrets) {
    LinkSeals listeners = DeriveSeals(KeyOf(1), secret, said, Side::kAccepting);
    std::string room(entry.sealed.size(), '\0');
    EXPECT_FALSE(listeners.receive.Open(entry.sealed, room.data()));
  }
}

TEST(KeyExchange, GivesBothTheSameAndNobodyElse) {
  const KeyExchange one;
  const KeyExchange other;
  const KeyExchange listener;
  const auto secret = one.Agree(other.public_key());
  ASSERT_TRUE(secret);
  EXPECT_EQ(secret->bytes, other.Agree(one.public_key())->bytes);
  EXPECT_NE(secret->bytes, listener.Agree(one.public_key())->bytes);
  EXPECT_NE(secret->bytes, listener.Agree(other.public_key())->bytes);
  EXPECT_NE(one.public_key(), other.public_key());
}

// With these keys everybody knows the secret (RFC 7748, 6.1).
TEST(KeyExchange, TakesNoKeyOfSmallOrder) {
  std::string one(kPublicKeySize, '\0');
  one[0] = 1;
  std::string p(kPublicKeySize, '\xff');  // 2^255 - 19, which is 0
  p[0] = '\xed';
  p[31] = '\x7f';
  for (const std::string& key : {std::string(kPublicKeySize, '\0'), one, p}) {
    EXPECT_FALSE(KeyExchange().Agree(key));
    AcceptingHandshake head(KeyOf(1), kParent);
    ASSERT_TRUE(head.OnMessage(kHello, Encode(Hello{2, key})).ok());
    const Entry entry{std::string(100, 'x')};
    EXPECT_EQ(head.OnMessage(static_cast<uint8_t>(Type::kEntry), Encode(entry)).status().code(),
              Code::kCorrupt);
  }
  for (const size_t size : {0u, 31u, 33u, 64u}) {
    EXPECT_FALSE(KeyExchange().Agree(std::string(size, 'x')));
    AcceptingHandshake head(KeyOf(1), kParent);
    EXPECT_EQ(head.OnMessage(kHello, Encode(Hello{2, std::string(size, 'x')})).status().code(),
              Code::kCorrupt);
  }
}

TEST(Handshake, EveryConnectionHasKeysOfItsOwn) {
  Meeting one(kParent, kParent);
  Meeting other(kParent, kParent);
  EXPECT_FALSE(Reaches(one.connecting_seals->send, other.accepting_seals->receive));
}

TEST(Handshake, AWrongKeyIsRefusedByEitherSide) {
  const ConnectingHandshake node(KeyOf(1), kParent, Node3());
  AcceptingHandshake wrong(KeyOf(2), kParent);
  const auto offer = wrong.OnMessage(kHello, node.Hello());
  ASSERT_TRUE(offer.ok());
  const auto refused = node.OnMessage(static_cast<uint8_t>(Type::kOffer), offer->answer->payload);
  EXPECT_EQ(refused.status().code(), Code::kPermission);

  // A stranger has nothing that it can seal with, whatever it is told.
  AcceptingHandshake head(KeyOf(1), kParent);
  ASSERT_TRUE(head.OnMessage(kHello, Encode(Hello{2, KeyExchange().public_key()})).ok());
  const Entry guess{std::string(100, 'x')};
  EXPECT_EQ(head.OnMessage(static_cast<uint8_t>(Type::kEntry), Encode(guess)).status().code(),
            Code::kPermission);
  EXPECT_FALSE(head.proven());
}

TEST(Handshake, AnEntryIsGoodForOneConnection) {
  std::string entry;
  const Meeting meeting(kParent, kParent, [&](int number, const Said& said) {
    if (number == 2) entry = said.payload;
  });
  AcceptingHandshake again(KeyOf(1), kParent);
  ASSERT_TRUE(again.OnMessage(kHello, meeting.connecting.Hello()).ok());
  EXPECT_FALSE(again.OnMessage(static_cast<uint8_t>(Type::kEntry), entry).ok());
  EXPECT_FALSE(again.proven());
}

// Whoever leads a connection elsewhere knows no key, but may choose where it ends.
TEST(Handshake, AConnectionThatIsLedElsewhereFails) {
  Channel other = kParent;
  other.acceptor = 7;
  Meeting node(kParent, other);
  EXPECT_EQ(node.code, Code::kPermission);
  EXPECT_THAT(node.why, HasSubstr("we asked for node 5, for children, and node 7"));
  EXPECT_FALSE(node.accepting.proven());

  other = kParent;
  other.purpose = Purpose::kControl;
  EXPECT_EQ(Meeting(kParent, other).code, Code::kPermission);
  other = kParent;
  other.address = "tcp:127.0.0.1:60001";
  EXPECT_EQ(Meeting(kParent, other).code, Code::kPermission);
  const Channel head{Purpose::kControl, kHeadIndex, ""};
  const Channel acting{Purpose::kControl, 2, ""};
  EXPECT_THAT(Meeting(head, acting).why, HasSubstr("we asked for the head, and node 2"));
}

TEST(Handshake, NoChangedBitGetsThrough) {
  size_t changed = 0;
  for (int number = 0; number < 3; ++number) {
    size_t size = 1;
    for (size_t at = 0; at < size; ++at) {
      for (int bit = 0; bit < 8; ++bit) {
        const Meeting meeting(kParent, kParent, [&](int n, Said& said) {
          if (n != number) return;
          size = said.payload.size() + 1;  // and the type
          char* const byte = at == 0 ? reinterpret_cast<char*>(&said.type) : &said.payload[at - 1];
          *byte = static_cast<char>(*byte ^ (1 << bit));
          ++changed;
        });
        EXPECT_FALSE(meeting.accepting.proven())
            << "bit " << bit << " of byte " << at << " of message " << number;
      }
    }
  }
  EXPECT_GT(changed, 1000u);
}

TEST(Handshake, NothingElseIsTakenBeforeTheProof) {
  for (const Type type : {Type::kFrame, Type::kSealed, Type::kEntry, Type::kOffer}) {
    AcceptingHandshake head(KeyOf(1), {});
    EXPECT_EQ(head.OnMessage(static_cast<uint8_t>(type), "x").status().code(), Code::kCorrupt);
  }
}

// As a peer that knows the key would answer, of another release or garbled.
TEST(Handshake, AVersionThatNobodySpeaksIsRefusedByName) {
  AcceptingHandshake head(KeyOf(1), {});
  const auto answer = head.OnMessage(kHello, Encode(Hello{1, KeyExchange().public_key()}));
  EXPECT_EQ(answer.status().code(), Code::kUnsupported);
  EXPECT_THAT(std::string(answer.status().message()),
              HasSubstr("speaks protocol 1, we speak 2; install releases"));

  const ConnectingHandshake node(KeyOf(1), kParent, Node3());
  Handshaken said{ProtocolVersion(), "", {}, kParent.address};
  Hello hello;
  ASSERT_TRUE(Decode(node.Hello(), hello).ok());
  said.connecting_key = hello.public_key;
  for (const uint32_t version : {0u, 1u, 3u, UINT32_MAX}) {
    said.offer = {version, KeyExchange().public_key(), kParent.acceptor, 2, ""};
    said.offer.proof = ProveOffer(KeyOf(1), said);
    const auto refused = node.OnMessage(kOffer, Encode(said.offer));
    EXPECT_EQ(refused.status().code(), Code::kUnsupported);
    EXPECT_THAT(std::string(refused.status().message()),
                HasSubstr("speaks protocol " + std::to_string(version) + ", we speak 2;"));
  }
}

TEST(Handshake, WithAPeerOfALaterVersionOursIsSpoken) {
  for (const uint32_t theirs : {3u, UINT32_MAX}) {
    AcceptingHandshake head(KeyOf(1), {});
    const auto answer = head.OnMessage(kHello, Encode(Hello{theirs, KeyExchange().public_key()}));
    ASSERT_TRUE(answer.ok());
    Offer offer;
    ASSERT_TRUE(Decode(answer->answer->payload, offer).ok());
    EXPECT_EQ(offer.version, 2u);
  }
}

// --- As another implementation gives it: Python's hmac ---

std::string Hex(std::string_view bytes) {
  std::string hex;
  for (const unsigned char c : bytes) {
    hex += "0123456789abcdef"[c >> 4], hex += "0123456789abcdef"[c & 15];
  }
  return hex;
}

template <typename Array>
Array ArrayOf(const std::string& hex) {
  Array array;
  for (size_t i = 0; i < array.size(); ++i) {
    array[i] = static_cast<uint8_t>(std::stoi(hex.substr(2 * i, 2), nullptr, 16));
  }
  return array;
}

Handshaken Example() {
  const Offer offer{7, std::string(32, 'a'), 5, 2, ""};
  return {7, std::string(32, 'c'), offer, "tcp:127.0.0.1:60000"};
}

TEST(Proof, IsHmacSha256) {
  // HMAC-SHA256 of "node", 0, "body".
  EXPECT_EQ(Hex(Prove(KeyOf(0x0b), "node", "body")),
            "7677b4631ad82a638b3d9cc41148dcef630b97a7c40af1e55c1308c78aee2882");
  EXPECT_EQ(Hex(ProveOffer(KeyOf(1), Example())),
            "b485de325bc1c2ba4034ab8239f95110a0edd8a135b4e59151f243eac983688a");
}

SharedSecret ExampleSecret() {
  SharedSecret secret;
  for (size_t i = 0; i < secret.bytes.size(); ++i) secret.bytes[i] = static_cast<uint8_t>(i);
  return secret;
}

TEST(LinkKeys, AreOfHkdfSha256) {
  using Key = decltype(SealKey::key);
  using Start = decltype(SealKey::start);
  const SealKey connecting{ArrayOf<Key>("d7f0f2e33100aba9b35964e4edc51927"),
                           ArrayOf<Start>("07fed2977895f36a81ba9cce")};
  const SealKey accepting{ArrayOf<Key>("90a0d57f95407d942418786bddaffa0f"),
                          ArrayOf<Start>("3f681d6fbdb93133c65d53aa")};
  for (const Side side : {Side::kConnecting, Side::kAccepting}) {
    LinkSeals seals = DeriveSeals(KeyOf(1), ExampleSecret(), Example(), side);
    const bool connects = side == Side::kConnecting;
    SealedStream theirs(connects ? connecting : accepting);
    EXPECT_TRUE(Reaches(seals.send, theirs));
    SealedStream ours(connects ? accepting : connecting);
    EXPECT_TRUE(Reaches(ours, seals.receive));
  }
}

TEST(LinkKeys, AreBoundToAllThatWasSaid) {
  LinkSeals seals = DeriveSeals(KeyOf(1), ExampleSecret(), Example(), Side::kConnecting);
  const std::function<void(Handshaken&)> kChanges[] = {
      [](Handshaken& said) { said.hello_version = 8; },
      [](Handshaken& said) { said.connecting_key[0] ^= 1; },
      [](Handshaken& said) { said.offer.version = 8; },
      [](Handshaken& said) { said.offer.public_key[31] ^= 1; },
      [](Handshaken& said) { said.offer.acceptor = 7; },
      [](Handshaken& said) { said.offer.purpose = 1; },
      [](Handshaken& said) { said.address = "tcp:127.0.0.1:60001"; },
  };
  for (const auto& change : kChanges) {
    Handshaken other = Example();
    change(other);
    LinkSeals theirs = DeriveSeals(KeyOf(1), ExampleSecret(), other, Side::kAccepting);
    EXPECT_FALSE(Reaches(seals.send, theirs.receive));
    EXPECT_NE(ProveOffer(KeyOf(1), other), ProveOffer(KeyOf(1), Example()));
    seals = DeriveSeals(KeyOf(1), ExampleSecret(), Example(), Side::kConnecting);
  }
  LinkSeals others = DeriveSeals(KeyOf(2), ExampleSecret(), Example(), Side::kAccepting);
  EXPECT_FALSE(Reaches(seals.send, others.receive));
  seals = DeriveSeals(KeyOf(1), ExampleSecret(), Example(), Side::kConnecting);
  SharedSecret secret = ExampleSecret();
  secret.bytes[31] ^= 1;
  LinkSeals of_another = DeriveSeals(KeyOf(1), secret, Example(), Side::kAccepting);
  EXPECT_FALSE(Reaches(seals.send, of_another.receive));
}

TEST(HttpToken, IsAnHmacOfTheKeyThatDoesNotShowIt) {
  EXPECT_EQ(HttpToken(KeyOf(1)), "0db02060d3d6fad6672c92da77ce7f45");
  EXPECT_NE(HttpToken(KeyOf(1)), HttpToken(KeyOf(2)));
}

}  // namespace
}  // namespace sonde::tree
