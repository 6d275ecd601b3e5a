// A share of an amount that all connections of a server have together, such as the bytes of answers
// under way.
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

  size_t before() const { return before_; }  // the sum before this share

 private:
  std::atomic<size_t>& all_;
  const size_t amount_;
  const size_t before_;
};

}  // namespace sonde::web
