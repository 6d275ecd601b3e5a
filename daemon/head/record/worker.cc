#include "daemon/head/record/worker.h"

#include <condition_variable>
#include <deque>
#include <mutex>
#include <system_error>
#include <utility>

#include "core/log.h"
#include "core/niceness.h"

namespace sonde::head {

struct Worker::Jobs {
  std::mutex mutex;
  std::condition_variable wake;
  std::deque<std::function<void()>> waiting;
  bool stop = false;

  void Run();
};

void Worker::Jobs::Run() {
  std::unique_lock lock(mutex);
  for (;;) {
    wake.wait(lock, [this] { return stop || !waiting.empty(); });
    if (stop) return;
    std::function<void()> job = std::move(waiting.front());
    waiting.pop_front();
    lock.unlock();
    job();
    job = nullptr;  // what it holds goes without the lock
    lock.lock();
  }
}

Worker::Worker(int niceness) : niceness_(niceness), jobs_(std::make_shared<Jobs>()) {}

Worker::~Worker() {
  std::deque<std::function<void()>> dropped;
  {
    const std::lock_guard lock(jobs_->mutex);
    jobs_->stop = true;
    dropped.swap(jobs_->waiting);
  }
  jobs_->wake.notify_one();
  if (!thread_.joinable()) return;
  if (thread_.get_id() == std::this_thread::get_id()) {
    thread_.detach();
  } else {
    thread_.join();
  }
}

void Worker::Do(std::function<void()> job) {
  {
    const std::lock_guard lock(jobs_->mutex);
    if (Start()) jobs_->waiting.push_back(std::exchange(job, nullptr));
  }
  if (job) return job();
  jobs_->wake.notify_one();
}

bool Worker::Start() {
  if (thread_.joinable()) return true;
  try {
    thread_ = std::thread([jobs = jobs_, niceness = niceness_] {
      BeNicer(niceness);
      jobs->Run();
    });
  } catch (const std::system_error& e) {
    log::Warning("no thread for questions: {}", e.what());
  }
  return thread_.joinable();
}

}  // namespace sonde::head
