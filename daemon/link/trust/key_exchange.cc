#include "daemon/link/trust/key_exchange.h"

#include <nettle/curve25519.h>
#include <string.h>

#include "daemon/link/trust/auth.h"

namespace sonde::tree {
namespace {

static_assert(kPublicKeySize == CURVE25519_SIZE);
static_assert(sizeof SharedSecret::bytes == CURVE25519_SIZE);

}  // namespace

SharedSecret::~SharedSecret() { explicit_bzero(bytes.data(), bytes.size()); }

KeyExchange::KeyExchange() : private_key_{Random()}, public_key_(kPublicKeySize, '\0') {
  curve25519_mul_g(reinterpret_cast<uint8_t*>(public_key_.data()), private_key_.bytes.data());
}

std::optional<SharedSecret> KeyExchange::Agree(std::string_view theirs) const {
  if (theirs.size() != kPublicKeySize) return std::nullopt;
  std::optional<SharedSecret> secret(std::in_place);
  curve25519_mul(secret->bytes.data(), private_key_.bytes.data(),
                 reinterpret_cast<const uint8_t*>(theirs.data()));
  uint8_t any = 0;
  for (const uint8_t byte : secret->bytes) any |= byte;
  if (any == 0) return std::nullopt;
  return secret;
}

}  // namespace sonde::tree
