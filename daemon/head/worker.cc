#include "daemon/head/worker.h"

#include <system_error>
#include <utility>

#include "core/log.h"
#include "core/niceness.h"

namespace sonde::head {

Worker::~Worker() {
  std::deque<std::function<void()>> dropped;
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
    dropped.swap(jobs_);
  }
  wake_.notify_one();
  if (thread_.joinable()) thread_.join();
}

void Worker::Do(std::function<void()> job) {
  {
    const std::lock_guard lock(mutex_);
    if (Start()) jobs_.push_back(std::exchange(job, nullptr));
  }
  if (job) return job();
  wake_.notify_one();
}

bool Worker::Start() {
  if (thread_.joinable()) return true;
  try {
    thread_ = std::thread([this] {
      BeNicer(niceness_);
      Run();
    });
  } catch (const std::system_error& e) {
    log::Warning("no thread for questions: {}", e.what());
  }
  return thread_.joinable();
}

void Worker::Run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    wake_.wait(lock, [this] { return stop_ || !jobs_.empty(); });
    if (stop_) return;
    const std::function<void()> job = std::move(jobs_.front());
    jobs_.pop_front();
    lock.unlock();
    job();
    lock.lock();
  }
}

}  // namespace sonde::head
