// The archive of one user: running steps in live/, finished ones in db/. See docs/archive.md.
//
// live/<cluster>.<job>.<step>.<start>/ is a small LevelDB that the head writes while the step
// runs. db/ holds every finished step and can be opened by one process only; who finds it locked
// leaves the step in live/, and whoever opens db/ next ingests it. A profile is in one of the two,
// or in both and recognised as the same by its key, so it is never lost and never counted twice.
// Directories are 0700, files 0600.
//
// Thread safety: LiveArchive: one thread (the head's archive thread). Archive: const methods from
// any thread.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/job.h"
#include "core/status.h"
#include "profiles/archive_progress.h"
#include "profiles/profile.h"
#include "series/store.h"

namespace sonde {

// The node index under which the reduced series of the whole step are stored.
inline constexpr uint32_t kReducedNode = 0xffffffff;

// Where a block belongs. Together with the sequence it is the block's identity: the same block
// stored twice is stored once.
struct BlockKey {
  uint32_t node = 0;
  std::string group;  // "os", "task", "app", ...
  uint64_t sequence = 0;
  auto operator<=>(const BlockKey&) const = default;
};

// The profile of a step that runs.
class LiveArchive {
 public:
  // Makes the directories as needed. Fails clearly if the archive is read-only, full or not ours.
  static Result<std::unique_ptr<LiveArchive>> Create(const std::string& archive,
                                                     const JobDescription& job);
  // The part of an acting head, which goes on where the step's head was killed. `job` is the head's
  // own description, as the acting head last heard of it: cluster, job, step and start make it a
  // part of that profile, and the nodes' indices mean the same. From here on it is used like the
  // head's: its own nodes, notes, moments, cost and coverage from the moment it took over;
  // PutProfile with how the step ended; Finish. Blocks that the head had acknowledged need not come
  // again; those that come again, under their keys and with the same bytes, are stored once. The
  // archive may be another directory on another host: the parts find each other when they are
  // ingested into one.
  static Result<std::unique_ptr<LiveArchive>> Continue(const std::string& archive,
                                                       const JobDescription& job);
  ~LiveArchive();

  // Each returns when the data is with the operating system (it survives a kill of this process);
  // Sync makes it survive the machine.
  Status PutDescription(const JobDescription& job);
  Status PutBlock(const BlockKey& key, const Schema& schema, std::string_view block);
  // A block that stands for those of its node and group with the sequences `first` to its own: what
  // there is of them goes, in one piece; `replaced` becomes its bytes. `schema`: nullptr if it was
  // stored before; kNotFound if it was not. Several are written at once, and each is told what
  // became of it.
  struct BlockWrite {
    BlockKey key;
    uint64_t first = 0;
    uint64_t schema_id = 0;
    const Schema* schema = nullptr;
    std::string_view block;
    uint64_t replaced = 0;
    Status status;
  };
  void ReplaceBlocks(std::span<BlockWrite> writes);
  // The description has the figures of merit; it is put as well.
  Status PutMoments(const JobDescription& job, const StepMoments& moments);
  Status PutProfile(const Profile& profile);
  Status Sync();
  // Writes the file `endpoint` (0600): where the running step is served. JSON {host, port, token,
  // pid}. Removed by Finish.
  Status PutEndpoint(std::string_view host, uint16_t port, std::string_view token);
  // What another writer needs to go on with the step, in its own words; ReadHeritage gives it.
  Status PutState(std::string_view state);
  // Seals the profile; the directory can be ingested from now on. After a failure PutProfile and
  // this can be tried again: the file system may tell only here that it could not write.
  Status Finish();
  const std::string& path() const;
  uint64_t stored_bytes() const;

 private:
  LiveArchive();
  static Result<std::unique_ptr<LiveArchive>> Open(const std::string& archive,
                                                   const JobDescription& job, bool acting);
  struct Rep;
  std::unique_ptr<Rep> rep_;
};

struct Endpoint {
  std::string host;
  uint16_t port = 0;
  std::string token;
  int pid = 0;
};

// One profile in a list.
struct ProfileEntry {
  std::string key;  // unique: cluster, job, step and start
  JobDescription job;
  bool live = false;     // still in live/
  bool running = false;  // and its head holds it
  Endpoint endpoint;     // if running and known
};

struct Imported;
struct PruneReport;
struct RepairReport;
struct Retention;
struct Selection;

// What is to change of a profile's tags.
struct TagChange {
  UserTags set;
  std::vector<std::string> remove;
};

// One that a selection gives, by its card (card.h).
struct ListedProfile {
  std::string key;
  std::string card;  // its bytes
  Nanos start = 0;
  bool live = false;     // still in live/
  bool running = false;  // and its head holds it
};

// A row as it is stored: of a group of one node, or of the reduced series (kReducedNode). Valid
// within the call that gets it.
struct StoredRow {
  uint32_t node;
  std::string_view group;
  const Schema::Ptr& schema;
  const Block& block;  // its columns are those of the schema
  size_t row;          // in the block
  Nanos time() const { return block.times[row]; }
};
using OnStoredRow = std::function<Status(const StoredRow&)>;
struct RowsWanted {
  Nanos start = 0;
  Nanos end = INT64_MAX;
  // All of them within such a span before any of the next one.
  Nanos window = 600 * kSecond;
  // Of which streams (node, group), and from which of their blocks; nullptr: all.
  std::function<bool(uint32_t node, const std::string& group, const BlockInfo& info)> stream;
  // Called after the last row of a span, with the time up to which all were given.
  std::function<Status(Nanos until)> on_window = nullptr;
};

struct FileRecord;

class Archive {
 public:
  // kWriting opens db/ (waiting up to `wait` for whoever holds it), ingesting what lies finished or
  // abandoned in live/. If it stays locked: still a usable archive that reads both, and note()
  // says so. Progress of a long ingest goes to `progress` (done, total). kReading does so only if
  // there is something to ingest, to index or to bring up to date, and else reads, which takes less
  // time and keeps nobody out.
  enum class For { kWriting, kReading };
  static Result<std::unique_ptr<Archive>> Open(
      const std::string& archive, Nanos wait = kSecond,
      const std::function<void(size_t, size_t)>& progress = nullptr, For use = For::kWriting);
  // Only reads, whatever waits: nothing is ingested or locked, and others can write meanwhile.
  static Result<std::unique_ptr<Archive>> OpenToRead(const std::string& archive);
  ~Archive();

  // Makes what an archive that is older than its indexes lacks of them, for about `budget`; true if
  // they are complete or somebody else's to make. Progress goes to `progress` (done, total).
  Result<bool> BuildIndexes(Nanos budget,
                            const std::function<void(uint64_t, uint64_t)>& progress = nullptr);

  // Changes the tags of a finished profile and gives what it has then, also while this archive does
  // something that takes long. kBusy: its step runs or waits in live/, db/ is not ours to write or
  // is being repaired; kLimit: it would have too many.
  Result<UserTags> Tag(const std::string& key, const TagChange& change);
  // Deletes what exceeds the limits (retention.h), for about `budget`; `dry_run` only says what
  // that is. kBusy if db/ is not ours to write, unless it is a dry run. `progress`: in profiles.
  Result<PruneReport> Prune(const Retention& limits, Nanos now, Nanos budget, bool dry_run = false,
                            const ArchiveProgress& progress = nullptr);
  // Makes room by the limits for a step that could not be taken in without: deletes what exceeds
  // them together with that step, and has LevelDB give back all room that is owed (owed_room.h).
  // Whether something came of it, so that it is worth trying again.
  Result<bool> MakeRoom(const Retention& limits);
  // What comes behind a prune by limits, and may take some seconds: room is given back if much is
  // owed, and the reserve is filled (room.h).
  Status KeepRoom();
  // Gives back the room of what was deleted; `progress` in parts of the work.
  Status Compact(const ArchiveProgress& progress);
  // As ImportInto (profile_import.h) and RepairHeld (archive_repair.h). For a repair db/ is closed
  // when all who read have done so, and what reads meanwhile sees it as it was. kBusy if db/ is not
  // ours to write.
  Result<Imported> Import(int file, const std::string& name, const ArchiveProgress& progress);
  Result<RepairReport> Repair(const ArchiveProgress& progress);

  // Takes in what lies finished or abandoned in live/ by now, if db/ can be had, and says how many
  // steps. From any thread; what reads meanwhile sees every step.
  Result<uint64_t> IngestWaiting();
  // Whether db/ is ours to write.
  bool owned() const;
  // Whether a failure has closed db/; it is tried again with the next change.
  bool closed_by_failure() const;
  const std::string& root() const;

  // "" or what a reader must know: locked, read-only, n steps not ingested and why.
  const std::string& note() const;

  // Newest first.
  Result<std::vector<ProfileEntry>> List(size_t limit = SIZE_MAX) const;
  // What the selection (select.h) asks for, in its order; `now` ends steps that run.
  Result<std::vector<ListedProfile>> Select(const Selection& selection, Nanos now) const;
  // Every profile of a job or step: a requeued job has several. An array or het job has those of
  // its tasks or components, which ARRAY_TASK names as well. Newest first.
  Result<std::vector<ProfileEntry>> Find(const JobStep& id) const;
  Result<Profile> Load(const std::string& key) const;

  // Points of the profile's series. Per-node series carry the tag host; reduced ones (node
  // kReducedNode) the tag stat. `wanted` sees the tags as they come out.
  enum class Scope { kNodes, kReduced };
  // Where rows were thinned (series/thin.h): which of a gauge's values.
  enum class Thinned { kMean, kMin, kMax };
  // What is read of the time before `start`, beside the points of [start, end].
  enum class Earlier {
    kNone,
    // Of nodes' counters what tells how much they had counted by then: the last point before, and,
    // where a node's daemon was started anew, the first and the last one of each that there was.
    kCounted,
  };
  Result<std::vector<SeriesData>> Read(const std::string& key, Scope scope,
                                       const std::function<bool(const Series&)>& wanted,
                                       Nanos start, Nanos end, Thinned thinned = Thinned::kMean,
                                       Earlier earlier = Earlier::kNone) const;
  // Every stored row of [start, end], those of a stream in the order of time, each time once. What
  // `f` fails with ends it. Holds one block in memory.
  Status ReadRows(const std::string& key, Scope scope, const RowsWanted& wanted,
                  const OnStoredRow& f) const;
  // Everything that db/ has of a finished profile, in the order in which it goes into a file
  // (profile_file.h). kBusy: it runs, or waits in live/. Gives how many blocks were passed over
  // since they fail their checks. Holds one block in memory.
  Result<uint64_t> ReadRecords(const std::string& key,
                               const std::function<Status(const FileRecord&)>& f) const;
  // One profile by its key; kNotFound.
  Result<ProfileEntry> Entry(const std::string& key) const;
  // Every series of the profile, each once.
  Result<std::vector<Series>> AllSeries(const std::string& key, Scope scope) const;

 private:
  Archive();
  struct Rep;
  std::unique_ptr<Rep> rep_;
};

// Ingests one finished live directory into db/, if db/ can be opened; kBusy if it is locked. Then
// deletes, for a few milliseconds, what exceeds `limits`, if there are any; before, if there is no
// room otherwise.
Status IngestLive(const std::string& archive, const std::string& live_path, Nanos wait,
                  const Retention* limits = nullptr);

}  // namespace sonde
