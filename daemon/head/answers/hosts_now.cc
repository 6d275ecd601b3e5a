#include "daemon/head/answers/hosts_now.h"

#include <algorithm>
#include <utility>

#include "core/clocks.h"

namespace sonde::head {

HostsNow::Known HostsNow::Look() const {
  const std::lock_guard lock(mutex_);
  return known_;
}

HostsNow::Hosts HostsNow::Get() const {
  const uint64_t of_rows = record_.VersionOfRows();
  const uint64_t newest = record_.JobVersion();
  Known known = Look();
  if (known.hosts != nullptr && known.version >= newest) return known.hosts;
  const std::unique_lock one(making_, std::try_to_lock);
  known = Look();  // somebody may have made them meanwhile
  if (known.hosts != nullptr && known.hosts->nodes() >= kMany && known.version >= of_rows) {
    const bool rests = MonotonicNow() < rest_until_;
    if (rests || !one.owns_lock() || known.version >= newest) return known.hosts;
  }
  return Make();
}

HostsNow::Hosts HostsNow::GetNewest() const {
  const uint64_t newest = record_.JobVersion();
  const Known known = Look();
  if (known.hosts != nullptr && known.version >= newest) return known.hosts;
  return Make();
}

// The processor's time is counted: a thread may have to wait for a processor, and what is known
// would be ten times as old.
HostsNow::Hosts HostsNow::Make() const {
  ++made_;
  const Nanos begin = ReadClock(CLOCK_THREAD_CPUTIME_ID);
  Known made;
  {
    const auto job = record_.Job();
    made.version = job.version();
    made.hosts = std::make_shared<const StepHosts>(*job);
  }
  const Nanos taken = ReadClock(CLOCK_THREAD_CPUTIME_ID) - begin;
  rest_until_ = MonotonicNow() + std::min((kShare - 1) * taken, kMost);
  Hosts mine = made.hosts;
  const std::lock_guard lock(mutex_);
  if (known_.hosts != nullptr && known_.version == made.version) return known_.hosts;
  // The old ones are freed without the lock.
  if (known_.hosts == nullptr || known_.version < made.version) std::swap(known_, made);
  return mine;
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
