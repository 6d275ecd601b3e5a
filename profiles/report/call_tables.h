// The tables of a report about a program's calls (calls.h).
//
// Thread safety: functions without state.
#pragma once

#include <cstddef>
#include <string>

#include "profiles/model/profile.h"

namespace sonde {

// "" if nothing was counted. `task_seconds`: the wall time of all tasks together.
// A line for each class of MPI's calls.
std::string MpiTable(const Profile& profile, double task_seconds, size_t width);
// For each of the five MPI functions that took most time.
std::string MpiFunctionTable(const Profile& profile, double task_seconds, size_t width);
// For each filesystem and operation.
std::string FileTable(const Profile& profile, double task_seconds, size_t width);
// For each of the functions that took most time or, if nobody timed them, were called most.
std::string FunctionTable(const Profile& profile, double task_seconds, size_t width);

}  // namespace sonde
