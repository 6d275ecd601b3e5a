// The functions of the hash alone are called old by OpenSSL 3; what replaces them is slow to start.
#define OPENSSL_API_COMPAT 0x10100000L

#include "daemon/tree/auth.h"

#include <fmt/format.h>
#include <openssl/crypto.h>
#include <openssl/sha.h>
#include <sys/random.h>

#include <algorithm>
#include <array>

namespace sonde::tree {
namespace {

using Block = std::array<unsigned char, SHA256_CBLOCK>;

// The hash itself: OpenSSL's HMAC() first loads its providers and their tables of names, which
// takes 0.5 ms, and there is one daemon per node of every short step.
class Sha256 {
 public:
  Sha256() { SHA256_Init(&state_); }
  void Update(const void* bytes, size_t size) { SHA256_Update(&state_, bytes, size); }
  std::string Final() {
    std::string digest(SHA256_DIGEST_LENGTH, '\0');
    SHA256_Final(reinterpret_cast<unsigned char*>(digest.data()), &state_);
    return digest;
  }

 private:
  SHA256_CTX state_;
};

// RFC 2104: H(key ^ opad, H(key ^ ipad, text)), with a key no longer than the hash's block.
std::string Hmac(const StepKey& key, std::string_view text) {
  static_assert(std::tuple_size_v<StepKey> <= SHA256_CBLOCK);
  const auto padded = [&](unsigned char pad) {
    Block block;
    block.fill(pad);
    for (size_t i = 0; i < key.size(); ++i) block[i] ^= key[i];
    return block;
  };
  const Block inner_key = padded(0x36);
  const Block outer_key = padded(0x5c);
  Sha256 inner;
  inner.Update(inner_key.data(), inner_key.size());
  inner.Update(text.data(), text.size());
  const std::string digest = inner.Final();
  Sha256 outer;
  outer.Update(outer_key.data(), outer_key.size());
  outer.Update(digest.data(), digest.size());
  return outer.Final();
}

}  // namespace

std::string MakeNonce() {
  std::string nonce(kNonceSize, '\0');
  size_t have = 0;
  while (have < nonce.size()) {
    const ssize_t n = getrandom(nonce.data() + have, nonce.size() - have, 0);
    if (n > 0) have += static_cast<size_t>(n);
  }
  return nonce;
}

std::string Prove(const StepKey& key, std::string_view role, std::string_view first,
                  std::string_view second, std::string_view body) {
  std::string text(role);
  text.push_back('\0');
  text.append(first).append(second);
  text.push_back('\0');
  text.append(body);
  return Hmac(key, text);
}

bool SameBytes(std::string_view a, std::string_view b) {
  return !a.empty() && a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

std::string HttpToken(const StepKey& key) {
  std::string hex;
  for (const unsigned char c : Hmac(key, "http token").substr(0, 16))
    hex += fmt::format("{:02x}", c);
  return hex;
}

}  // namespace sonde::tree
