#include "daemon/collect/gpu/worker.h"

#include <fmt/core.h>

#include <chrono>
#include <condition_variable>
#include <iterator>
#include <mutex>
#include <system_error>

#include "core/signals_blocked.h"

namespace sonde::collect::gpu {

struct Worker::Shared {
  std::mutex mutex;
  std::condition_variable asked_or_stopped;
  std::condition_variable done;
  bool asked = false;  // until the reading is there
  bool stop = false;
  bool ended = false;
  bool fresh = false;  // not taken yet
  std::vector<DeviceReading> devices;
  std::vector<std::string> notes;
  Nanos took = 0;
};

Result<std::unique_ptr<Worker>> Worker::Start(std::unique_ptr<Fleet> fleet) {
  auto shared = std::make_shared<Shared>();
  std::unique_ptr<Worker> worker(new Worker(shared));
  // The daemon's signals are for its own thread.
  const SignalsBlocked blocked;
  try {
    worker->thread_ = std::thread([shared, fleet = std::move(fleet)]() mutable {
      Run(*shared, *fleet);
      fleet.reset();
      const std::lock_guard lock(shared->mutex);
      shared->ended = true;
      shared->done.notify_all();
    });
  } catch (const std::system_error& e) {
    return Status(Code::kUnavailable, fmt::format("start a thread that reads GPUs: {}", e.what()));
  }
  return worker;
}

void Worker::Run(Shared& shared, Fleet& fleet) {
  std::unique_lock lock(shared.mutex);
  for (;;) {
    shared.asked_or_stopped.wait(lock, [&] { return shared.asked || shared.stop; });
    if (shared.stop) return;
    lock.unlock();
    const Nanos start = Clock::System().Monotonic();
    fleet.Read();
    const Nanos took = Clock::System().Monotonic() - start;
    lock.lock();
    shared.devices = fleet.devices();
    std::vector<std::string> notes = fleet.TakeNotes();
    shared.notes.insert(shared.notes.end(), std::make_move_iterator(notes.begin()),
                        std::make_move_iterator(notes.end()));
    shared.took = took;
    shared.fresh = true;
    shared.asked = false;
    shared.done.notify_all();
  }
}

Worker::~Worker() {
  if (!thread_.joinable()) return;
  std::unique_lock lock(shared_->mutex);
  shared_->stop = true;
  shared_->asked_or_stopped.notify_all();
  const bool ended = shared_->done.wait_for(lock, std::chrono::nanoseconds(kPatience),
                                            [this] { return shared_->ended; });
  lock.unlock();
  if (ended) {
    thread_.join();
  } else {
    thread_.detach();
  }
}

bool Worker::Ask() {
  const std::lock_guard lock(shared_->mutex);
  if (shared_->asked) return false;
  shared_->asked = true;
  shared_->asked_or_stopped.notify_all();
  return true;
}

bool Worker::Wait(Nanos patience) {
  std::unique_lock lock(shared_->mutex);
  return shared_->done.wait_for(lock, std::chrono::nanoseconds(patience),
                                [this] { return !shared_->asked; });
}

bool Worker::Take(std::vector<DeviceReading>& devices, std::vector<std::string>& notes) {
  const std::lock_guard lock(shared_->mutex);
  if (!shared_->fresh) return false;
  shared_->fresh = false;
  devices = shared_->devices;
  took_ = shared_->took;
  notes.insert(notes.end(), std::make_move_iterator(shared_->notes.begin()),
               std::make_move_iterator(shared_->notes.end()));
  shared_->notes.clear();
  return true;
}

}  // namespace sonde::collect::gpu
