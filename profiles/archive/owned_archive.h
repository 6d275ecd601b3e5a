// Changes an archive for the owner of db/. There is one owner on all hosts: making an OwnedArchive
// takes the lock of db/, and destroying it gives the lock back. An Archive of the same process
// reads through the open db/ meanwhile, and before and after that from the disk.
//
// A failure closes db/ and gives the lock away; the next change takes it again. So a change gives
// kBusy if another process has taken it meanwhile, or the failure if db/ cannot be opened yet.
//
// Thread safety: any thread; long work is done one after the other (turns.h). The destructor waits
// for the readers of the database that is open here.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "core/status.h"
#include "core/time.h"
#include "profiles/archive/archive.h"
#include "profiles/disk/progress.h"
#include "profiles/records/tags.h"

namespace sonde {

class SharedDb;
struct Imported;
struct RepairReport;

class OwnedArchive {
 public:
  // Waits up to `wait` for the lock's holder; kBusy. kPermission: the archive is another user's, or
  // cannot be written.
  static Result<std::unique_ptr<OwnedArchive>> Take(const Archive& archive, Nanos wait);
  // The same for the code that makes an Archive (open_archive.h); does not check who owns it.
  static Result<std::unique_ptr<OwnedArchive>> Take(std::shared_ptr<SharedDb> db, Nanos wait);
  ~OwnedArchive();

  // Whether db/ is open here. It is closed after a failure, until the next change opens it, and
  // during a repair.
  bool IsOpen() const;
  // Whether a failure has closed it, rather than another process having it.
  bool ClosedByFailure() const;

  // Ingests the steps that are finished or abandoned in live/ by now, and says how many. Readers
  // see every step meanwhile. Progress of a long ingest goes to `progress` (done, total).
  Result<uint64_t> IngestWaiting(const std::function<void(size_t, size_t)>& progress = nullptr);
  // Makes the index entries that an older archive lacks, for about `budget`; true if the indexes
  // are complete or another process has to make them. Progress goes to `progress` (done, total).
  Result<bool> BuildIndexes(Nanos budget,
                            const std::function<void(uint64_t, uint64_t)>& progress = nullptr);
  // Changes the tags of a finished profile and gives the tags that it has then, also while long
  // work is done. kBusy also: its step runs or waits in live/, or db/ is being repaired; kLimit: it
  // would have too many tags.
  Result<UserTags> Tag(const std::string& key, const TagChange& change);

  // Deletes what exceeds the limits (upkeep/retention.h), for about `budget`. `progress` counts
  // profiles.
  Result<PruneReport> Prune(const Retention& limits, Nanos now, Nanos budget,
                            const ArchiveProgress& progress = nullptr);
  // Makes room for a step that could not be taken in for want of it: deletes what exceeds the
  // limits together with that step, and has LevelDB give back all room that is owed
  // (records/owed_room.h). Whether that made room, so that it is worth trying again.
  Result<bool> MakeRoom(const Retention& limits);
  // Follows a prune by limits, and may take some seconds: gives room back if much is owed, and
  // fills the reserve (disk/room.h).
  Status KeepRoom();
  // Gives back the room of deleted profiles; `progress` counts parts of the work.
  Status Compact(const ArchiveProgress& progress);

  // As ImportInto (upkeep/import.h) and RepairHeld (upkeep/repair.h). A repair closes db/ when all
  // readers are done; readers that come meanwhile see the old db/.
  Result<Imported> Import(int file, const std::string& name, const ArchiveProgress& progress);
  Result<RepairReport> Repair(const ArchiveProgress& progress);

 private:
  struct Rep;
  explicit OwnedArchive(std::unique_ptr<Rep> rep);
  const std::unique_ptr<Rep> rep_;
};

}  // namespace sonde
