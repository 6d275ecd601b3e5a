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
  if (known.Since(newest)) return known.hosts;
  const std::unique_lock one(making_, std::try_to_lock);
  known = Look();  // somebody may have made them meanwhile
  const bool will_do = known.Since(of_rows) && known.hosts->nodes() >= kMany &&
                       (!one.owns_lock() || MonotonicNow() < rest_until_);
  return will_do || known.Since(newest) ? known.hosts : Make();
}

HostsNow::Hosts HostsNow::GetNewest() const {
  const uint64_t newest = record_.JobVersion();
  const Known known = Look();
  return known.Since(newest) ? known.hosts : Make();
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
  if (known_.Since(made.version)) return known_.hosts;
  std::swap(known_, made);  // the old ones are freed without the lock
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
