// One call that may block, on a thread of its own, with its outcome on the loop.
//
// For calls that no loop may wait for: the resolver, the loading of libfabric. The owner is on the
// loop's thread. Destroying it drops the outcome; the thread then ends by itself and touches
// neither the loop nor the owner.
//
// Thread safety: the loop's thread only; `work` runs on the other thread and must own all it uses.
#pragma once

#include <functional>
#include <memory>
#include <thread>

#include "core/status.h"
#include "core/time.h"
#include "daemon/loop.h"

namespace sonde::tree {

class BackgroundCall {
 public:
  // `work` returns what is to be done on the loop's thread with its outcome. The destructor waits
  // up to `patience` for work that is under way: for libraries that had better not be inside a call
  // when the process exits.
  static Result<std::unique_ptr<BackgroundCall>> Start(Loop& loop, std::function<Loop::Task()> work,
                                                       Nanos patience);
  ~BackgroundCall();
  BackgroundCall(const BackgroundCall&) = delete;
  BackgroundCall& operator=(const BackgroundCall&) = delete;

 private:
  struct Shared;

  BackgroundCall(Loop& loop, std::function<Loop::Task()> work, Nanos patience);

  std::shared_ptr<Shared> shared_;
  Nanos patience_;
  std::thread thread_;
};

}  // namespace sonde::tree
