// A program's calls of MPI, for files and of its functions, summed up: the hundreds of series that
// the libraries of docs/interpose.md have, as the few rows of a report.
//
// Thread safety: functions without state.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "profiles/model/profile.h"

namespace sonde {

// Whether this is a series of these libraries. An application's own metric may have the same name.
bool CountsCalls(const Series& series);

// Whether a filesystem of this kind shows the kernel's state and holds no user's data: proc, sysfs.
// Only reports leave these out: the profile has them.
bool IsPseudoFilesystem(std::string_view kind);

// Sums over all tasks and threads; NaN: nothing was counted.
struct CallRow {
  std::string name;       // "collective", "MPI_Allreduce", "lustre /scratch"
  std::string operation;  // of files: "read", "open, close"
  double calls = std::numeric_limits<double>::quiet_NaN();
  double seconds = calls;
  double waiting = calls;  // of the seconds, in calls that do nothing but wait for other ranks
  double out = calls;      // bytes sent or written
  double in = calls;       // bytes received or read
  double median = calls;   // of files: bytes of one call

  double Moved() const;  // bytes in both directions
};
// Of all rows, without bytes: those of messages and of files do not add up.
CallRow AllOf(const std::vector<CallRow>& rows);

std::vector<CallRow> MpiClasses(const Profile& profile);  // in the order of docs/interpose.md
// The most time first, or if nobody timed them the most calls. Of MPI from level 4 on.
std::vector<CallRow> MpiFunctions(const Profile& profile);
std::vector<CallRow> FunctionCalls(const Profile& profile);
// By filesystem, the one with most time first, then by operation.
std::vector<CallRow> FileCalls(const Profile& profile);

// Seconds of all tasks and threads; NaN: nothing was counted.
struct CallTimes {
  double mpi = 0;
  double mpi_waits = 0;  // of these, in calls that do nothing but wait for other ranks
  double files = 0;      // on filesystems with data
};
CallTimes TimesOfCalls(const Profile& profile);

// Seconds for which tasks waited in receives that name whom they wait for, by that rank; at least
// (docs/interpose.md).
std::map<uint32_t, double> AwaitedInReceives(const Profile& profile);

}  // namespace sonde
