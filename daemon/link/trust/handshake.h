// The proof of the key when a connection opens, as two state machines that know no sockets.
//
//   connecting side                          accepting side
//   kHello {6, nonce_c}              ->
//                                    <-      kOffer {version, nonce_a, who it is, ciphers, proof}
//   kEntry {cipher, sealed(kProof: registration)}  ->
//
// From kEntry on all is sealed (seal.h), by keys that come of the step's key and of all that was
// said before (link_keys.h). The connecting side checks the offer before it says who it is; to be
// able to seal anything is its own proof.
//
// With a peer of the release before, which speaks version 6, nothing is sealed:
//   kHello {6, nonce_c}              ->
//                                    <-      kChallenge {nonce_a, proof("accept", nonce_c,
//                                    nonce_a)}
//   kProof {proof("connect", nonce_a, nonce_c, registration), registration}  ->
// A nonce is marked with the version that its maker speaks, and the proofs are over the nonces: so
// nobody on the way can make two later peers believe that the other one speaks 6. But a third
// daemon that does speak 6 can be led to prove the key in place of the peer, for its proof names
// nobody: so a connecting side takes no kChallenge of a peer that is known to speak 7
// (Channel::least).
//
// Thread safety: none; one thread at a time.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "core/status.h"
#include "daemon/launch_message.h"
#include "daemon/link/link.h"
#include "daemon/link/trust/link_keys.h"
#include "daemon/link/trust/seal.h"
#include "daemon/message/message.h"

namespace sonde::tree {

// What a side does after a message of the other.
struct HandshakeStep {
  // To be sent as it is. Nothing: there is none.
  struct Answer {
    Type type;
    std::string payload;
  };
  std::optional<Answer> answer;
  // Of all messages after that. Nothing: the peer speaks version 6, or has not proved the key yet.
  std::optional<LinkSeals> seals;
};

class ConnectingHandshake {
 public:
  // `channel`: to whom, and what for.
  ConnectingHandshake(const StepKey& key, Channel channel, const Registration& registration);

  // The first message to send, of type kHello.
  std::string Hello() const;
  // The answer to it; gives the last word, after which the connecting side is done.
  Result<HandshakeStep> OnMessage(uint8_t type, std::string_view payload) const;

 private:
  Result<HandshakeStep> OnChallenge(std::string_view payload) const;
  Result<HandshakeStep> OnOffer(std::string_view payload) const;

  StepKey key_;
  Channel channel_;
  std::string registration_;
  std::string nonce_;
};

class AcceptingHandshake {
 public:
  AcceptingHandshake(const StepKey& key, Channel channel);

  // Takes one message of the peer. A failure means that the connection must be closed.
  Result<HandshakeStep> OnMessage(uint8_t type, std::string_view payload);
  bool proven() const { return state_ == State::kProven; }
  const Registration& registration() const { return registration_; }

 private:
  enum class State : uint8_t { kHello, kEntry, kProof, kProven };
  Result<HandshakeStep> OnHello(std::string_view payload);
  Result<HandshakeStep> OnEntry(std::string_view payload);
  Result<HandshakeStep> OnProof(std::string_view payload);
  Status Believe(std::string_view registration);

  StepKey key_;
  Channel channel_;
  State state_ = State::kHello;
  Handshaken said_;
  Registration registration_;
};

// The link to go on with: the same one, or one that seals.
std::unique_ptr<Link> SealWith(std::optional<LinkSeals> seals, std::unique_ptr<Link> link);

}  // namespace sonde::tree
