#include "daemon/link/trust/auth.h"

#include <fmt/core.h>
#include <nettle/hmac.h>
#include <nettle/memops.h>
#include <string.h>
#include <sys/random.h>

namespace sonde::tree {
namespace {

std::string Hmac(const StepKey& key, std::string_view text) {
  hmac_sha256_ctx state;
  hmac_sha256_set_key(&state, key.size(), key.data());
  hmac_sha256_update(&state, text.size(), reinterpret_cast<const uint8_t*>(text.data()));
  std::string digest(SHA256_DIGEST_SIZE, '\0');
  hmac_sha256_digest(&state, digest.size(), reinterpret_cast<uint8_t*>(digest.data()));
  explicit_bzero(&state, sizeof state);
  return digest;
}

}  // namespace

RandomBytes Random() {
  RandomBytes bytes;
  size_t have = 0;
  while (have < bytes.size()) {
    const ssize_t n = getrandom(bytes.data() + have, bytes.size() - have, 0);
    if (n > 0) have += static_cast<size_t>(n);
  }
  return bytes;
}

std::string Prove(const StepKey& key, std::string_view role, std::string_view text) {
  std::string all(role);
  all.push_back('\0');
  all.append(text);
  return Hmac(key, all);
}

bool SameBytes(std::string_view a, std::string_view b) {
  return !a.empty() && a.size() == b.size() && memeql_sec(a.data(), b.data(), a.size()) != 0;
}

std::string HttpToken(const StepKey& key) {
  std::string hex;
  for (const unsigned char c : Hmac(key, "http token").substr(0, 16))
    hex += fmt::format("{:02x}", c);
  return hex;
}

}  // namespace sonde::tree
