#include "daemon/link/trust/link_keys.h"

#include <nettle/hkdf.h>
#include <nettle/hmac.h>
#include <string.h>

#include <algorithm>
#include <array>

#include "core/bytes.h"
#include "daemon/link/trust/auth.h"

namespace sonde::tree {
namespace {

// The accepting side's proof is the one thing said that is not in it: it is made of this.
std::string Transcript(const Handshaken& said) {
  std::string text;
  ByteWriter w(text);
  w.Varint(said.hello_version);
  w.Varint(said.offer.version);
  w.Text(said.connecting_key);
  w.Text(said.offer.public_key);
  w.Varint(said.offer.acceptor);
  w.Varint(said.offer.purpose);
  w.Text(said.address);
  return text;
}

const uint8_t* Bytes(std::string_view text) {
  return reinterpret_cast<const uint8_t*>(text.data());
}

void SetKey(hmac_sha256_ctx& state, std::string_view key) {
  hmac_sha256_set_key(&state, key.size(), Bytes(key));
}
const auto kUpdate = reinterpret_cast<nettle_hash_update_func*>(hmac_sha256_update);
const auto kDigest = reinterpret_cast<nettle_hash_digest_func*>(hmac_sha256_digest);

}  // namespace

std::string ProveOffer(const StepKey& key, const Handshaken& said) {
  return Prove(key, "offer", Transcript(said));
}

LinkSeals DeriveSeals(const StepKey& key, const SharedSecret& shared, const Handshaken& said,
                      Side side) {
  std::array<uint8_t, sizeof key + sizeof shared.bytes> both;
  std::copy(shared.bytes.begin(), shared.bytes.end(),
            std::copy(key.begin(), key.end(), both.begin()));
  hmac_sha256_ctx state;
  std::array<char, SHA256_DIGEST_SIZE> secret;
  SetKey(state, said.connecting_key + said.offer.public_key);
  hkdf_extract(&state, kUpdate, kDigest, secret.size(), both.size(), both.data(),
               reinterpret_cast<uint8_t*>(secret.data()));

  std::string info = "sonde link";
  ByteWriter(info).Text(Transcript(said));
  SealKey keys[2];  // of what the connecting side sends, and of what the accepting side does
  std::array<uint8_t, 2 * (sizeof SealKey::key + sizeof SealKey::start)> derived;
  SetKey(state, {secret.data(), secret.size()});
  hkdf_expand(&state, kUpdate, kDigest, secret.size(), info.size(), Bytes(info), derived.size(),
              derived.data());
  const uint8_t* from = derived.data();
  for (SealKey& one : keys) {
    std::copy_n(from, one.key.size(), one.key.begin());
    std::copy_n(from + one.key.size(), one.start.size(), one.start.begin());
    from += one.key.size() + one.start.size();
  }

  const bool connecting = side == Side::kConnecting;
  LinkSeals seals{SealedStream(keys[connecting ? 0 : 1]), SealedStream(keys[connecting ? 1 : 0])};
  explicit_bzero(&state, sizeof state);
  explicit_bzero(both.data(), both.size());
  explicit_bzero(secret.data(), secret.size());
  explicit_bzero(derived.data(), derived.size());
  explicit_bzero(keys, sizeof keys);
  return seals;
}

}  // namespace sonde::tree
