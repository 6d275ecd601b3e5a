// The step's hosts as answers have to know them, made once for all questions until the step's
// description changes, or the nodes in its rows do: to look at each node takes milliseconds in a
// large step, and pages and programs ask all the time.
//
// What is given was made of a description that is no older than the call. So who has read rows
// first and asks for the hosts then knows of every node in these rows.
//
// While nodes come or go one after the other, each question finds the description changed. The
// hosts of many nodes are then made by one thread at a time, for all that have come meanwhile, and
// for a tenth of the time at most. That bounds what it costs the head's loop as well: it has to
// copy the description for the first change that comes while they are made.
//
// Thread safety: every method from any thread. In a step of few nodes none waits, so that the
// head's loop may call them there.
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
  // From so many nodes on a call may wait.
  static constexpr size_t kMany = 257;

  explicit HostsNow(const StepRecord& record) : record_(record) {}

  using Hosts = std::shared_ptr<const StepHosts>;
  Hosts Get() const;

  // Their absences from rows of that presence (series/query/pieces/absences.h).
  using Ranges = std::shared_ptr<const std::vector<TimeRange>>;
  Ranges Absences(const Hosts& hosts, const StepRecord::PresenceRuns& presence,
                  bool each_value) const;

  // How often the hosts were made.
  uint64_t made() const { return begun_; }

 private:
  // Of the time in which they are made one in kShare, and no longer between two times than kMost.
  static constexpr int kShare = 10;
  static constexpr Nanos kMost = 200 * kMillisecond;

  Hosts Known() const;
  Hosts Make() const;
  Hosts MakeInTurn() const;

  const StepRecord& record_;
  mutable std::atomic<uint64_t> begun_ = 0;  // times that they were made, or are being made
  mutable std::mutex making_;                // held while they are made of many nodes
  mutable Nanos rest_until_ = 0;             // with making_ held; monotonic

  mutable std::mutex mutex_;  // what follows; held for no longer than it takes to look at it
  mutable Hosts hosts_;
  mutable uint64_t version_ = 0;  // of the description that they were made of
  mutable uint64_t ended_ = 0;    // the last time of begun_ that is over
  mutable Hosts of_;              // whose absences follow
  mutable StepRecord::PresenceRuns presence_;
  mutable std::array<Ranges, 2> absences_;  // by each_value; nullptr: nobody has asked
};

}  // namespace sonde::head
