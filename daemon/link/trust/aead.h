// Authenticated encryption of one direction of a link: nobody without its key can read a message,
// and none that was changed is opened.
//
// AES-128-GCM where the processor has instructions for it, else ChaCha20-Poly1305. Both give the
// bytes of their standards (NIST SP 800-38D, RFC 8439), whichever code makes them.
//
// Thread safety: none; one thread at a time.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace sonde::tree {

// On the wire: never reuse a number.
enum class Cipher : uint8_t { kAes128Gcm = 1, kChaCha20Poly1305 = 2 };

inline constexpr size_t kTagSize = 16;
// AES takes the first half of it.
using AeadKey = std::array<uint8_t, 32>;
using AeadNonce = std::array<uint8_t, 12>;

class Aead {
 public:
  virtual ~Aead() = default;
  // Encrypts the text where it lies, and writes kTagSize bytes behind it. Never twice with one
  // nonce.
  virtual void Seal(const AeadNonce& nonce, uint8_t* text, size_t size) = 0;
  // `sealed` is `size` bytes and their tag. False if they are not what Seal made: what is in `text`
  // then means nothing.
  virtual bool Open(const AeadNonce& nonce, const uint8_t* sealed, size_t size, uint8_t* text) = 0;
};

std::unique_ptr<Aead> MakeAead(Cipher cipher, const AeadKey& key);
// The ciphers that this machine knows, the fastest first.
std::string PreferredCipherList();
// Of two such lists: AES if it is the fastest for both, else what every machine does well enough.
Cipher ChooseCipher(const std::string& theirs);
bool KnowsCipher(uint32_t number);

}  // namespace sonde::tree
