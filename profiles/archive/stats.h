// What an archive holds and how much room it takes.
//
// Thread safety: functions without state.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/status.h"
#include "core/time.h"
#include "profiles/archive/archive.h"

namespace sonde {

struct ArchiveStats {
  uint64_t profiles = 0;    // all of them: in db/, running and waiting
  uint64_t running = 0;     // steps that run
  uint64_t waiting = 0;     // over, but still in live/
  uint64_t damaged = 0;     // directories that could not be read completely and were kept
  uint64_t db_bytes = 0;    // on the disk, of db/
  uint64_t live_bytes = 0;  // of live/, the damaged ones among them
  uint64_t pinned = 0;      // tagged `keep`
  struct User {
    std::string name;
    uint64_t profiles = 0;
    uint64_t bytes = 0;  // as `sonde ls --sort size` has them
  };
  std::vector<User> users;  // the user with the most bytes first
  Nanos oldest = 0;         // start of the first and of the last profile; 0 if there is none
  Nanos newest = 0;
};

Result<ArchiveStats> StatsOf(const Archive& archive);
// The bytes of the files below a directory. Files that are deleted meanwhile do not count.
uint64_t BytesBelow(const std::string& directory);
std::string StatsToJson(const ArchiveStats& stats);

}  // namespace sonde
