#include "daemon/loop.h"

#include <fmt/core.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>

namespace sonde {

namespace {

// An event carries the descriptor and which watch of that number it was for: within one round a
// callback may close it and open another under the same number.
epoll_event EventFor(int fd, uint32_t generation, uint32_t epoll_events) {
  return {.events = epoll_events,
          .data = {.u64 = static_cast<uint64_t>(generation) << 32 | static_cast<uint32_t>(fd)}};
}

}  // namespace

Loop::Loop(const Clock& clock)
    : clock_(clock),
      epoll_(epoll_create1(EPOLL_CLOEXEC)),
      timer_fd_(timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK)),
      wake_fd_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  for (const int fd : {timer_fd_.get(), wake_fd_.get()}) {
    epoll_event event = EventFor(fd, 0, EPOLLIN);
    epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event);
  }
}

Loop::~Loop() = default;

Status Loop::Watch(int fd, uint32_t epoll_events, Ready ready) {
  const uint32_t generation = next_generation_++;
  epoll_event event = EventFor(fd, generation, epoll_events);
  const int op = watched_.contains(fd) ? EPOLL_CTL_MOD : EPOLL_CTL_ADD;
  if (epoll_ctl(epoll_.get(), op, fd, &event) != 0) {
    return SystemError(fmt::format("watch descriptor {}", fd));
  }
  watched_[fd] = std::make_shared<Watched>(Watched{std::move(ready), generation});
  return {};
}

Status Loop::ChangeEvents(int fd, uint32_t epoll_events) {
  const auto at = watched_.find(fd);
  if (at == watched_.end()) {
    return {Code::kInternal, fmt::format("change the events of descriptor {}: not watched", fd)};
  }
  epoll_event event = EventFor(fd, at->second->generation, epoll_events);
  if (epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, fd, &event) != 0) {
    return SystemError(fmt::format("change the events of descriptor {}", fd));
  }
  return {};
}

void Loop::Unwatch(int fd) {
  if (watched_.erase(fd) != 0) epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd, nullptr);
}

// Cancelled timers stay in the heap until their time; not more of them than of the others.
void Loop::DropCancelled() {
  constexpr size_t kFew = 32;
  if (heap_.size() < kFew + 2 * (slots_.size() - free_slots_.size())) return;
  std::erase_if(heap_, [this](const Timer& timer) { return SlotOf(timer.id) == nullptr; });
  std::make_heap(heap_.begin(), heap_.end(), std::greater<>());
}

Loop::TimerId Loop::At(Nanos monotonic, Task task) {
  DropCancelled();
  if (free_slots_.empty()) {
    free_slots_.push_back(static_cast<uint32_t>(slots_.size()));
    slots_.emplace_back();
  }
  const uint32_t slot = free_slots_.back();
  free_slots_.pop_back();
  const TimerId id = next_timer_++ * kSlots + slot;
  slots_[slot].id = id;
  slots_[slot].task = std::move(task);
  heap_.push_back({monotonic, id});
  std::push_heap(heap_.begin(), heap_.end(), std::greater<>());
  return id;
}

// nullptr: it has run, or was cancelled.
Loop::Slot* Loop::SlotOf(TimerId id) {
  const size_t slot = id % kSlots;
  return id != 0 && slot < slots_.size() && slots_[slot].id == id ? &slots_[slot] : nullptr;
}

Loop::Task Loop::TakeTimer(TimerId id) {
  Slot* slot = SlotOf(id);
  if (slot == nullptr) return {};
  slot->id = 0;
  free_slots_.push_back(static_cast<uint32_t>(slot - slots_.data()));
  return std::exchange(slot->task, nullptr);
}

void Loop::Cancel(TimerId id) { TakeTimer(id); }

Loop::SleepCheckId Loop::AddSleepCheck(SleepCheck check) {
  const SleepCheckId id = next_sleep_check_++;
  sleep_checks_.emplace(id, std::make_shared<SleepCheck>(std::move(check)));
  return id;
}

void Loop::Post(Task task) {
  {
    const std::lock_guard lock(posted_mutex_);
    posted_.push_back(std::move(task));
  }
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t n = write(wake_fd_.get(), &one, sizeof one);
}

void Loop::Stop() {
  stop_ = true;
  Post([] {});
}

void Loop::RunPosted() {
  std::vector<Task> tasks;
  {
    const std::lock_guard lock(posted_mutex_);
    tasks.swap(posted_);
  }
  for (Task& task : tasks) task();
}

void Loop::RunTimers() {
  const Nanos now = clock_.Monotonic();
  while (!heap_.empty() && heap_.front().when <= now) {
    std::pop_heap(heap_.begin(), heap_.end(), std::greater<>());
    const TimerId id = heap_.back().id;
    heap_.pop_back();
    const Task task = TakeTimer(id);
    if (task) task();  // else it was cancelled
  }
}

void Loop::ArmTimer() {
  while (!heap_.empty() && SlotOf(heap_.front().id) == nullptr) {  // cancelled ones cost no wake-up
    std::pop_heap(heap_.begin(), heap_.end(), std::greater<>());
    heap_.pop_back();
  }
  const Nanos when = heap_.empty() ? 0 : std::max<Nanos>(heap_.front().when, 1);
  if (when == armed_) return;
  itimerspec spec{};
  spec.it_value = {.tv_sec = when / kSecond, .tv_nsec = when % kSecond};
  timerfd_settime(timer_fd_.get(), TFD_TIMER_ABSTIME, &spec, nullptr);
  armed_ = when;
}

bool Loop::MaySleep() {
  bool may_sleep = true;
  for (auto at = sleep_checks_.begin(); at != sleep_checks_.end();) {
    const SleepCheckId id = at->first;
    const std::shared_ptr<SleepCheck> check = at->second;
    may_sleep &= (*check)();
    at = sleep_checks_.upper_bound(id);
  }
  return may_sleep;
}

int Loop::Sleep(epoll_event* events, int capacity) {
  const bool may_sleep = MaySleep();
  ArmTimer();
  const int n = epoll_wait(epoll_.get(), events, capacity, may_sleep ? -1 : 0);
  ++wakeups_;
  return std::max(n, 0);
}

void Loop::Run() {
  epoll_event events[64];
  while (!stop_) {
    const int n = Sleep(events, 64);
    for (int i = 0; i < n && !stop_; ++i) {
      const int fd = static_cast<int>(events[i].data.u64 & UINT32_MAX);
      if (fd == timer_fd_.get() || fd == wake_fd_.get()) {
        uint64_t count = 0;
        [[maybe_unused]] const ssize_t got = read(fd, &count, sizeof count);
        if (fd == timer_fd_.get()) armed_ = 0;
        continue;
      }
      // An earlier callback of this round may have removed it; and it may remove itself.
      const auto at = watched_.find(fd);
      if (at == watched_.end() || at->second->generation != events[i].data.u64 >> 32) continue;
      const std::shared_ptr<Watched> watched = at->second;
      watched->ready(events[i].events);
    }
    RunTimers();
    RunPosted();
  }
  stop_ = false;
}

}  // namespace sonde
