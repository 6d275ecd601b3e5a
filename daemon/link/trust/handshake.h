// The proof of the key when a connection opens, as two state machines that know no sockets.
//
//   connecting side                          accepting side
//   kHello {version, public key}     ->
//                                    <-      kOffer {version, public key, who it is, proof}
//   kEntry {sealed(registration)}    ->
//
// From kEntry on all is sealed (seal.h), by keys that come of the step's key, of the secret that
// the two public keys make (key_exchange.h) and of all that was said before (link_keys.h). So who
// hears all of it and learns the step's key reads nothing. The connecting side checks the offer
// before it says who it is; to be able to seal anything is its own proof.
//
// kHello says the highest version that the connecting side speaks, kOffer the lower one of that and
// the accepting side's highest. The proof in kOffer is over both: so nobody on the way can make the
// two speak a lower version than they can.
//
// Thread safety: none; one thread at a time.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "core/status.h"
#include "daemon/launch_message.h"
#include "daemon/link/trust/key_exchange.h"
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
  // Of all messages after that. Nothing: the peer has not proved the key yet.
  std::optional<LinkSeals> seals;
};

class ConnectingHandshake {
 public:
  // `channel`: to whom, and what for.
  ConnectingHandshake(const StepKey& key, Channel channel, const Registration& registration);

  // The first message to send, of type kHello.
  std::string Hello() const;
  // The answer to it; gives the last word and the seals, and the connecting side is done.
  Result<HandshakeStep> OnMessage(uint8_t type, std::string_view payload) const;

 private:
  Status CheckOffer(const Handshaken& said) const;

  StepKey key_;
  Channel channel_;
  std::string registration_;
  KeyExchange exchange_;
};

class AcceptingHandshake {
 public:
  AcceptingHandshake(const StepKey& key, Channel channel);

  // Takes one message of the peer. A failure means that the connection must be closed.
  Result<HandshakeStep> OnMessage(uint8_t type, std::string_view payload);
  bool proven() const { return state_ == State::kProven; }
  const Registration& registration() const { return registration_; }

 private:
  enum class State : uint8_t { kHello, kEntry, kProven };
  Result<HandshakeStep> OnHello(std::string_view payload);
  Result<HandshakeStep> OnEntry(std::string_view payload);

  StepKey key_;
  Channel channel_;
  KeyExchange exchange_;
  State state_ = State::kHello;
  Handshaken said_;
  Registration registration_;
};

}  // namespace sonde::tree
