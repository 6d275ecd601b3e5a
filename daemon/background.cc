#include "daemon/background.h"

#include <fmt/core.h>

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <system_error>

#include "core/signals_blocked.h"

namespace sonde::tree {

struct BackgroundCall::Shared {
  std::mutex mutex;
  std::condition_variable ended;
  Loop* loop;  // null once the owner is gone
  bool done = false;
};

BackgroundCall::BackgroundCall(Loop& loop, std::function<Loop::Task()> work, Nanos patience)
    : shared_(std::make_shared<Shared>()), patience_(patience) {
  shared_->loop = &loop;
  // The daemon's signals are for its own thread.
  const SignalsBlocked blocked;
  thread_ = std::thread([shared = shared_, work = std::move(work)]() mutable {
    Loop::Task outcome = work();
    work = nullptr;
    const std::lock_guard lock(shared->mutex);
    shared->done = true;
    shared->ended.notify_all();
    if (shared->loop == nullptr) return;
    shared->loop->Post([shared, outcome = std::move(outcome)] {
      // Both this and the owner's destructor are on the loop's thread.
      if (shared->loop != nullptr) outcome();
    });
  });
}

Result<std::unique_ptr<BackgroundCall>> BackgroundCall::Start(Loop& loop,
                                                              std::function<Loop::Task()> work,
                                                              Nanos patience) {
  try {
    return std::unique_ptr<BackgroundCall>(new BackgroundCall(loop, std::move(work), patience));
  } catch (const std::system_error& e) {
    return Status(Code::kUnavailable, fmt::format("start a helper thread: {}", e.what()));
  }
}

BackgroundCall::~BackgroundCall() {
  std::unique_lock lock(shared_->mutex);
  shared_->loop = nullptr;
  const bool ended = shared_->ended.wait_for(lock, std::chrono::nanoseconds(patience_),
                                             [this] { return shared_->done; });
  lock.unlock();
  if (ended) {
    thread_.join();
  } else {
    thread_.detach();
  }
}

}  // namespace sonde::tree
