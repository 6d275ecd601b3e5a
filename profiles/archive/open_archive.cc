#include "profiles/archive/open_archive.h"

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include "profiles/archive/ask_keeper.h"
#include "profiles/archive/shared_db.h"
#include "profiles/disk/archive_dir.h"
#include "profiles/disk/lock_holder.h"
#include "profiles/live/live_steps.h"
#include "profiles/records/index.h"
#include "profiles/records/keys.h"
#include "profiles/upkeep/ingest.h"
#include "profiles/upkeep/open_db.h"
#include "profiles/upkeep/repair.h"
#include "profiles/upkeep/sweep.h"

namespace sonde {
namespace {

// Whether there is work that every command does, but only the owner of db/ can do: ingest waiting
// steps, bring an older archive up to date, finish a repair that was killed.
bool WorkWaits(const SharedDb& db) {
  constexpr size_t kMostFormat = 64;
  const auto format = ReadSmallFile(db.paths.db_format(), kMostFormat);
  if (!format.ok() || *format != keys::kFormat) return true;
  for (const std::string& name : NamesIn(db.paths.live())) {
    if (name[0] == kHidden) return true;
  }
  // What cannot be read now is told to whoever reads it.
  const auto steps = ScanLive(db.paths, {.described = false});
  const auto waits = [](const LiveStep& step) { return !step.running; };
  if (steps.ok() && std::any_of(steps->begin(), steps->end(), waits)) return true;
  const auto seen = db.Refreshed();
  if (!seen.ok()) return false;
  return !*seen || !(*seen)->snapshot.damage.empty() || !IsIndexed(*(*seen)->get());
}

class Opening {
 public:
  explicit Opening(const std::string& root) : db_(std::make_shared<SharedDb>(root)) {}

  Status Open(Nanos wait, const std::function<void(size_t, size_t)>& progress, ArchiveUse use);
  OpenedArchive Take() && {
    return {std::make_shared<const Archive>(std::move(db_), std::move(note_)), std::move(owner_)};
  }

 private:
  // Whether there is anything from which a database could be made.
  bool IsEmpty() const {
    const ArchivePaths& paths = db_->paths;
    const auto live = ListNames(paths.live());
    const auto db = ListNames(paths.db());
    const auto cut_off = IsRepairCutOff(paths);
    const bool known = live.ok() && db.ok() && cut_off.ok();
    return known && live->empty() && db->empty() && !*cut_off;
  }
  Status TakeOwnership(Nanos wait);
  void Ingest(const std::function<void(size_t, size_t)>& progress);
  void LookForDamage();
  void AddNote(std::string_view text) {
    if (!note_.empty()) note_ += "; ";
    note_ += text;
  }

  std::shared_ptr<SharedDb> db_;
  std::unique_ptr<OwnedArchive> owner_;
  bool kept_ = false;  // by a server, which was asked to ingest waiting steps
  std::string note_;
};

Status Opening::Open(Nanos wait, const std::function<void(size_t, size_t)>& progress,
                     ArchiveUse use) {
  const ArchivePaths& paths = db_->paths;
  const auto read_only = IsReadOnly(paths);
  if (!read_only.ok()) {
    if (read_only.status().code() != Code::kNotFound) return read_only.status();
    AddNote("there is no archive at " + paths.root +
            " yet; it is made by the first step that is recorded (SONDE_ARCHIVE names another)");
    return {};
  }
  SONDE_RETURN_IF_ERROR(CheckArchiveFormat(paths));
  if (*read_only) {
    AddNote("archive " + paths.root + " is only read: it is another user's or cannot be written");
  } else if (use == ArchiveUse::kReading && !WorkWaits(*db_)) {
    return {};
  } else if (!IsEmpty()) {
    const Status status = TakeOwnership(wait);
    if (status.ok()) {
      Ingest(progress);
      return {};
    }
    if (status.code() == Code::kUnsupported) return status;
    if (status.code() != Code::kBusy) {
      AddNote("only reading: " + std::string(status.message()));
    } else if (!kept_) {
      AddNote(
          LockHolder(paths.db_lock()) +
          " has the archive open: steps that finished just now wait in live/ and are moved later");
    }
  }
  LookForDamage();
  return {};
}

Status Opening::TakeOwnership(Nanos wait) {
  auto taken = OwnedArchive::Take(db_, 0);
  if (taken.status().code() == Code::kBusy) {
    // The archive's keeper ingests waiting steps; nobody waits for it.
    kept_ = AskToIngest(db_->paths.root, 0).ok();
    if (!kept_ && wait > 0) taken = OwnedArchive::Take(db_, wait);
  }
  if (!taken.ok()) return taken.status();
  owner_ = *std::move(taken);
  return {};
}

void Opening::Ingest(const std::function<void(size_t, size_t)>& progress) {
  SweepArchive(db_->paths);
  const auto taken = owner_->IngestWaiting(progress);
  if (!taken.ok()) AddNote(taken.status().message());
  if (!owner_->IsOpen()) AddNote("the archive is only read until it can be written");
}

void Opening::LookForDamage() {
  const auto seen = db_->Refreshed();
  if (!seen.ok()) return AddNote(seen.status().message());
  if (!*seen || (*seen)->snapshot.damage.empty()) return;
  AddNote("the archive is damaged and some of it may be missing: db/: " + (*seen)->snapshot.damage +
          "; 'sonde archive verify' tells what, 'sonde archive repair' mends it");
}

}  // namespace

Result<OpenedArchive> OpenArchive(const std::string& root, Nanos wait,
                                  const std::function<void(size_t, size_t)>& progress,
                                  ArchiveUse use) {
  Opening opening(root);
  SONDE_RETURN_IF_ERROR(opening.Open(wait, progress, use));
  return std::move(opening).Take();
}

Status WhyNotOwned(const Archive& archive) {
  SONDE_RETURN_IF_ERROR(CheckNotReadOnly(ArchivePaths(archive.root())));
  const std::string& note = archive.note();
  return {Code::kBusy, "the archive cannot be written now: " +
                           (note.empty() ? "who had it open has just ended; try again" : note)};
}

}  // namespace sonde
