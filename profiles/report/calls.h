// A program's calls of MPI and for files, by class: the tables of a report that summarise the
// hundreds of series that libsonde-mpi.so and libsonde-io.so (docs/interpose.md) have at level
// 4.
//
// Thread safety: functions without state.
#pragma once

#include <string>
#include <string_view>

#include "profiles/model/profile.h"

namespace sonde {

// Whether this is a series of these libraries. An application's own metric may have the same name.
bool CountsCalls(const Series& series);

// Whether a filesystem of this kind shows the kernel's state and holds no user's data: proc, sysfs.
// Only reports leave these out: the profile has them.
bool IsPseudoFilesystem(std::string_view kind);

// Tables with a line for each class, or "". `task_seconds`: the wall time of all tasks together.
std::string MpiTable(const Profile& profile, double task_seconds, size_t width);
std::string FileTable(const Profile& profile, double task_seconds, size_t width);

}  // namespace sonde
