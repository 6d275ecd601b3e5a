// Finds who holds a lock (file_lock.h), for messages to people.
//
// Thread safety: functions without state.
#pragma once

#include <string>

namespace sonde {

// "process 4711 (sonde)" for a process whose files we may look at, else "another process". Looks
// through /proc, so call it only when the wait for a lock is over.
std::string LockHolder(const std::string& path);

}  // namespace sonde
