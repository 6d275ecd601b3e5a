// The steps in live/: running ones, and finished or abandoned ones that wait to be ingested.
//
// Thread safety: functions without state.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "core/job.h"
#include "core/status.h"
#include "profiles/disk/archive_dir.h"
#include "profiles/live/endpoint.h"
#include "profiles/records/kept_parsed.h"

namespace sonde {

struct LiveStep {
  std::string name;  // of its directory
  std::string key;
  LivePaths paths{""};
  // Its writer holds it, is on another host and was active just now, or may be: it cannot be told.
  bool running = false;
  bool foreign = false;    // its writer is on another host and may live, though it is not running
  JobDescription job;      // from description.json, or what the key tells
  Endpoint endpoint;       // if running and known
  std::string failure;     // "" or why its writer could not write
  std::string taken_from;  // "" or the name that it had before TakeAbandoned
};

// The lines that a writer puts into its lock file, until it has finished: its host and what went
// wrong. They take no space
// beyond what the file has already, so they can be written on a full disk.
std::string LockText(std::string_view host, std::string_view failure);

// Which of the steps are wanted, and what of them.
struct LiveScan {
  std::optional<std::string_view> key = {};  // of one profile alone
  bool described = true;                     // false: `job` is what the key tells
  KeptRecords* kept = nullptr;               // descriptions that were parsed before
};
// In the order of their names. Leaves out directories that are being made or deleted, and damaged
// ones that were ingested as far as they could be read.
Result<std::vector<LiveStep>> ScanLive(const ArchivePaths& archive, const LiveScan& scan = {});
// The keys of the profiles to which these steps belong.
Result<std::set<std::string>> LiveKeys(const ArchivePaths& archive);
// One of them; kNotFound for a name that is not that of a wanted step.
Result<LiveStep> ReadLive(const ArchivePaths& archive, const std::string& name,
                          const LiveScan& scan = {});

// A hidden name in live/ that nobody else has or will have: ".KIND-NUMBER-NAME".
Result<std::string> UnusedName(const ArchivePaths& archive, std::string_view kind,
                               std::string_view name);
// Deletes a directory of live/ of which nothing is needed. It gets a hidden name first: half of it
// would be taken for a step.
void RemoveLive(const ArchivePaths& archive, const LivePaths& step);

// Takes a foreign step away from a writer that may live, and gives it with its new name: what the
// writer was told is stored is in it, and the writer finds out before it says so of anything else.
// kBusy: the writer was active just now.
Result<LiveStep> TakeAbandoned(const ArchivePaths& archive, const LiveStep& step);

// A writer that has finished while another process had the archive's lock leaves an empty file with
// its directory's name in waiting/, so that the holder finds it without looking at every step that
// runs. It tries the lock once more afterwards, and the holder looks again when it has let go of
// the lock: so one of the two takes the step in.
Status LeaveToHolder(const ArchivePaths& archive, const std::string& name);
// Of one that is taken in.
void ForgetWaiting(const ArchivePaths& archive, const std::string& name);

// A state (LiveArchive::PutState) has no more bytes: all releases read so many.
inline constexpr size_t kMaxState = 64u << 20;

// What the writers of a step have left for another writer that goes on with it.
struct Heritage {
  JobDescription job;
  // The newest that was given to LiveArchive::PutState. kNotFound: there was none; else why it
  // cannot be read.
  Result<std::string> state;
};
// kNotFound if this archive has no record of the step.
Result<Heritage> ReadHeritage(const std::string& archive, const JobDescription& job);

}  // namespace sonde
