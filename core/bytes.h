// Reading and writing bytes that cross a socket, shared memory or a file.
//
// All integers are little-endian. ByteReader never reads past its end: the first read that would do
// so turns the reader bad, every later read gives zero, and the caller asks ok() once at the end.
// Lengths and counts are checked against the bytes left before memory is allocated for them.
//
// Header-only and free of dependencies, so that spank/ and libclient/ may use it.
// Thread safety: values; one thread at a time.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

namespace sonde {

static_assert(std::endian::native == std::endian::little, "formats are written as they lie");

inline uint64_t ZigZag(int64_t v) {
  return (static_cast<uint64_t>(v) << 1) ^ static_cast<uint64_t>(v >> 63);
}
inline int64_t UnZigZag(uint64_t v) {
  return static_cast<int64_t>(v >> 1) ^ -static_cast<int64_t>(v & 1);
}

// Appends to a string it does not own.
class ByteWriter {
 public:
  explicit ByteWriter(std::string& out) : out_(out) {}

  template <typename T>
  requires std::is_arithmetic_v<T>
  void Fixed(T value) {
    char raw[sizeof(T)];
    std::memcpy(raw, &value, sizeof(T));
    out_.append(raw, sizeof(T));
  }
  void Varint(uint64_t value) {
    char raw[10];
    size_t n = 0;
    while (value >= 0x80) {
      raw[n++] = static_cast<char>(value | 0x80);
      value >>= 7;
    }
    raw[n++] = static_cast<char>(value);
    out_.append(raw, n);
  }
  void Signed(int64_t value) { Varint(ZigZag(value)); }
  // A varint length, then the bytes.
  void Text(std::string_view text) {
    Varint(text.size());
    out_.append(text);
  }
  void Raw(std::string_view bytes) { out_.append(bytes); }
  size_t size() const { return out_.size(); }

 private:
  std::string& out_;
};

// One varint by itself.
inline std::string VarintBytes(uint64_t value) {
  std::string bytes;
  ByteWriter(bytes).Varint(value);
  return bytes;
}

class ByteReader {
 public:
  explicit ByteReader(std::string_view bytes) : at_(bytes.data()), end_(at_ + bytes.size()) {}

  bool ok() const { return ok_; }
  size_t left() const { return static_cast<size_t>(end_ - at_); }
  // True when everything was read and nothing was wrong.
  bool done() const { return ok_ && at_ == end_; }
  void Fail() {
    ok_ = false;
    at_ = end_;
  }

  template <typename T>
  requires std::is_arithmetic_v<T> T Fixed() {
    T value{};
    if (left() < sizeof(T)) {
      Fail();
      return value;
    }
    std::memcpy(&value, at_, sizeof(T));
    at_ += sizeof(T);
    return value;
  }
  uint64_t Varint() {
    uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      if (at_ == end_) break;
      const auto byte = static_cast<unsigned char>(*at_++);
      if (shift == 63 && byte > 1) break;
      value |= static_cast<uint64_t>(byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
    Fail();
    return 0;
  }
  int64_t Signed() { return UnZigZag(Varint()); }
  // Reads the next `n`, mostly of one or two bytes: eight at a time while all have one byte.
  void Varints(uint64_t* out, size_t n) {
    constexpr uint64_t kMore = 0x8080808080808080;  // set in all bytes but a varint's last
    uint64_t* const end = out + n;
    while (out < end) {
      uint64_t eight = kMore;
      if (left() >= sizeof eight) std::memcpy(&eight, at_, sizeof eight);
      if ((eight & kMore) == 0 && end - out >= 8) {
        for (int i = 0; i < 8; ++i) out[i] = (eight >> (8 * i)) & 0xff;
        out += 8;
        at_ += 8;
      } else if ((eight & 0x80) == 0) {
        *out++ = eight & 0x7f;
        at_ += 1;
      } else if ((eight & 0x8000) == 0) {
        *out++ = (eight & 0x7f) | ((eight >> 1) & 0x3f80);
        at_ += 2;
      } else {
        *out++ = Varint();
      }
    }
  }
  // Passes over `n` varints without decoding them: eight bytes at a time while all varints that end
  // in these bytes are among the `n`.
  void SkipVarints(size_t n) {
    constexpr uint64_t kLast = 0x8080808080808080;  // clear in a varint's last byte
    for (uint64_t eight; n >= 8 && left() >= sizeof eight; at_ += sizeof eight) {
      std::memcpy(&eight, at_, sizeof eight);
      n -= static_cast<size_t>((((~eight & kLast) >> 7) * 0x0101010101010101) >> 56);
    }
    for (; n > 0 && at_ != end_; ++at_) n -= static_cast<unsigned char>(*at_) < 0x80 ? 1 : 0;
    if (n > 0) Fail();
  }
  // Reads a count of items of at least `min_size` bytes each; bad if too few bytes are left.
  size_t Count(size_t min_size, size_t limit) {
    const uint64_t n = Varint();
    if (n > limit || n > left() / (min_size == 0 ? 1 : min_size)) {
      Fail();
      return 0;
    }
    return static_cast<size_t>(n);
  }
  // Points into the bytes being read; valid as long as they are.
  std::string_view Text(size_t limit) {
    const size_t n = Count(1, limit);
    return Raw(n);
  }
  std::string_view Raw(size_t n) {
    if (n > left()) {
      Fail();
      return {};
    }
    std::string_view text(at_, n);
    at_ += n;
    return text;
  }

 private:
  const char* at_;
  const char* end_;
  bool ok_ = true;
};

}  // namespace sonde
