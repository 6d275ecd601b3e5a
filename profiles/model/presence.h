// Which nodes are in the rows of the whole step (PresenceRun, core/job.h): as JSON, for intervals
// of time, and of a profile in several parts.
//
// Thread safety: functions without state.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "core/job.h"
#include "core/text/kept_members.h"
#include "core/time.h"
#include "profiles/json/fields.h"
#include "profiles/json/writer.h"
#include "profiles/model/parts.h"

namespace sonde {

// More are not kept.
inline constexpr size_t kMaxPresenceRuns = 1024;

// Rows of different nodes, or it is not known of which.
// Makes `run` a mixed one of the rows of both.
void PutTogether(const PresenceRun& next, PresenceRun& run);
// Puts the oldest ones together.
void LimitPresence(std::vector<PresenceRun>& runs);

// The member `presence`, absent if there are no runs. Numbers that are 0 are left out. `kept`: of
// the object around it, which has the members of runs that are not known.
void WritePresence(JsonWriter& w, const std::vector<PresenceRun>& runs, const KeptMembers& kept);
std::vector<PresenceRun> ReadPresence(JsonFields& fields, std::string& error, KeptMembers& kept);

// How many nodes are in the rows of the intervals from `start` to `end`, the fewest in any of them:
// the begin of each interval from which on it is another number. `start` is a multiple of
// `interval`.
std::vector<std::pair<Nanos, uint32_t>> NodesOver(const JobDescription& job, Nanos start, Nanos end,
                                                  Nanos interval);

// Of all parts. Rows of a time of which several parts tell, and not the same, may be any part's:
// that is a mixed run. Empty if a part that has rows does not tell of them.
std::vector<PresenceRun> MergePresence(const std::vector<Part>& parts);

}  // namespace sonde
