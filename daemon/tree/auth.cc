#include "daemon/tree/auth.h"

#include <fmt/format.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <sys/random.h>

namespace sonde::tree {
namespace {

std::string Hmac(const StepKey& key, std::string_view text) {
  // Reading openssl.cnf and loading error strings costs more than the rest of a short step.
  OPENSSL_init_crypto(OPENSSL_INIT_NO_LOAD_CONFIG | OPENSSL_INIT_NO_LOAD_CRYPTO_STRINGS, nullptr);
  unsigned char out[EVP_MAX_MD_SIZE];
  unsigned int size = 0;
  if (HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()),
           reinterpret_cast<const unsigned char*>(text.data()), text.size(), out,
           &size) == nullptr) {
    return {};
  }
  return {reinterpret_cast<const char*>(out), size};
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
