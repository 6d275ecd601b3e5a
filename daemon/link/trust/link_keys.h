// The keys of one connection, and what they are bound to.
//
// Both sides derive them from the step's key and the secret that they have made for this connection
// (key_exchange.h), with HKDF-SHA256 (RFC 5869), and from all that they have said and believe about
// the connection. Whoever changes a byte of that, or leads a connection to another daemon or
// another of its ports, leaves the two sides with different keys.
//
// Thread safety: functions without state.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "daemon/launch_message.h"
#include "daemon/link/trust/key_exchange.h"
#include "daemon/link/trust/seal.h"
#include "daemon/message/message.h"

namespace sonde::tree {

// What a connection is for, and whose port it goes to, as each side believes.
struct Channel {
  // On the wire: never reuse a number.
  enum class Purpose : uint32_t {
    kControl = 1,  // a node's connection to the head
    kChild = 2,    // a child's link to its parent
    kGateway = 3,  // a node's connection to its gateway, in place of one to the head
  };
  Purpose purpose = Purpose::kControl;
  uint32_t acceptor = kHeadIndex;  // index of the node that accepts, or on which an acting head is
  std::string address;             // of the port, as the acceptor gave it; "": it is told to nobody
};

// What is said before there are keys, and the channel.
struct Handshaken {
  uint32_t hello_version = 0;  // the highest that the connecting side speaks
  std::string connecting_key;  // its public one
  Offer offer;
  std::string address;
};

// The accepting side's proof in its offer.
std::string ProveOffer(const StepKey& key, const Handshaken& said);

enum class Side : uint8_t { kConnecting, kAccepting };
LinkSeals DeriveSeals(const StepKey& key, const SharedSecret& shared, const Handshaken& said,
                      Side side);

}  // namespace sonde::tree
