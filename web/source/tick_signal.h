// Tells a web server that a running step has a new row.
//
// Thread safety: from any thread. Tell calls the listener on the caller's thread, which must not be
// blocked: a listener only posts.
#pragma once

#include <functional>
#include <mutex>
#include <utility>

namespace sonde::web {

class TickSignal {
 public:
  // One listener at a time; the last one counts.
  void Listen(std::function<void()> listener) {
    const std::lock_guard lock(mutex_);
    listener_ = std::move(listener);
  }
  // After it returns no listener is called, and no call is under way.
  void Forget() { Listen(nullptr); }
  void Tell() {
    const std::lock_guard lock(mutex_);
    if (listener_) listener_();
  }

 private:
  std::mutex mutex_;
  std::function<void()> listener_;
};

}  // namespace sonde::web
