// Messages sealed in the order in which they are sent, one direction of a link.
//
//   sealed message: type, 1 byte, and payload, encrypted | tag, 16 bytes
//
// By AES-128-GCM (NIST SP 800-38D). The nonce is the message's number, which both sides count and
// nobody sends: a message that is changed, left out, repeated, taken from the other direction or
// put elsewhere is not opened.
//
// Thread safety: none; one thread at a time.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>

namespace sonde::tree {

inline constexpr size_t kTagSize = 16;
// What a message is longer when it is sealed.
inline constexpr size_t kSealOverhead = 1 + kTagSize;

struct SealKey {
  std::array<uint8_t, 16> key{};
  std::array<uint8_t, 12>
      start{};  // the nonce of message 0; that of others is this XOR their number
};

class SealedStream {
 public:
  // So many messages under one key, which keeps AES-GCM far from where it begins to leak. At ten
  // messages a second that is 13 years.
  static constexpr uint64_t kMaxMessages = uint64_t{1} << 32;
  // And so many bytes, 2^34 blocks of AES, before its blocks begin to look less than random: as TLS
  // 1.3 has it (RFC 8446, 5.5). At 100 KB a second that is a month.
  static constexpr uint64_t kMaxBytes = uint64_t{1} << 38;

  // `number`: of the first message. `bytes`: that were sealed before it.
  explicit SealedStream(const SealKey& key, uint64_t number = 0, uint64_t bytes = 0);
  SealedStream(SealedStream&&) = default;
  SealedStream& operator=(SealedStream&&) = default;
  ~SealedStream();

  bool used_up() const { return number_ >= kMaxMessages || bytes_ >= kMaxBytes; }
  // Writes payload.size() + kSealOverhead bytes to `out`. The message has a number once it is on
  // its way: Next is to be called before another is sealed, unless no byte of it has left this
  // process.
  void Seal(uint8_t type, std::string_view payload, char* out);
  void Next() {
    ++number_;
    bytes_ += size_;
  }

  struct Message {
    uint8_t type;
    std::string_view payload;  // in the caller's room
  };
  // `room` has sealed.size() bytes. Nothing if this is not the next message.
  std::optional<Message> Open(std::string_view sealed, char* room);

 private:
  struct Gcm;  // of one key; is wiped from memory when it ends
  struct Wipe {
    void operator()(Gcm* gcm) const;
  };
  void SetNonce();

  std::unique_ptr<Gcm, Wipe> gcm_;
  std::array<uint8_t, 12> start_;
  uint64_t number_;
  uint64_t bytes_;
  size_t size_ = 0;  // of the message that was sealed or opened last
};

// Of both directions, as one side has them.
struct LinkSeals {
  SealedStream send;
  SealedStream receive;
};

}  // namespace sonde::tree
