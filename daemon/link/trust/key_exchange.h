// A key that two daemons make together for one connection, and that nobody who hears them has: not
// even somebody who knows the step's key, now or later. X25519 (RFC 7748).
//
// Who does know the step's key and stands between the two can still be either of them to the other.
//
// Thread safety: none; one thread at a time.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace sonde::tree {

inline constexpr size_t kPublicKeySize = 32;

// Is wiped from memory when it ends.
struct SharedSecret {
  ~SharedSecret();
  std::array<uint8_t, 32> bytes{};
};

// One side's part, for one connection and never for another: its public key is also the nonce by
// which the connection differs from all others.
class KeyExchange {
 public:
  KeyExchange();

  const std::string& public_key() const { return public_key_; }
  // Nothing if theirs is no key, or one of the few with which everybody knows the secret.
  std::optional<SharedSecret> Agree(std::string_view theirs) const;

 private:
  SharedSecret private_key_;
  std::string public_key_;
};

}  // namespace sonde::tree
