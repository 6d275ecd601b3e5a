// The proof of the key when a connection opens, as two state machines that know no sockets.
//
//   connecting side                          accepting side
//   kHello {version, nonce_c}        ->
//                                    <-      kChallenge {nonce_a, proof("accept", nonce_c,
//                                    nonce_a)}
//   kProof {proof("connect", nonce_a, nonce_c, registration), registration}  ->
//
// The connecting side checks the challenge before it says who it is; the accepting side believes
// a registration only with its proof.
//
// Thread safety: none; one thread at a time.
#pragma once

#include <string>
#include <string_view>

#include "core/status.h"
#include "daemon/launch_message.h"
#include "daemon/message/message.h"

namespace sonde::tree {

class ConnectingHandshake {
 public:
  ConnectingHandshake(const StepKey& key, const Registration& registration);

  // The first message to send, of type kHello.
  std::string Hello() const;
  // The answer to it: gives the payload of kProof to be sent.
  Result<std::string> OnMessage(uint8_t type, std::string_view payload) const;

 private:
  StepKey key_;
  std::string registration_;
  std::string nonce_;
};

class AcceptingHandshake {
 public:
  explicit AcceptingHandshake(const StepKey& key);

  // Takes one message of the peer. Gives the payload of kChallenge to be sent back, or "" when the
  // peer is proven. A failure means that the connection must be closed.
  Result<std::string> OnMessage(uint8_t type, std::string_view payload);
  bool proven() const { return state_ == State::kProven; }
  const Registration& registration() const { return registration_; }

 private:
  enum class State { kHello, kProof, kProven };
  StepKey key_;
  State state_ = State::kHello;
  std::string nonce_;
  std::string peer_nonce_;
  Registration registration_;
};

}  // namespace sonde::tree
