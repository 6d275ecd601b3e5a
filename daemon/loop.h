// The event loop of a daemon: descriptors, timers and calls from other threads, on one thread.
//
// A sleeping loop costs nothing: it wakes for a ready descriptor, the earliest timer or a Post.
// Callbacks run on the thread that runs Run(); they may add and remove watches and timers, also
// their own.
//
// Thread safety: Post and Stop from any thread; everything else from the loop's thread, or before
// Run.
#pragma once

#include <sys/epoll.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/status.h"
#include "core/time.h"
#include "core/unique_fd.h"

namespace sonde {

class Loop {
 public:
  using Task = std::function<void()>;
  using Ready = std::function<void(uint32_t epoll_events)>;
  using TimerId = uint64_t;

  // Timers go by `clock`. A loop that sleeps is woken by the machine's own clock; so a test that
  // has another one does not let the loop sleep.
  explicit Loop(const Clock& clock = Clock::System());
  ~Loop();
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;

  // One callback per descriptor. Watching it again changes events and callback.
  Status Watch(int fd, uint32_t epoll_events, Ready ready);
  Status ChangeEvents(int fd, uint32_t epoll_events);
  void Unwatch(int fd);

  // Runs `task` once at a monotonic time. 0 is never a TimerId. Allocates nothing once as many
  // timers were there before, and what `task` captures is no more than two pointers.
  TimerId At(Nanos monotonic, Task task);
  TimerId After(Nanos delay, Task task) { return At(clock_.Monotonic() + delay, std::move(task)); }
  void Cancel(TimerId id);

  // Called before every sleep; false: do not sleep now, there is work already. For libraries whose
  // descriptors must be armed. A check may do that work itself, and remove itself.
  using SleepCheck = std::function<bool()>;
  using SleepCheckId = uint64_t;
  SleepCheckId AddSleepCheck(SleepCheck check);
  void RemoveSleepCheck(SleepCheckId id) { sleep_checks_.erase(id); }
  // How often the loop woke up: an idle loop's does not grow.
  uint64_t wakeups() const { return wakeups_; }

  void Post(Task task);

  // Until Stop; may be called again then.
  void Run();
  void Stop();

 private:
  struct Timer {
    Nanos when;
    TimerId id;  // in the order in which they were made; the slot of its task below
    bool operator>(const Timer& o) const { return std::pair(when, id) > std::pair(o.when, o.id); }
  };
  struct Slot {
    TimerId id = 0;  // 0: free
    Task task;
  };
  static constexpr TimerId kSlots = 1u << 24;
  struct Watched {
    Ready ready;
    uint32_t generation;
  };

  void RunPosted();
  Slot* SlotOf(TimerId id);
  Task TakeTimer(TimerId id);
  void DropCancelled();
  void RunTimers();
  void ArmTimer();
  bool MaySleep();
  int Sleep(epoll_event* events, int capacity);

  const Clock& clock_;
  UniqueFd epoll_;
  UniqueFd timer_fd_;
  UniqueFd wake_fd_;
  std::unordered_map<int, std::shared_ptr<Watched>> watched_;
  uint32_t next_generation_ = 1;
  std::vector<Timer> heap_;
  std::vector<Slot> slots_;
  std::vector<uint32_t> free_slots_;
  TimerId next_timer_ = 1;
  Nanos armed_ = 0;
  std::map<SleepCheckId, std::shared_ptr<SleepCheck>> sleep_checks_;
  SleepCheckId next_sleep_check_ = 1;
  uint64_t wakeups_ = 0;
  std::mutex posted_mutex_;
  std::vector<Task> posted_;
  std::atomic<bool> stop_{false};
};

}  // namespace sonde
