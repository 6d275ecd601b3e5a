// The thread that reads GPUs.
//
// A driver may take its time: tens to hundreds of milliseconds to open, milliseconds for each
// device, and for ever with a device that is broken. The daemon's loop, which has ticks to keep and
// 2 s to leave, cannot wait for that. So the libraries live on a thread of their own, which reads
// when it is asked to; the caller waits as long as it likes and takes the newest reading.
//
// If the thread is inside a driver when the worker goes, it is left there, with all it uses.
//
// Thread safety: one thread, the loop's.
#pragma once

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "core/status.h"
#include "core/time.h"
#include "daemon/collect/gpu/fleet.h"

namespace sonde::collect::gpu {

class Worker {
 public:
  // How long the destructor waits for a reading under way: libraries had better not be inside a
  // call when the process exits.
  static constexpr Nanos kPatience = 200 * kMillisecond;

  static Result<std::unique_ptr<Worker>> Start(std::unique_ptr<Fleet> fleet);
  ~Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  // Asks for a reading. False, and nothing done, if one is under way.
  bool Ask();
  // Waits for the reading that was asked for; true if none is under way.
  bool Wait(Nanos patience);
  // Takes over the newest reading, in place. False, and nothing changed, if it was taken before.
  bool Take(std::vector<DeviceReading>& devices, std::vector<std::string>& notes);
  // How long the newest reading took, by the system's clock.
  Nanos took() const { return took_; }

 private:
  struct Shared;

  explicit Worker(std::shared_ptr<Shared> shared) : shared_(std::move(shared)) {}
  static void Run(Shared& shared, Fleet& fleet);

  std::shared_ptr<Shared> shared_;
  std::thread thread_;
  Nanos took_ = 0;
};

}  // namespace sonde::collect::gpu
