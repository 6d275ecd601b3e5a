// Bytes that grow, and deadlines: the parts of a runtime that questions need, made with the C
// library alone.
//
// Memory: malloc. Once there is none, a Bytes stays bad and takes nothing more.
// Thread safety: values; one thread at a time.
#pragma once

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <string_view>

#include "core/clocks.h"

namespace sonde::client {

class Bytes {
 public:
  Bytes() = default;
  ~Bytes() { free(data_); }
  Bytes(const Bytes&) = delete;
  Bytes& operator=(const Bytes&) = delete;

  bool ok() const { return ok_; }
  size_t size() const { return size_; }
  std::string_view view() const { return {data_, size_}; }
  void Clear() { size_ = 0; }
  // The caller frees it.
  char* Release() {
    char* const data = data_;
    data_ = nullptr;
    size_ = capacity_ = 0;
    return data;
  }

  void Append(const void* from, size_t count) {
    if (!ok_ || count == 0 || !Reserve(size_ + count)) return;
    memcpy(data_ + size_, from, count);
    size_ += count;
  }
  template <typename T>
  void Fixed(T value) {
    Append(&value, sizeof(value));
  }
  void Varint(uint64_t value) {
    unsigned char raw[10];
    size_t n = 0;
    for (; value >= 0x80; value >>= 7) raw[n++] = static_cast<unsigned char>(value | 0x80);
    raw[n++] = static_cast<unsigned char>(value);
    Append(raw, n);
  }
  void Signed(int64_t value) {
    Varint((static_cast<uint64_t>(value) << 1) ^ static_cast<uint64_t>(value >> 63));
  }
  void Text(std::string_view text) {
    Varint(text.size());
    Append(text.data(), text.size());
  }

 private:
  bool Reserve(size_t wanted) {
    if (wanted <= capacity_) return true;
    const size_t capacity = wanted + wanted / 2 + 64;
    void* const grown = realloc(data_, capacity);
    if (grown == nullptr) return ok_ = false;
    data_ = static_cast<char*>(grown);
    capacity_ = capacity;
    return true;
  }

  char* data_ = nullptr;
  size_t size_ = 0;
  size_t capacity_ = 0;
  bool ok_ = true;
};

// The time until which a call may wait.
class Deadline {
 public:
  // -1: for ever.
  explicit Deadline(int timeout_ms) : end_(timeout_ms < 0 ? -1 : Now() + timeout_ms) {}
  // For poll(): -1 for ever, 0 when it is over.
  int left_ms() const {
    if (end_ < 0) return -1;
    const int64_t left = end_ - Now();
    return left > 0 ? static_cast<int>(left) : 0;
  }

 private:
  static int64_t Now() { return MonotonicNow() / 1'000'000; }
  int64_t end_;
};

}  // namespace sonde::client
