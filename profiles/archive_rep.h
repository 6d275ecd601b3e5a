// What an Archive is made of, for the files that implement it: archive.cc reads, archive_upkeep.cc
// changes db/.
//
// After a failure db/ is dropped and opened anew (Recover), and what was acknowledged is looked
// for; who wanted to change something is told of a loss, and whatever comes next goes on. Where db/
// cannot be opened, its lock goes as well, so that another program can make room, and it is tried
// again with the next change.
//
// Thread safety: `db` and `note` as they say; OpenOwned, IngestAll and Close in a turn, Recover and
// Writable in a long one.
#pragma once

#include <leveldb/db.h>

#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "profiles/archive.h"
#include "profiles/archive_dir.h"
#include "profiles/archive_lock.h"
#include "profiles/archive_progress.h"
#include "profiles/archive_turns.h"
#include "profiles/owed_room.h"
#include "profiles/profile_reader.h"
#include "profiles/read_only_db.h"
#include "profiles/retention.h"
#include "profiles/writable_db.h"

namespace sonde {

// db/, held for writing or seen through a snapshot. Shared by the calls that use it.
struct OpenedDb {
  struct End {
    std::promise<void> come;
    ~End() { come.set_value(); }
  };
  mutable ArchiveLock lock;
  mutable End end;  // after `owned` is closed
  std::unique_ptr<WritableDb> owned;
  ReadOnlyDb snapshot;
  bool failed() const { return owned && !owned->failure().ok(); }
  leveldb::DB* get() const { return owned ? owned.get() : snapshot.db.get(); }
};

struct Archive::Rep {
  explicit Rep(const std::string& root) : paths(root) {}

  ArchivePaths paths;
  std::string note;
  bool read_only = false;                      // another user's, or opened to read
  bool kept = false;                           // by a server, which was asked to take in what waits
  mutable ArchiveTurns turns;                  // to change db/
  mutable std::mutex mutex;                    // of the two below
  mutable std::shared_ptr<const OpenedDb> db;  // nullptr: there is none
  Status closed_by;                            // the failure that closed db/; ok if none did
  // What was acknowledged before a failure and has not been looked for since, and db/ as it was
  // left then: that of who has the turn.
  WrittenRecords unchecked;
  DbState left;

  void AddNote(std::string_view text) {
    if (!note.empty()) note += "; ";
    note += text;
  }
  // Whether who keeps the archive is asked to take in what waits. Not by who may keep it himself:
  // his answer would be to open it once more.
  enum class Keeper { kAsked, kNotAsked };
  Status OpenOwned(Nanos wait, Keeper keeper);
  // kCorrupt, and db/ open, if some of `unchecked` is lost; that is said once.
  Status OpenWith(ArchiveLock lock);
  // Closes db/ when the last who uses it has done so, and keeps the lock. What reads meanwhile
  // reads as those do who cannot write.
  ArchiveLock Close();
  // Whether a failure has stopped db/, or closed it.
  bool NeedsRecovery() const;
  // If a failure has stopped db/: closes it and opens it anew, or gives its lock away. By who has
  // no share of it.
  Status Recover();
  // What a change has come to, or that it was found that something is lost.
  template <typename T>
  T AndRecover(T result) {
    const Status recovered = Recover();
    return recovered.code() == Code::kCorrupt ? T(recovered) : std::move(result);
  }
  // db/ to write in; kBusy.
  Result<std::shared_ptr<const OpenedDb>> Owned() const;
  // The same, opened anew if a failure has stopped or closed it.
  Result<std::shared_ptr<const OpenedDb>> Writable();
  // `progress`, while the archive's lock says now and then that its holder is alive, and with a
  // pause of the turn.
  ArchiveProgress Alive(const ArchiveProgress& progress) const;
  Result<uint64_t> IngestAll(const std::function<void(size_t, size_t)>& progress);
  // As those of the archive: in a short turn of its own; in the long one of the caller.
  Result<UserTags> Tag(const std::string& key, const TagChange& change);
  Result<PruneReport> Prune(const Retention& limits, const PruneWork& work);
  Result<bool> MakeRoom(const Retention& limits);
  Result<uint64_t> GiveBack(Nanos budget);
  Result<OwedRoom> Owed();
  Status Compact(const ArchiveProgress& alive);
  std::shared_ptr<const OpenedDb> Current() const;
  // For who reads: as it is now; nullptr if there is none. What it has stays on the disk as long as
  // the caller keeps this.
  std::shared_ptr<const OpenedDb> Refreshed() const;
  // The same as it was when it was last looked at, if that can still be read.
  std::shared_ptr<const OpenedDb> Known() const;
  // Whether only who has db/ can do something that every command does: take in what waits, bring
  // an older archive up to date, end a repair that was killed.
  bool WorkWaits() const;
  // Takes a snapshot of db/ and says what is wrong with it.
  void Look();
  Result<ProfileEntry> EntryOfKey(leveldb::DB& db, std::string_view key) const;
  // The profiles an index names, at most `limit`.
  Result<std::vector<ProfileEntry>> Scan(const std::string& prefix,
                                         std::string_view (*profile_of)(std::string_view),
                                         size_t limit) const;
  template <typename T>
  Result<T> WithReader(const std::string& key,
                       const std::function<Result<T>(const ProfileReader&)>& f) const;
};

}  // namespace sonde
