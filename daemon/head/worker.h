// A thread of the head's that does one job after the other, so that the loop need not. It begins
// with the first job.
//
// Thread safety: Do from any thread; made and destroyed by one.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

namespace sonde::head {

class Worker {
 public:
  // `niceness`: how much more of it than the process has; 0 or more.
  explicit Worker(int niceness) : niceness_(niceness) {}
  // Waits for the job that is being done; the others are dropped.
  ~Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  // Where no thread can be started it is done at once.
  void Do(std::function<void()> job);

 private:
  bool Start();  // with the mutex held
  void Run();

  const int niceness_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<std::function<void()>> jobs_;
  bool stop_ = false;
  std::thread thread_;  // last: it uses the others
};

}  // namespace sonde::head
