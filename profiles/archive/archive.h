// The archive of one user, to be read: running steps in live/, finished ones in db/ as one list of
// profiles. See docs/archive.md. An OwnedArchive (owned_archive.h) changes it, and commands open
// both with open_archive.h.
//
// live/<cluster>.<job>.<step>.<start>/ is a small LevelDB that the head writes while the step
// runs. db/ holds every finished step and can be opened by one process only; who finds it locked
// leaves the step in live/, and whoever opens db/ next ingests it. A profile is in one of the two,
// or in both and recognised as the same by its key, so it is never lost and never counted twice.
// Directories are 0700, files 0600.
//
// db/ is read through a snapshot, which is taken anew for every list if something was written
// since; while there is an OwnedArchive of this Archive, through what that has open.
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
#include "profiles/records/stored_rows.h"
#include "profiles/records/tags.h"
#include "series/store/store.h"

namespace sonde {

// One profile in a list.
struct ProfileEntry {
  std::string key;  // unique: cluster, job, step and start
  JobDescription job;
  bool live = false;     // still in live/
  bool running = false;  // and its head holds it
  Endpoint endpoint;     // if running and known
};

class ProfileReader;
class SharedDb;
struct FileRecord;
struct PruneReport;
struct Retention;
struct Selection;

// One that a selection gives, by its card (records/card.h).
struct ListedProfile {
  std::string key;
  std::string card;  // its bytes
  Nanos start = 0;
  bool live = false;     // still in live/
  bool running = false;  // and its head holds it
};

class Archive {
 public:
  // Changes nothing, whatever waits: nothing is ingested or locked, and others can write meanwhile.
  // An archive that is not there yet is empty. kUnsupported: it is of a newer format.
  static Result<std::shared_ptr<const Archive>> Open(const std::string& root);
  // For open_archive.h, which tells in the note what a reader must know.
  Archive(std::shared_ptr<SharedDb> db, std::string note);
  ~Archive();

  const std::string& root() const;
  // "" or what a reader must know: locked, read-only, n steps not ingested and why.
  const std::string& note() const { return note_; }

  // Newest first.
  Result<std::vector<ProfileEntry>> List(size_t limit = SIZE_MAX) const;
  // What the selection (records/select.h) asks for, in its order; `now` ends steps that run.
  Result<std::vector<ListedProfile>> Select(const Selection& selection, Nanos now) const;
  // Every profile of a job or step: a requeued job has several. An array or het job has those of
  // its tasks or components, which ARRAY_TASK names as well. Newest first.
  Result<std::vector<ProfileEntry>> Find(const JobStep& id) const;
  Result<Profile> Load(const std::string& key) const;

  // Points of the profile's series; `wanted` sees their tags as they come out.
  Result<std::vector<SeriesData>> Read(const std::string& key, SeriesScope scope,
                                       const std::function<bool(const Series&)>& wanted,
                                       Nanos start, Nanos end, Thinned thinned = Thinned::kMean,
                                       Earlier earlier = Earlier::kNone) const;
  // Every stored row of [start, end], those of a stream in the order of time, each time once. What
  // `f` fails with ends it. Holds one block in memory.
  Status ReadRows(const std::string& key, SeriesScope scope, const RowsWanted& wanted,
                  const OnStoredRow& f) const;
  // Everything that db/ has of a finished profile, in the order in which it goes into a file
  // (records/profile_file.h). kBusy: it runs, or waits in live/. Gives how many blocks were passed
  // over since they fail their checks. Holds one block in memory.
  Result<uint64_t> ReadRecords(const std::string& key,
                               const std::function<Status(const FileRecord&)>& f) const;
  // One profile by its key; kNotFound.
  Result<ProfileEntry> Entry(const std::string& key) const;
  // Every series of the profile, each once.
  Result<std::vector<Series>> AllSeries(const std::string& key, SeriesScope scope) const;

  // What a prune by these limits would delete (upkeep/retention.h), for about `budget`. `progress`:
  // in profiles.
  Result<PruneReport> WouldPrune(const Retention& limits, Nanos now, Nanos budget,
                                 const ArchiveProgress& progress = nullptr) const;

 private:
  friend class OwnedArchive;  // takes db/ for writing, which is read through it then

  // The profiles an index names, at most `limit`.
  Result<std::vector<ProfileEntry>> Indexed(const std::string& prefix,
                                            std::string_view (*profile_of)(std::string_view),
                                            size_t limit) const;
  template <typename T>
  Result<T> WithReader(const std::string& key,
                       const std::function<Result<T>(const ProfileReader&)>& f) const;

  const std::shared_ptr<SharedDb> db_;
  const std::string note_;
};

}  // namespace sonde
