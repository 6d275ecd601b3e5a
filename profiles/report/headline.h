// What a step came to, in a few words: how it ended, where its time went, what was asked for and
// not used. From the profile's footprint alone, so that srun's report, `sonde show` and the page
// say the same.
//
//   MPI      seconds in MPI / (tasks x the time for which they were measured), over all classes of
//            calls; waiting for other ranks, and who is slowest:
//            profiles/report/mpi_waiting.h
//   files    likewise, seconds in calls for files that are not of pseudo filesystems
//   CPUs, memory, GPUs, time: profiles/report/used.h
//
// Thread safety: functions without state.
#pragma once

#include <string>
#include <vector>

#include "profiles/model/profile.h"
#include "profiles/model/summary.h"

namespace sonde {

struct HeadlinePart {
  bool bad = false;  // something to look at
  std::string text;  // without a capital and a full stop
};

// The tasks that were measured; NaN if the number of processes is not known.
double TaskCount(const Profile& profile, const Summary& summary);
// The time of all of them together: of it are the shares of calls.
double TaskSeconds(const Profile& profile, const Summary& summary);

// The most important first; empty if nothing is known or nothing happened.
std::vector<HeadlinePart> HeadlineOf(const Profile& profile, const Summary& summary, Nanos now);

// "waited in MPI 61 % of the time; 3.2 of 64 CPUs busy": the first `most` parts.
std::string HeadlineText(const std::vector<HeadlinePart>& parts, size_t most);

}  // namespace sonde
