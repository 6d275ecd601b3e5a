#include "daemon/link/trust/handshake.h"

#include <fmt/core.h>

#include "daemon/link/trust/auth.h"

namespace sonde::tree {
namespace {

Status Unexpected(uint8_t type) {
  return {Code::kCorrupt, fmt::format("message of type {} before the key was proved", type)};
}

bool Is(uint8_t type, Type wanted) { return type == static_cast<uint8_t>(wanted); }

}  // namespace

ConnectingHandshake::ConnectingHandshake(const StepKey& key, const Registration& registration)
    : key_(key), registration_(Encode(registration)), nonce_(MakeNonce()) {}

std::string ConnectingHandshake::Hello() const {
  return Encode(tree::Hello{kProtocolVersion, nonce_});
}

Result<std::string> ConnectingHandshake::OnMessage(uint8_t type, std::string_view payload) const {
  if (!Is(type, Type::kChallenge)) return Unexpected(type);
  Challenge challenge;
  SONDE_RETURN_IF_ERROR(Decode(payload, challenge));
  if (challenge.nonce.size() != kNonceSize ||
      !SameBytes(challenge.proof, Prove(key_, "accept", nonce_, challenge.nonce, ""))) {
    return Status(Code::kPermission, "the peer does not know the step's key");
  }
  return Encode(
      Proof{Prove(key_, "connect", challenge.nonce, nonce_, registration_), registration_});
}

AcceptingHandshake::AcceptingHandshake(const StepKey& key) : key_(key), nonce_(MakeNonce()) {}

Result<std::string> AcceptingHandshake::OnMessage(uint8_t type, std::string_view payload) {
  if (state_ == State::kHello && Is(type, Type::kHello)) {
    Hello hello;
    SONDE_RETURN_IF_ERROR(Decode(payload, hello));
    if (hello.version < kProtocolVersion || hello.nonce.size() != kNonceSize) {
      return Status(Code::kUnsupported,
                    fmt::format("the peer speaks protocol {}, we speak {}; install releases of "
                                "Sonde on all nodes that follow each other",
                                hello.version, kProtocolVersion));
    }
    peer_nonce_ = hello.nonce;
    state_ = State::kProof;
    return Encode(Challenge{nonce_, Prove(key_, "accept", peer_nonce_, nonce_, "")});
  }
  if (state_ == State::kProof && Is(type, Type::kProof)) {
    Proof proof;
    SONDE_RETURN_IF_ERROR(Decode(payload, proof));
    const std::string expected = Prove(key_, "connect", nonce_, peer_nonce_, proof.registration);
    if (!SameBytes(proof.proof, expected)) {
      return Status(Code::kPermission, "the peer does not know the step's key");
    }
    SONDE_RETURN_IF_ERROR(Decode(proof.registration, registration_));
    state_ = State::kProven;
    return std::string();
  }
  return Unexpected(type);
}

}  // namespace sonde::tree
