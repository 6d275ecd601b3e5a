// A thread of the head's that does one job after the other, so that the loop need not. It begins
// with the first job.
//
// Thread safety: Do from any thread; made by one, destroyed by any, also by a job of its own, which
// may hold the last of what it is part of.
#pragma once

#include <functional>
#include <memory>
#include <thread>

namespace sonde::head {

class Worker {
 public:
  // `niceness`: how much more niceness the thread has than the process; 0 or more.
  explicit Worker(int niceness);
  // Waits for the job that is being done; the others are dropped.
  ~Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  // Where no thread can be started it is done at once.
  void Do(std::function<void()> job);

 private:
  struct Jobs;

  bool Start();  // with the jobs' mutex held

  const int niceness_;
  const std::shared_ptr<Jobs> jobs_;  // the thread's as well
  std::thread thread_;
};

}  // namespace sonde::head
