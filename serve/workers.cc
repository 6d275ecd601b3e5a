#include "serve/workers.h"

namespace sonde::serve {

Workers::Workers(size_t threads) : most_(threads) {
  for (size_t i = 0; i < threads; ++i) threads_.emplace_back([this] { Work(); });
}

Workers::~Workers() { Stop(); }

void Workers::Stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
  // Destroying these tasks may call back, and post.
  std::deque<std::function<void()>> dropped[2];
  {
    const std::lock_guard lock(mutex_);
    dropped[0].swap(short_);
    dropped[1].swap(long_);
  }
}

void Workers::Post(Length length, std::function<void()> work) {
  {
    const std::lock_guard lock(mutex_);
    if (stopping_) return;
    (length == Length::kLong ? long_ : short_).push_back(std::move(work));
  }
  wake_.notify_one();
}

void Workers::Work() {
  for (;;) {
    std::unique_lock lock(mutex_);
    wake_.wait(lock, [this] { return stopping_ || !short_.empty() || MayBeginLong(); });
    if (stopping_) return;
    const bool is_long = short_.empty();
    std::deque<std::function<void()>>& queue = is_long ? long_ : short_;
    std::function<void()> work = std::move(queue.front());
    queue.pop_front();
    if (is_long) ++long_running_;
    lock.unlock();
    work();
    work = nullptr;
    if (!is_long) continue;
    lock.lock();
    --long_running_;
    // Another task may have waited for that.
    wake_.notify_one();
  }
}

}  // namespace sonde::serve
