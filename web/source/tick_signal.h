// Tells a web server that a running step has a new row.
//
// Thread safety: from any thread. Tell calls the listener on its own thread, which must not be held
// up: a listener only posts.
#pragma once

#include <functional>
#include <mutex>
#include <utility>

namespace sonde::web {

class TickSignal {
 public:
  // One at a time; the last one that came is told.
  void Listen(std::function<void()> listener) {
    const std::lock_guard lock(mutex_);
    listener_ = std::move(listener);
  }
  // When it returns nobody is told any more, nor being told.
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
