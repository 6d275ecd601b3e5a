// A queue that keeps its elements when they are taken off, so that their buffers serve those that
// come after. It grows when it must and never shrinks: warm, it allocates nothing.
//
// Elements lie in the order in which they were pushed; operator[] counts from the oldest.
//
// Thread safety: none.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

namespace sonde {

template <typename T>
class Ring {
 public:
  bool empty() const { return size_ == 0; }
  size_t size() const { return size_; }

  T& operator[](size_t i) { return slots_[(first_ + i) & (slots_.size() - 1)]; }
  const T& operator[](size_t i) const { return slots_[(first_ + i) & (slots_.size() - 1)]; }
  T& front() { return (*this)[0]; }
  const T& front() const { return (*this)[0]; }
  T& back() { return (*this)[size_ - 1]; }
  const T& back() const { return (*this)[size_ - 1]; }

  // One more element at the end, which is as some former one was left: the caller sets all of it.
  T& Push() {
    if (size_ == slots_.size()) Grow();
    ++size_;
    return back();
  }
  void PopFront() {
    first_ = (first_ + 1) & (slots_.size() - 1);
    --size_;
  }
  void Clear() { first_ = size_ = 0; }
  // A new element, to be set as after Push, before the one that is now at `i`.
  T& Insert(size_t i) {
    Push();
    for (size_t at = size_ - 1; at > i; --at) std::swap((*this)[at], (*this)[at - 1]);
    return (*this)[i];
  }
  // Takes off all for which `goes` is true; it is called once for each, from the oldest on.
  template <typename F>
  void EraseIf(F goes) {
    size_t kept = 0;
    for (size_t i = 0; i < size_; ++i) {
      if (goes((*this)[i])) continue;
      if (kept != i) std::swap((*this)[kept], (*this)[i]);
      ++kept;
    }
    size_ = kept;
  }
  // How many come before the first for which `before` is false; for all after that it is false too.
  template <typename F>
  size_t CountWhile(F before) const {
    size_t low = 0;
    for (size_t high = size_; low < high;) {
      const size_t middle = (low + high) / 2;
      if (before((*this)[middle])) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    return low;
  }

 private:
  void Grow() {
    std::vector<T> more(slots_.empty() ? 4 : 2 * slots_.size());  // a power of two
    for (size_t i = 0; i < size_; ++i) more[i] = std::move((*this)[i]);
    slots_ = std::move(more);
    first_ = 0;
  }

  std::vector<T> slots_;
  size_t first_ = 0;
  size_t size_ = 0;
};

}  // namespace sonde
