#include "daemon/link/trust/handshake.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "daemon/link/trust/auth.h"
#include "daemon/link/trust/sealed_link.h"

namespace sonde::tree {
namespace {

Status Unexpected(uint8_t type) {
  return {Code::kCorrupt, fmt::format("message of type {} before the key was proved", type)};
}

Status UnknownKey() { return {Code::kPermission, "the peer does not know the step's key"}; }

// A peer that is spoken to in version 6, is known to speak a later one, or has marked its nonce
// with that.
Status CheckNotDowngraded(uint32_t known, std::string_view nonce) {
  const uint32_t version = std::max(known, MarkedVersion(nonce));
  if (version < kSealingVersion) return {};
  // As if the connection had failed: the next one may not be in anybody's hands.
  return {Code::kIo,
          fmt::format("somebody between us changes what we say: the peer speaks protocol {}, "
                      "as we do, and is said to speak {}",
                      version, kEarlierVersion)};
}

std::string NameOf(const Channel& channel) {
  const std::string who =
      channel.acceptor == kHeadIndex ? "the head" : fmt::format("node {}", channel.acceptor);
  switch (channel.purpose) {
    case Channel::Purpose::kChild:
      return who + ", for children";
    case Channel::Purpose::kGateway:
      return who + ", as gateway";
    default:
      return who;
  }
}

// Whom a daemon of version 6 asks nothing of, and who is none.
Status CheckSpeaksEarlier(const Channel& channel) {
  if (channel.purpose != Channel::Purpose::kGateway) return {};
  return {Code::kPermission, fmt::format("a gateway speaks protocol {} and later, and the peer {}",
                                         kSealingVersion, kEarlierVersion)};
}

HandshakeStep AnswerWith(Type type, std::string payload) {
  return {HandshakeStep::Answer{type, std::move(payload)}, std::nullopt};
}

}  // namespace

// --- The connecting side ---

ConnectingHandshake::ConnectingHandshake(const StepKey& key, Channel channel,
                                         const Registration& registration)
    : key_(key),
      channel_(std::move(channel)),
      registration_(Encode(registration)),
      nonce_(MakeMarkedNonce(kProtocolVersion)) {}

std::string ConnectingHandshake::Hello() const {
  return Encode(tree::Hello{kEarlierVersion, nonce_});
}

Result<HandshakeStep> ConnectingHandshake::OnMessage(uint8_t type, std::string_view payload) const {
  switch (static_cast<Type>(type)) {
    case Type::kOffer:
      return OnOffer(payload);
    case Type::kChallenge:
      return OnChallenge(payload);
    default:
      return Unexpected(type);
  }
}

Result<HandshakeStep> ConnectingHandshake::OnChallenge(std::string_view payload) const {
  Challenge challenge;
  SONDE_RETURN_IF_ERROR(Decode(payload, challenge));
  SONDE_RETURN_IF_ERROR(CheckNotDowngraded(channel_.least, challenge.nonce));
  if (challenge.nonce.size() != kNonceSize ||
      !SameBytes(challenge.proof, Prove(key_, "accept", nonce_, challenge.nonce, ""))) {
    return UnknownKey();
  }
  const std::string proof = Prove(key_, "connect", challenge.nonce, nonce_, registration_);
  return AnswerWith(Type::kProof, Encode(Proof{proof, registration_}));
}

Result<HandshakeStep> ConnectingHandshake::OnOffer(std::string_view payload) const {
  Handshaken said{kEarlierVersion, nonce_, {}, channel_.address};
  Offer& offer = said.offer;
  SONDE_RETURN_IF_ERROR(Decode(payload, offer));
  if (offer.version != kSealingVersion || offer.nonce.size() != kNonceSize ||
      !SameBytes(offer.proof, ProveOffer(key_, said))) {
    // The address is not said, so another one shows as another key.
    return channel_.address.empty()
               ? UnknownKey()
               : Status(Code::kPermission,
                        "the peer does not know the step's key, or is not whom we asked for");
  }
  const Channel theirs{static_cast<Channel::Purpose>(offer.purpose), offer.acceptor, {}};
  if (theirs.purpose != channel_.purpose || theirs.acceptor != channel_.acceptor) {
    return Status(Code::kPermission, fmt::format("somebody leads us elsewhere: we asked for {}, "
                                                 "and {} answers",
                                                 NameOf(channel_), NameOf(theirs)));
  }
  const Cipher cipher = ChooseCipher(offer.ciphers);
  LinkSeals seals = DeriveSeals(key_, said, cipher, Side::kConnecting);
  Entry entry{static_cast<uint32_t>(cipher), std::string(registration_.size() + kSealOverhead, 0)};
  seals.send.Seal(static_cast<uint8_t>(Type::kProof), registration_, entry.sealed.data());
  seals.send.Next();
  HandshakeStep step = AnswerWith(Type::kEntry, Encode(entry));
  step.seals = std::move(seals);
  return step;
}

// --- The accepting side ---

AcceptingHandshake::AcceptingHandshake(const StepKey& key, Channel channel)
    : key_(key), channel_(std::move(channel)) {}

Result<HandshakeStep> AcceptingHandshake::OnMessage(uint8_t type, std::string_view payload) {
  const auto is = [&](State state, Type wanted) {
    return state_ == state && static_cast<Type>(type) == wanted;
  };
  if (is(State::kHello, Type::kHello)) return OnHello(payload);
  if (is(State::kEntry, Type::kEntry)) return OnEntry(payload);
  if (is(State::kProof, Type::kProof)) return OnProof(payload);
  return Unexpected(type);
}

Result<HandshakeStep> AcceptingHandshake::OnHello(std::string_view payload) {
  Hello hello;
  SONDE_RETURN_IF_ERROR(Decode(payload, hello));
  if (hello.version < kEarlierVersion || hello.nonce.size() != kNonceSize) {
    return Status(Code::kUnsupported,
                  fmt::format("the peer speaks protocol {}, we speak {}; install releases of "
                              "Sonde on all nodes that follow each other",
                              hello.version, kProtocolVersion));
  }
  said_.hello_version = hello.version;
  said_.connecting_nonce = hello.nonce;
  said_.address = channel_.address;
  Offer& offer = said_.offer;
  offer.nonce = MakeMarkedNonce(channel_.most);
  if (std::min(MarkedVersion(hello.nonce), channel_.most) < kSealingVersion) {
    SONDE_RETURN_IF_ERROR(CheckSpeaksEarlier(channel_));
    state_ = State::kProof;
    const std::string proof = Prove(key_, "accept", hello.nonce, offer.nonce, "");
    return AnswerWith(Type::kChallenge, Encode(Challenge{offer.nonce, proof}));
  }
  state_ = State::kEntry;
  offer.version = kSealingVersion;
  offer.acceptor = channel_.acceptor;
  offer.purpose = static_cast<uint32_t>(channel_.purpose);
  offer.ciphers = PreferredCipherList();
  offer.proof = ProveOffer(key_, said_);
  return AnswerWith(Type::kOffer, Encode(offer));
}

Result<HandshakeStep> AcceptingHandshake::OnEntry(std::string_view payload) {
  Entry entry;
  SONDE_RETURN_IF_ERROR(Decode(payload, entry));
  if (!KnowsCipher(entry.cipher)) {
    return Status(Code::kUnsupported, fmt::format("the peer seals with cipher {}", entry.cipher));
  }
  HandshakeStep step;
  step.seals = DeriveSeals(key_, said_, static_cast<Cipher>(entry.cipher), Side::kAccepting);
  std::string room(entry.sealed.size(), '\0');
  const auto opened = step.seals->receive.Open(entry.sealed, room.data());
  if (!opened || static_cast<Type>(opened->type) != Type::kProof) return UnknownKey();
  SONDE_RETURN_IF_ERROR(Believe(opened->payload));
  return step;
}

Result<HandshakeStep> AcceptingHandshake::OnProof(std::string_view payload) {
  Proof proof;
  SONDE_RETURN_IF_ERROR(Decode(payload, proof));
  const std::string expected =
      Prove(key_, "connect", said_.offer.nonce, said_.connecting_nonce, proof.registration);
  if (!SameBytes(proof.proof, expected)) return UnknownKey();
  SONDE_RETURN_IF_ERROR(Believe(proof.registration));
  return HandshakeStep();
}

Status AcceptingHandshake::Believe(std::string_view registration) {
  SONDE_RETURN_IF_ERROR(Decode(registration, registration_));
  state_ = State::kProven;
  return {};
}

std::unique_ptr<Link> SealWith(std::optional<LinkSeals> seals, std::unique_ptr<Link> link) {
  if (!seals) return link;
  return std::make_unique<SealedLink>(std::move(link), *std::move(seals));
}

}  // namespace sonde::tree
