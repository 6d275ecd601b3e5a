#include "daemon/link/trust/aead.h"

#include <nettle/chacha-poly1305.h>
#include <nettle/gcm.h>
#include <nettle/memops.h>
#include <string.h>

#include "core/log.h"
#include "daemon/link/trust/aes_gcm.h"

namespace sonde::tree {
namespace {

static_assert(CHACHA_POLY1305_DIGEST_SIZE == kTagSize && GCM_DIGEST_SIZE == kTagSize);

class NettleGcm final : public Aead {
 public:
  explicit NettleGcm(const AeadKey& key) { gcm_aes128_set_key(&state_, key.data()); }
  ~NettleGcm() override { explicit_bzero(&state_, sizeof state_); }

  void Seal(const AeadNonce& nonce, uint8_t* text, size_t size) override {
    gcm_aes128_set_iv(&state_, nonce.size(), nonce.data());
    gcm_aes128_encrypt(&state_, size, text, text);
    gcm_aes128_digest(&state_, kTagSize, text + size);
  }
  bool Open(const AeadNonce& nonce, const uint8_t* sealed, size_t size, uint8_t* text) override {
    uint8_t tag[kTagSize];
    gcm_aes128_set_iv(&state_, nonce.size(), nonce.data());
    gcm_aes128_decrypt(&state_, size, text, sealed);
    gcm_aes128_digest(&state_, kTagSize, tag);
    return memeql_sec(tag, sealed + size, kTagSize) != 0;
  }

 private:
  gcm_aes128_ctx state_;
};

class ChaChaPoly final : public Aead {
 public:
  explicit ChaChaPoly(const AeadKey& key) { chacha_poly1305_set_key(&state_, key.data()); }
  ~ChaChaPoly() override { explicit_bzero(&state_, sizeof state_); }

  void Seal(const AeadNonce& nonce, uint8_t* text, size_t size) override {
    chacha_poly1305_set_nonce(&state_, nonce.data());
    chacha_poly1305_encrypt(&state_, size, text, text);
    chacha_poly1305_digest(&state_, kTagSize, text + size);
  }
  bool Open(const AeadNonce& nonce, const uint8_t* sealed, size_t size, uint8_t* text) override {
    uint8_t tag[kTagSize];
    chacha_poly1305_set_nonce(&state_, nonce.data());
    chacha_poly1305_decrypt(&state_, size, text, sealed);
    chacha_poly1305_digest(&state_, kTagSize, tag);
    return memeql_sec(tag, sealed + size, kTagSize) != 0;
  }

 private:
  chacha_poly1305_ctx state_;
};

// Whether the fast code gives the bytes of nettle's here: each daemon tries it once, on a message
// of whole batches and a rest.
GcmCode TriedGcmCode() {
  constexpr size_t kSize = 600;
  constexpr AeadKey kKey{1, 2, 3};
  constexpr AeadNonce kNonce{4, 5, 6};
  const GcmCode code = BestGcmCode();
  const std::unique_ptr<Aead> fast = MakeFastGcm(kKey, code);
  if (fast == nullptr) return code;
  uint8_t ours[kSize + kTagSize] = {7};
  uint8_t nettles[kSize + kTagSize] = {7};
  uint8_t opened[kSize];
  fast->Seal(kNonce, ours, kSize);
  NettleGcm(kKey).Seal(kNonce, nettles, kSize);
  const bool same = memcmp(ours, nettles, sizeof ours) == 0 &&
                    fast->Open(kNonce, nettles, kSize, opened) && opened[0] == 7;
  if (!same) log::Warning("this machine's AES-GCM gives other bytes than nettle's, which is used");
  return same ? code : GcmCode::kNone;
}

}  // namespace

std::unique_ptr<Aead> MakeAead(Cipher cipher, const AeadKey& key) {
  static const GcmCode code = TriedGcmCode();
  if (cipher == Cipher::kChaCha20Poly1305) return std::make_unique<ChaChaPoly>(key);
  if (std::unique_ptr<Aead> fast = MakeFastGcm(key, code)) return fast;
  return std::make_unique<NettleGcm>(key);
}

std::string PreferredCipherList() {
  constexpr char kGcm = static_cast<char>(Cipher::kAes128Gcm);
  constexpr char kChaCha = static_cast<char>(Cipher::kChaCha20Poly1305);
  const bool gcm_first = BestGcmCode() != GcmCode::kNone;
  return gcm_first ? std::string{kGcm, kChaCha} : std::string{kChaCha, kGcm};
}

Cipher ChooseCipher(const std::string& theirs) {
  const bool same = !theirs.empty() && theirs[0] == PreferredCipherList()[0];
  return same ? static_cast<Cipher>(theirs[0]) : Cipher::kChaCha20Poly1305;
}

bool KnowsCipher(uint32_t number) {
  return number == static_cast<uint32_t>(Cipher::kAes128Gcm) ||
         number == static_cast<uint32_t>(Cipher::kChaCha20Poly1305);
}

}  // namespace sonde::tree
