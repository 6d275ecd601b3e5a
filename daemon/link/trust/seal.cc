#include "daemon/link/trust/seal.h"

#include <nettle/gcm.h>
#include <nettle/memops.h>
#include <string.h>

#include <cstring>

namespace sonde::tree {
namespace {

static_assert(kTagSize == GCM_DIGEST_SIZE);
static_assert(sizeof SealKey::key == AES128_KEY_SIZE && sizeof SealKey::start == GCM_IV_SIZE);

}  // namespace

struct SealedStream::Gcm {
  gcm_aes128_ctx state;
};

void SealedStream::Wipe::operator()(Gcm* gcm) const {
  explicit_bzero(gcm, sizeof *gcm);
  delete gcm;
}

SealedStream::SealedStream(const SealKey& key, uint64_t number, uint64_t bytes)
    : gcm_(new Gcm), start_(key.start), number_(number), bytes_(bytes) {
  gcm_aes128_set_key(&gcm_->state, key.key.data());
}

SealedStream::~SealedStream() = default;

// As in TLS 1.3 (RFC 8446, 5.3).
void SealedStream::SetNonce() {
  auto nonce = start_;
  for (size_t i = 0; i < sizeof number_; ++i) {
    nonce[nonce.size() - 1 - i] ^= static_cast<uint8_t>(number_ >> 8 * i);
  }
  gcm_aes128_set_iv(&gcm_->state, nonce.size(), nonce.data());
}

void SealedStream::Seal(uint8_t type, std::string_view payload, char* out) {
  size_ = 1 + payload.size();
  out[0] = static_cast<char>(type);
  std::memcpy(out + 1, payload.data(), payload.size());
  auto* const text = reinterpret_cast<uint8_t*>(out);
  SetNonce();
  gcm_aes128_encrypt(&gcm_->state, size_, text, text);
  gcm_aes128_digest(&gcm_->state, kTagSize, text + size_);
}

std::optional<SealedStream::Message> SealedStream::Open(std::string_view sealed, char* room) {
  if (sealed.size() < kSealOverhead || used_up()) return std::nullopt;
  const size_t size = sealed.size() - kTagSize;
  const auto* const from = reinterpret_cast<const uint8_t*>(sealed.data());
  uint8_t tag[kTagSize];
  SetNonce();
  gcm_aes128_decrypt(&gcm_->state, size, reinterpret_cast<uint8_t*>(room), from);
  gcm_aes128_digest(&gcm_->state, kTagSize, tag);
  if (memeql_sec(tag, from + size, kTagSize) == 0) return std::nullopt;
  size_ = size;
  Next();
  return Message{static_cast<uint8_t>(room[0]), {room + 1, size - 1}};
}

}  // namespace sonde::tree
