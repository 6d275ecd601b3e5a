// The step's hosts as answers have to know them, made once for all questions until the step's
// description changes, or the nodes in its rows do: to look at each node takes milliseconds in a
// large step, and pages and programs ask all the time.
//
// While nodes come or go one after the other, each question finds the description changed. In a
// step of many nodes Get then gives what it has, unless rows have changed since: it looks again for
// a tenth of the time at most, and once for each row, or each thread that asks in that moment. That
// bounds what it costs the head's loop as well, which has to copy the description for the first
// change that comes while somebody looks. GetNewest has no such bound, and is for those who know
// that what they have is not right any more.
//
// Thread safety: every method from any thread. None waits for another thread's look at the nodes.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "core/time.h"
#include "daemon/head/answers/step_hosts.h"
#include "daemon/head/record/step_record.h"
#include "series/query/query.h"

namespace sonde::head {

class HostsNow {
 public:
  // From so many nodes on Get may give what is a little older, and to look takes its time.
  static constexpr size_t kMany = 257;

  explicit HostsNow(const StepRecord& record) : record_(record) {}

  using Hosts = std::shared_ptr<const StepHosts>;
  // Knows all nodes of rows that were read before the call, and what has become of them when these
  // rows were added. Of what has changed since it may know nothing for kMost and as long as another
  // thread looks.
  Hosts Get() const;
  // Of a description that is no older than the call.
  Hosts GetNewest() const;

  // Their absences from rows of that presence (series/query/pieces/absences.h).
  using Ranges = std::shared_ptr<const std::vector<TimeRange>>;
  Ranges Absences(const Hosts& hosts, const StepRecord::PresenceRuns& presence,
                  bool each_value) const;

  // How often the hosts were made.
  uint64_t made() const { return made_; }

 private:
  // Of the time in which they are made one in kShare, and no longer between two times than kMost.
  static constexpr int kShare = 10;
  static constexpr Nanos kMost = 200 * kMillisecond;

  struct Known {
    Hosts hosts;
    uint64_t version = 0;  // of the description that they were made of

    bool Since(uint64_t least) const { return hosts != nullptr && version >= least; }
  };

  Known Look() const;
  Hosts Make() const;

  const StepRecord& record_;
  mutable std::atomic<uint64_t> made_ = 0;
  mutable std::mutex making_;                  // held while they are made; nobody waits for it
  mutable std::atomic<Nanos> rest_until_ = 0;  // monotonic

  mutable std::mutex mutex_;  // what follows; held for no longer than it takes to look at it
  mutable Known known_;
  mutable Hosts of_;  // whose absences follow
  mutable StepRecord::PresenceRuns presence_;
  mutable std::array<Ranges, 2> absences_;  // by each_value; nullptr: nobody has asked
};

}  // namespace sonde::head
