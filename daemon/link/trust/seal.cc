#include "daemon/link/trust/seal.h"

#include <cstring>

namespace sonde::tree {

SealedStream::SealedStream(Cipher cipher, const SealKey& key, uint64_t number, uint64_t bytes)
    : aead_(MakeAead(cipher, key.key)), start_(key.start), number_(number), bytes_(bytes) {}

// As in TLS 1.3 (RFC 8446, 5.3).
AeadNonce SealedStream::Nonce() const {
  AeadNonce nonce = start_;
  for (size_t i = 0; i < sizeof number_; ++i) {
    nonce[nonce.size() - 1 - i] ^= static_cast<uint8_t>(number_ >> 8 * i);
  }
  return nonce;
}

void SealedStream::Seal(uint8_t type, std::string_view payload, char* out) {
  size_ = 1 + payload.size();
  out[0] = static_cast<char>(type);
  std::memcpy(out + 1, payload.data(), payload.size());
  aead_->Seal(Nonce(), reinterpret_cast<uint8_t*>(out), size_);
}

std::optional<SealedStream::Message> SealedStream::Open(std::string_view sealed, char* room) {
  if (sealed.size() < kSealOverhead || used_up()) return std::nullopt;
  const size_t size = sealed.size() - kTagSize;
  if (!aead_->Open(Nonce(), reinterpret_cast<const uint8_t*>(sealed.data()), size,
                   reinterpret_cast<uint8_t*>(room))) {
    return std::nullopt;
  }
  size_ = size;
  Next();
  return Message{static_cast<uint8_t>(room[0]), {room + 1, size - 1}};
}

}  // namespace sonde::tree
