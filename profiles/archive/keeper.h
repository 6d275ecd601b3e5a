// Keeps an archive while a server has it open, for days perhaps: takes in the steps that finish,
// and answers the commands that find the archive locked.
//
// They ask (ask_keeper.h) over the socket `db.sock` in the archive's directory (0600; besides, only
// processes of its owner and root are answered), in the form of keeper_socket.h:
//
//   ingest                      what waits in live/ is taken in; ok N: so many steps
//   tag KEY<tab>SET<tab>REMOVE  the tags of a profile are changed (tags.h); ok N: it has so many
//   prune LIMITS                what exceeds these limits is deleted (retention.h); ok N REPORT
//   compact                     the room of what was deleted is given back; ok 0
//   repair                      db/ is closed, made anew (repair.h) and opened; ok N REPORT
//   import NAME                 a file that comes as a descriptor is taken in (import.h);
//                               ok BLOCKS new STEP, or ok BLOCKS there STEP
//
// tags.h stands in records/, the others in upkeep/.
//
// What takes long is done one after the other, and who waits is told behind what. Tags do not wait
// for it: they are changed in its next pause (turns.h), and refused while db/ is repaired.
// The work goes on if who has asked goes away, and is stopped if the keeper ends. Where the disk is
// so full that db/ cannot be opened again after a failure nobody is answered: commands open it
// themselves, if there is room for that, and the keeper goes on when there is. All that a
// command wants to see it reads from the disk by itself (archive.h), so who asks for an ingest need
// not wait for an answer.
//
// The keeper has the OwnedArchive of the archive it keeps, or none as long as somebody else has it:
// then it tries to take it every kBetween.
//
// Thread safety: made and destroyed by one thread; Tag from any. It has two threads of its own, of
// which one takes questions and the other works.
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
  // After a failure has closed the archive; twice as long each time, up to kBetween.
  static constexpr Nanos kRetry = 5 * kSecond;

  // What exceeds the limits is deleted when something was taken in, or could not be for want of
  // room.
  explicit ArchiveKeeper(OpenedArchive archive, const Retention& limits = {});
  ~ArchiveKeeper();

  // Changes the tags of a finished profile: as TagWhereItIsOpen (ask_keeper.h), for who has the
  // archive open in this process.
  Result<UserTags> Tag(const std::string& key, const TagChange& change);

 private:
  struct Rep;
  std::unique_ptr<Rep> rep_;
};

}  // namespace sonde
