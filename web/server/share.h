// A part of something that all connections of a server share, such as the bytes of answers on their
// way.
//
// Thread safety: made and destroyed by one thread each; the sum is an atomic.
#pragma once

#include <atomic>
#include <cstddef>

namespace sonde::web {

// Counts in `all` as long as this lives.
class Share {
 public:
  Share(std::atomic<size_t>& all, size_t amount)
      : all_(all), amount_(amount), before_(all.fetch_add(amount)) {}
  ~Share() { all_ -= amount_; }
  Share(const Share&) = delete;
  Share& operator=(const Share&) = delete;

  size_t before() const { return before_; }  // what the others had

 private:
  std::atomic<size_t>& all_;
  const size_t amount_;
  const size_t before_;
};

}  // namespace sonde::web
