// At which times the rows of a step lack a node that was there, or a node came or went: from what
// the description says of its nodes, and of how many are in the rows (PresenceRun).
//
// A node is there from when it joined until it left, or until rows have its end, on a host whose
// daemon was started anew from the first one's joining to the last one's end: their series are the
// same. Rows with as many nodes as were there have all of them, whoever came and went. What nobody
// has noted, such as of profiles of older releases, counts as absent.
//
// Thread safety: values, and functions without state.
#pragma once

#include <cstdint>
#include <vector>

#include "core/job.h"
#include "series/query/pieces/host_numbers.h"
#include "series/query/query.h"

namespace sonde {

// In place of absences, for a metric of which no row is right (series/store/past.h).
inline constexpr TimeRange kAnyTime = {INT64_MIN, INT64_MAX};

// When the hosts of a step were there. It is made once of all nodes, and asked for many answers.
class HostTimes {
 public:
  // `hosts`: numbers the hosts of these nodes, by HostNumbers::Same::kNode.
  HostTimes(const std::vector<NodeInfo>& nodes, const HostNumbers& hosts);

  // Ascending, each behind the one before; first to last, both of them are in it. Those in which a
  // node was only coming or going are one moment long. `each_value`: of a counter whose values are
  // looked at one by one, and not added up: of a host whose daemon was started anew rows have two,
  // the last one of the daemon before and that of its own, which in the series are one.
  // `end`: the step's, 0 while it runs.
  std::vector<TimeRange> Absences(const std::vector<PresenceRun>& presence, Nanos end,
                                  bool each_value) const;

 private:
  struct Change {
    Nanos time;
    int64_t there;  // so many hosts more than before
  };

  void AddAbsences(const std::vector<PresenceRun>& presence, std::vector<TimeRange>& ranges) const;

  std::vector<Change> changes_;  // ascending
  std::vector<Nanos> beside_;    // when nodes came and went, beside the ticks; ascending
  Nanos anew_;                   // from when on a host has a second daemon
};

// The same for one answer.
std::vector<TimeRange> AbsencesOf(const std::vector<NodeInfo>& nodes,
                                  const std::vector<PresenceRun>& presence, Nanos end,
                                  bool each_value);

}  // namespace sonde
