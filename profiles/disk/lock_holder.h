// Who holds a lock (file_lock.h), for messages to people.
//
// Thread safety: functions without state.
#pragma once

#include <string>

namespace sonde {

// "process 4711 (sonde)" for one whose files we may look at, else "another process". Looks through
// /proc, so it is for the end of waiting.
std::string LockHolder(const std::string& path);

}  // namespace sonde
