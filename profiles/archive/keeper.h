// Keeps an archive while a server has it open, for days perhaps: takes in the steps that finish,
// and answers the commands that find the archive locked.
//
// They ask (ask_keeper.h) over the socket `db.sock` in the archive's directory (0600; besides, only
// processes of its owner and root are answered), in the form of keeper_socket.h:
//
//   ingest                      ingests the steps that wait in live/; ok N: so many steps
//   tag KEY<tab>SET<tab>REMOVE  changes the tags of a profile (tags.h); ok N: it has N tags then
//   prune LIMITS                deletes what exceeds these limits (retention.h); ok N REPORT
//   compact                     gives back the room of deleted profiles; ok 0
//   repair                      closes db/, makes it anew (repair.h), opens it; ok N REPORT
//   import NAME                 takes in a file, sent as a descriptor (import.h);
//                               ok BLOCKS new STEP, or ok BLOCKS there STEP
//
// tags.h is in records/, the other headers are in upkeep/.
//
// Long work is done one after the other, and a command that waits is told which work it waits for.
// Changes of tags do not wait for long work: they come in its next pause (turns.h), and are refused
// while db/ is repaired. The work goes on if the asking command goes away, and is stopped if the
// keeper ends. Where the disk is so full that db/ cannot be opened again after a failure, the
// keeper answers nobody: commands open db/ themselves, if there is room for that, and the keeper
// goes on when there is. Commands read all they show from the disk (archive.h), so a command that
// asks for an ingest need not wait for an answer.
//
// The keeper has the OwnedArchive of its archive. While another process has the archive, the keeper
// has none and tries to take it every kBetween.
//
// Thread safety: made and destroyed by one thread; Tag from any. It has two threads of its own: one
// takes questions, the other works.
#pragma once

#include <memory>
#include <string>

#include "core/status.h"
#include "core/time.h"
#include "profiles/archive/archive.h"
#include "profiles/archive/open_archive.h"
#include "profiles/upkeep/retention.h"

namespace sonde {

class ArchiveKeeper {
 public:
  static constexpr Nanos kBetween = 30 * kSecond;  // without being asked; each touches the lock
  // The wait after a failure has closed the archive; twice as long each time, up to kBetween.
  static constexpr Nanos kRetry = 5 * kSecond;

  // Deletes what exceeds the limits after something was taken in, or could not be for want of
  // room.
  explicit ArchiveKeeper(OpenedArchive archive, const Retention& limits = {});
  ~ArchiveKeeper();

  // Changes the tags of a finished profile like TagWhereItIsOpen (ask_keeper.h), for callers in
  // this process, which has the archive open.
  Result<UserTags> Tag(const std::string& key, const TagChange& change);

 private:
  struct Rep;
  std::unique_ptr<Rep> rep_;
};

}  // namespace sonde
