// How much of an archive is kept: by age, number and size, of all users and of each; the oldest
// profiles beyond that are deleted, except those that are tagged `keep` or have parts in live/.
//
// Thread safety: values and functions without state; the caller holds the archive's lock.
#pragma once

#include <leveldb/db.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "core/config.h"
#include "core/status.h"
#include "core/time.h"
#include "profiles/disk/progress.h"
#include "profiles/disk/writable_db.h"

namespace sonde {

// 0: no limit.
struct Retention {
  Nanos age = 0;  // since the end, or since the start if the end is not known
  uint64_t profiles = 0;
  uint64_t bytes = 0;  // sum of Card::size
  uint64_t user_profiles = 0;
  uint64_t user_bytes = 0;

  bool any() const { return age != 0 || profiles != 0 || bytes != 0 || of_users(); }
  bool of_users() const { return user_profiles != 0 || user_bytes != 0; }
};
Retention RetentionOf(const Config& config);
// Its numbers between blanks, as they are sent to the archive's keeper.
std::string RetentionToText(const Retention& limits);
Result<Retention> RetentionFromText(std::string_view text);

struct PrunedProfile {
  std::string key;
  std::string why;  // in words: "older than 180 d"
  uint64_t bytes = 0;
};
struct PruneReport {
  static constexpr size_t kMaxNamed = 10'000;
  uint64_t profiles = 0;
  uint64_t bytes = 0;
  uint64_t pinned = 0;                // exceed a limit, but are tagged `keep`
  std::vector<PrunedProfile> pruned;  // the first kMaxNamed, the oldest first
  bool complete = true;               // false: time ran out before everything was looked at
};

// A step that waits until there is room for it.
struct IncomingStep {
  std::string user;
  uint64_t bytes = 0;
};

struct PruneWork {
  Nanos now = 0;
  Nanos budget = 0;
  bool dry_run = false;
  std::set<std::string> live;  // keys of profiles with parts in live/
  ArchiveProgress progress;    // counts deleted profiles; stopping it counts as out of time
  std::optional<IncomingStep> incoming = {};  // a step that the limits must hold with
};
// By number and size only if the indexes are complete; else the report is not complete. `report`
// gets all deleted profiles, also after a failure. Their room is owed (records/owed_room.h).
Status PruneDb(leveldb::DB& db, const Retention& limits, const PruneWork& work,
               PruneReport& report);
std::string PruneToJson(const PruneReport& report, bool dry_run);
Result<PruneReport> PruneFromJson(std::string_view json);

// Deletes the schemas that no block names. No block may be added meanwhile.
Status DropSchemas(leveldb::DB& db, const ArchiveProgress& progress);
// Has LevelDB compact everything; `progress` counts parts of the work.
Status CompactDb(WritableDb& db, const ArchiveProgress& progress);

}  // namespace sonde
