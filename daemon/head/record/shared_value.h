// A value that one thread changes and others read; neither side waits for the other.
//
// A reader keeps the value as it was, for as long as it likes, and works on it without a lock. The
// writer changes the value in place, or in a copy of its own while a reader has it; a reader holds
// the lock for no longer than it takes to count one more reader.
//
// Thread safety: Get from any thread; Change too, one after the other.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>

namespace sonde::head {

template <typename T>
class SharedValue {
 public:
  // The value as it was. Must not outlive the SharedValue.
  class Look {
   public:
    Look(const Look&) = delete;
    Look& operator=(const Look&) = delete;
    // Under the lock, so that a later change in place comes behind what was read here. The last
    // reader of an old value frees it, without the lock.
    ~Look() {
      std::shared_ptr<const T> last;
      const std::lock_guard lock(owner_.mutex_);
      value_.use_count() > 1 ? value_.reset() : last.swap(value_);
    }

    const T& operator*() const { return *value_; }
    const T* operator->() const { return value_.get(); }
    // What SharedValue::version was when the value was this one.
    uint64_t version() const { return version_; }

   private:
    friend class SharedValue;
    explicit Look(const SharedValue& owner) : owner_(owner) {
      const std::lock_guard lock(owner.mutex_);
      value_ = owner.value_;
      version_ = owner.version_;
    }

    const SharedValue& owner_;
    std::shared_ptr<const T> value_;
    uint64_t version_ = 0;
  };

  template <typename... Arguments>
  explicit SharedValue(Arguments&&... arguments)
      : value_(std::make_shared<T>(std::forward<Arguments>(arguments)...)) {}

  Look Get() const { return Look(*this); }
  // Another one after each change: who has made something of the value knows whether it still fits.
  uint64_t version() const {
    const std::lock_guard lock(mutex_);
    return version_;
  }

  template <typename F>
  void Change(F&& change) {
    const std::lock_guard one(changing_);
    std::unique_lock lock(mutex_);
    if (value_.use_count() == 1) {
      ++version_;
      return change(*value_);
    }
    std::shared_ptr<T> seen = value_;
    lock.unlock();
    auto changed = std::make_shared<T>(*seen);
    change(*changed);
    lock.lock();
    ++version_;
    value_.swap(changed);
  }

 private:
  std::mutex changing_;  // taken before mutex_
  mutable std::mutex mutex_;
  std::shared_ptr<T> value_;
  uint64_t version_ = 0;
};

}  // namespace sonde::head
