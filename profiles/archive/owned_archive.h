// The archive as who owns db/ can change it. There is one owner on all hosts: who has made an
// OwnedArchive has taken the lock of db/, and it is given back at its end. An Archive of the same
// process reads through the open db/ meanwhile, and before and after that from the disk.
//
// A failure closes db/ and gives the lock away; the next change takes it again. So each change
// gives kBusy if somebody else has taken it meanwhile, or the failure if db/ cannot be opened yet.
//
// Thread safety: any thread; what takes long is done one after the other (turns.h). The destructor
// waits for those who read what is open here.
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
  // Waits up to `wait` for whoever has the lock; kBusy. kPermission: another user's archive, or one
  // that cannot be written.
  static Result<std::unique_ptr<OwnedArchive>> Take(const Archive& archive, Nanos wait);
  // The same for who makes an Archive (open_archive.h), without a look at whose it is.
  static Result<std::unique_ptr<OwnedArchive>> Take(std::shared_ptr<SharedDb> db, Nanos wait);
  ~OwnedArchive();

  // Whether db/ is open here: not after a failure, until it is opened with the next change, nor
  // while it is repaired.
  bool IsOpen() const;
  // Whether it is closed for a failure, and not since somebody else has it.
  bool ClosedByFailure() const;

  // Takes in what lies finished or abandoned in live/ by now, and says how many steps. What reads
  // meanwhile sees every step. Progress of a long ingest goes to `progress` (done, total).
  Result<uint64_t> IngestWaiting(const std::function<void(size_t, size_t)>& progress = nullptr);
  // Makes what an archive that is older than its indexes lacks of them, for about `budget`; true if
  // they are complete or somebody else's to make. Progress goes to `progress` (done, total).
  Result<bool> BuildIndexes(Nanos budget,
                            const std::function<void(uint64_t, uint64_t)>& progress = nullptr);
  // Changes the tags of a finished profile and gives what it has then, also while something is done
  // that takes long. kBusy also: its step runs or waits in live/, or db/ is being repaired; kLimit:
  // it would have too many.
  Result<UserTags> Tag(const std::string& key, const TagChange& change);

  // Deletes what exceeds the limits (upkeep/retention.h), for about `budget`. `progress`: in
  // profiles.
  Result<PruneReport> Prune(const Retention& limits, Nanos now, Nanos budget,
                            const ArchiveProgress& progress = nullptr);
  // Makes room by the limits for a step that could not be taken in without: deletes what exceeds
  // them together with that step, and has LevelDB give back all room that is owed
  // (records/owed_room.h). Whether something came of it, so that it is worth trying again.
  Result<bool> MakeRoom(const Retention& limits);
  // What comes behind a prune by limits, and may take some seconds: room is given back if much is
  // owed, and the reserve is filled (disk/room.h).
  Status KeepRoom();
  // Gives back the room of what was deleted; `progress` in parts of the work.
  Status Compact(const ArchiveProgress& progress);

  // As ImportInto (upkeep/import.h) and RepairHeld (upkeep/repair.h). For a repair db/ is closed
  // when all who read have done so, and what reads meanwhile sees it as it was.
  Result<Imported> Import(int file, const std::string& name, const ArchiveProgress& progress);
  Result<RepairReport> Repair(const ArchiveProgress& progress);

 private:
  struct Rep;
  explicit OwnedArchive(std::unique_ptr<Rep> rep);
  const std::unique_ptr<Rep> rep_;
};

}  // namespace sonde
