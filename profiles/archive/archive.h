// Reads the archive of one user: the running steps in live/ and the finished ones in db/, as one
// list of profiles. See docs/archive.md. An OwnedArchive (owned_archive.h) changes the archive, and
// commands open both with open_archive.h.
//
// live/<cluster>.<job>.<step>.<start>/ is a small LevelDB that the head writes while the step runs.
// db/ holds every finished step. Only one process can open db/; a process that finds it locked
// leaves the step in live/, and the next one that opens db/ ingests it. A profile is in live/, in
// db/ or in both, where its key shows that it is the same; so it is never lost and never counted
// twice. Directories are 0700, files 0600.
//
// db/ is read through a snapshot. A list takes a new snapshot if something was written since. While
// an OwnedArchive of this Archive exists, reads go through the database that it has open.
//
// Thread safety: any thread.
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
#include "profiles/disk/progress.h"
#include "profiles/live/live_steps.h"
#include "profiles/model/profile.h"
#include "profiles/reading/stored_rows.h"
#include "profiles/records/tags.h"
#include "series/store/store.h"

namespace sonde {

// One profile in a list.
struct ProfileEntry {
  std::string key;  // unique: cluster, job, step and start
  JobDescription job;
  bool live = false;     // still in live/
  bool running = false;  // and its head holds its lock
  Endpoint endpoint;     // if running and known
};

class ProfileReader;
struct OpenedDb;
class SharedDb;
struct FileRecord;
struct PruneReport;
struct Retention;
struct Selection;

// One profile that a selection gives, as its card (records/card.h).
struct ListedProfile {
  std::string key;
  std::string card;  // the card's bytes
  Nanos start = 0;
  bool live = false;     // still in live/
  bool running = false;  // and its head holds it
};

// A part of what a selection gives, and how many there are in all.
struct SelectedPage {
  std::vector<ListedProfile> profiles;
  uint64_t found = 0;
};

class Archive {
 public:
  // Changes nothing: steps that wait in live/ stay there, nothing is locked, and others can write
  // meanwhile. An archive that does not exist yet is empty. kUnsupported: a newer format wrote it.
  static Result<std::shared_ptr<const Archive>> Open(const std::string& root);
  // For open_archive.h, which tells in the note what a reader must know.
  Archive(std::shared_ptr<SharedDb> db, std::string note);
  ~Archive();

  const std::string& root() const;
  // "" or what a reader must know: locked, read-only, n steps not ingested and why.
  const std::string& note() const { return note_; }

  // What was found so far that cannot be read, while the rest was; each once. 'sonde archive
  // verify' finds all. It is empty again when db/ was repaired.
  std::vector<std::string> damage() const;
  // Calls `hear` from now on when something else is found, from any thread.
  void OnDamage(std::function<void(const std::string&)> hear) const;

  // Newest first.
  Result<std::vector<ProfileEntry>> List(size_t limit = SIZE_MAX) const;
  // The newest `limit`, and all that run, however many began after them. Newest first.
  Result<std::vector<ProfileEntry>> ListWithRunning(size_t limit) const;
  // Profiles that the selection (select/selection.h) asks for, in order; `now` ends running steps.
  Result<std::vector<ListedProfile>> Select(const Selection& selection, Nanos now) const;
  // The same, and how many there are; for that the cards of all are read, unless nothing is
  // filtered.
  Result<SelectedPage> SelectPage(const Selection& selection, Nanos now) const;
  // Every profile of a job or step: a requeued job has several. An array or het job has those of
  // its tasks or components, which ARRAY_TASK names as well. Newest first.
  Result<std::vector<ProfileEntry>> Find(const JobStep& id) const;
  Result<Profile> Load(const std::string& key) const;

  // Points of those of the profile's series that are wanted.
  Result<std::vector<SeriesData>> Read(const std::string& key, SeriesScope scope,
                                       const SeriesWanted& wanted, Nanos start, Nanos end,
                                       Thinned thinned = Thinned::kMean,
                                       Earlier earlier = Earlier::kNone) const;
  // Every stored row of [start, end]: the rows of a stream in the order of time, each time once,
  // and within a window those of a host's first daemon before those of the next. Else the streams
  // come in the order in which they are read fast, which is always the same. A failure of `f` ends
  // the reading. Holds where all blocks are, and some of them decoded.
  Status ReadRows(const std::string& key, SeriesScope scope, const RowsWanted& wanted,
                  const OnStoredRow& f) const;
  // Every record of a finished profile in db/, in the order of a profile's file
  // (records/profile_file.h). kBusy: the step runs, or waits in live/. Returns how many blocks were
  // left out because they fail their checks. Holds one block in memory.
  Result<uint64_t> ReadRecords(const std::string& key,
                               const std::function<Status(const FileRecord&)>& f) const;
  // One profile by its key; kNotFound.
  Result<ProfileEntry> Entry(const std::string& key) const;
  // Those of the profile's series that are wanted, each once: the first `limit` that are found. A
  // large step has tens of millions of them; ReadShapes does without a list.
  Result<std::vector<Series>> AllSeries(const std::string& key, SeriesScope scope,
                                        const SeriesWanted& wanted = {},
                                        size_t limit = SIZE_MAX) const;
  // Which series the streams have, as they are stored: each schema of each stream once, in the
  // order in which blocks are found, without reading rows.
  Status ReadShapes(const std::string& key, SeriesScope scope, const OnStoredShape& f) const;

  // What a prune by these limits would delete (upkeep/retention.h); looks for about `budget`.
  // `progress` counts profiles.
  Result<PruneReport> WouldPrune(const Retention& limits, Nanos now, Nanos budget,
                                 const ArchiveProgress& progress = nullptr) const;

 private:
  friend class OwnedArchive;  // opens db/ for writing; reads then go through it

  // The profiles an index names, at most `limit`; where it is damaged, those that are `meant`.
  Result<std::vector<ProfileEntry>> Indexed(
      const std::string& prefix, std::string_view (*profile_of)(std::string_view), size_t limit,
      const std::function<bool(const JobDescription&)>& meant = nullptr) const;
  template <typename T>
  Result<T> WithReader(const std::string& key,
                       const std::function<Result<T>(const ProfileReader&)>& f) const;

  Result<SelectedPage> SelectSome(const Selection& selection, Nanos now, bool count) const;

  // db/ as it is now; nullptr if there is none. Its damage is told.
  Result<std::shared_ptr<const OpenedDb>> Refreshed() const;

  const std::shared_ptr<SharedDb> db_;
  const std::string note_;
};

}  // namespace sonde
