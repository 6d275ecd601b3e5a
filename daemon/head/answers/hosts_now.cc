#include "daemon/head/answers/hosts_now.h"

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include "core/clocks.h"

namespace sonde::head {

HostsNow::Hosts HostsNow::Get() const {
  const uint64_t came = begun_;
  if (Hosts known = Known()) return known;
  if (record_.Job()->nodes.size() < kMany) return Make();
  const std::lock_guard one(making_);
  if (Hosts known = Known()) return known;  // somebody has made them meanwhile
  {
    const std::lock_guard lock(mutex_);
    if (ended_ > came) return hosts_;  // and began behind us, whatever has changed since
  }
  return MakeInTurn();
}

// With making_ held. The processor's time is counted: a thread may have to wait for a processor,
// and those that ask would wait ten times as long.
HostsNow::Hosts HostsNow::MakeInTurn() const {
  const Nanos wait = rest_until_ - MonotonicNow();
  if (wait > 0) std::this_thread::sleep_for(std::chrono::nanoseconds(wait));
  const Nanos begin = ReadClock(CLOCK_THREAD_CPUTIME_ID);
  Hosts made = Make();
  const Nanos taken = ReadClock(CLOCK_THREAD_CPUTIME_ID) - begin;
  rest_until_ = MonotonicNow() + std::min((kShare - 1) * taken, kMost);
  return made;
}

HostsNow::Hosts HostsNow::Known() const {
  const uint64_t version = record_.JobVersion();
  const std::lock_guard lock(mutex_);
  return hosts_ != nullptr && version_ >= version ? hosts_ : nullptr;
}

HostsNow::Hosts HostsNow::Make() const {
  const uint64_t number = ++begun_;
  Hosts made;
  uint64_t version = 0;
  {
    const auto job = record_.Job();
    version = job.version();
    made = std::make_shared<const StepHosts>(*job);
  }
  const std::lock_guard lock(mutex_);
  if (hosts_ == nullptr || version_ <= version) {
    hosts_.swap(made);  // the old one is freed without the lock
    version_ = version;
  }
  ended_ = std::max(ended_, number);
  return hosts_;
}

HostsNow::Ranges HostsNow::Absences(const Hosts& hosts, const StepRecord::PresenceRuns& presence,
                                    bool each_value) const {
  const size_t which = each_value ? 1 : 0;
  {
    const std::lock_guard lock(mutex_);
    if (of_ == hosts && presence_ == presence && absences_[which] != nullptr) {
      return absences_[which];
    }
  }
  auto ranges = std::make_shared<const std::vector<TimeRange>>(
      hosts->times().Absences(*presence, 0, each_value));
  std::array<Ranges, 2> old;  // freed without the lock
  const std::lock_guard lock(mutex_);
  if (of_ != hosts || presence_ != presence) {
    of_ = hosts;
    presence_ = presence;
    absences_.swap(old);
  }
  absences_[which] = ranges;
  return ranges;
}

}  // namespace sonde::head
