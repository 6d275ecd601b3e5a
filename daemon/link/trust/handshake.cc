#include "daemon/link/trust/handshake.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "daemon/link/trust/auth.h"
#include "daemon/link/trust/protocol.h"

namespace sonde::tree {
namespace {

Status Unexpected(uint8_t type) {
  return {Code::kCorrupt, fmt::format("message of type {} before the key was proved", type)};
}

Status UnknownKey() { return {Code::kPermission, "the peer does not know the step's key"}; }

Status NoPublicKey() { return {Code::kCorrupt, "what the peer gives as public key is none"}; }

Status UnknownVersion(uint32_t theirs) {
  return {Code::kUnsupported,
          fmt::format("the peer speaks protocol {}, we speak {}; install releases of Sonde on all "
                      "nodes that follow each other",
                      theirs, ProtocolVersion())};
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

HandshakeStep AnswerWith(Type type, std::string payload) {
  return {HandshakeStep::Answer{type, std::move(payload)}, std::nullopt};
}

}  // namespace

// --- The connecting side ---

ConnectingHandshake::ConnectingHandshake(const StepKey& key, Channel channel,
                                         const Registration& registration)
    : key_(key), channel_(std::move(channel)), registration_(Encode(registration)) {}

std::string ConnectingHandshake::Hello() const {
  return Encode(tree::Hello{ProtocolVersion(), exchange_.public_key()});
}

Result<HandshakeStep> ConnectingHandshake::OnMessage(uint8_t type, std::string_view payload) const {
  if (static_cast<Type>(type) != Type::kOffer) return Unexpected(type);
  Handshaken said{ProtocolVersion(), exchange_.public_key(), {}, channel_.address};
  SONDE_RETURN_IF_ERROR(Decode(payload, said.offer));
  SONDE_RETURN_IF_ERROR(CheckOffer(said));
  const std::optional<SharedSecret> shared = exchange_.Agree(said.offer.public_key);
  if (!shared) return NoPublicKey();
  LinkSeals seals = DeriveSeals(key_, *shared, said, Side::kConnecting);
  Entry entry{std::string(registration_.size() + kSealOverhead, 0)};
  seals.send.Seal(static_cast<uint8_t>(Type::kEntry), registration_, entry.sealed.data());
  seals.send.Next();
  HandshakeStep step = AnswerWith(Type::kEntry, Encode(entry));
  step.seals = std::move(seals);
  return step;
}

Status ConnectingHandshake::CheckOffer(const Handshaken& said) const {
  const Offer& offer = said.offer;
  if (offer.version < kLeastVersion || offer.version > said.hello_version) {
    return UnknownVersion(offer.version);
  }
  if (!SameBytes(offer.proof, ProveOffer(key_, said))) {
    // The address is not said, so another one shows as another key.
    return channel_.address.empty()
               ? UnknownKey()
               : Status(Code::kPermission,
                        "the peer does not know the step's key, or is not whom we asked for");
  }
  const Channel theirs{static_cast<Channel::Purpose>(offer.purpose), offer.acceptor, {}};
  if (theirs.purpose != channel_.purpose || theirs.acceptor != channel_.acceptor) {
    return {Code::kPermission, fmt::format("somebody leads us elsewhere: we asked for {}, "
                                           "and {} answers",
                                           NameOf(channel_), NameOf(theirs))};
  }
  return {};
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
  return Unexpected(type);
}

Result<HandshakeStep> AcceptingHandshake::OnHello(std::string_view payload) {
  Hello hello;
  SONDE_RETURN_IF_ERROR(Decode(payload, hello));
  if (hello.version < kLeastVersion) return UnknownVersion(hello.version);
  if (hello.public_key.size() != kPublicKeySize) return NoPublicKey();
  said_.hello_version = hello.version;
  said_.connecting_key = hello.public_key;
  said_.address = channel_.address;
  Offer& offer = said_.offer;
  offer.public_key = exchange_.public_key();
  offer.version = std::min(hello.version, ProtocolVersion());
  offer.acceptor = channel_.acceptor;
  offer.purpose = static_cast<uint32_t>(channel_.purpose);
  offer.proof = ProveOffer(key_, said_);
  state_ = State::kEntry;
  return AnswerWith(Type::kOffer, Encode(offer));
}

Result<HandshakeStep> AcceptingHandshake::OnEntry(std::string_view payload) {
  Entry entry;
  SONDE_RETURN_IF_ERROR(Decode(payload, entry));
  const std::optional<SharedSecret> shared = exchange_.Agree(said_.connecting_key);
  if (!shared) return NoPublicKey();
  HandshakeStep step;
  step.seals = DeriveSeals(key_, *shared, said_, Side::kAccepting);
  std::string room(entry.sealed.size(), '\0');
  const auto opened = step.seals->receive.Open(entry.sealed, room.data());
  if (!opened || static_cast<Type>(opened->type) != Type::kEntry) return UnknownKey();
  SONDE_RETURN_IF_ERROR(Decode(opened->payload, registration_));
  state_ = State::kProven;
  return step;
}

}  // namespace sonde::tree
