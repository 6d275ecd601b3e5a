#include "profiles/archive/owned_archive.h"

#include <fmt/core.h>

#include <optional>
#include <utility>
#include <vector>

#include "profiles/archive/db_owner.h"
#include "profiles/archive/turns.h"
#include "profiles/disk/archive_dir.h"
#include "profiles/disk/room.h"
#include "profiles/live/live_steps.h"
#include "profiles/records/index.h"
#include "profiles/records/owed_room.h"
#include "profiles/upkeep/import.h"
#include "profiles/upkeep/ingest.h"
#include "profiles/upkeep/repair.h"
#include "profiles/upkeep/retention.h"

namespace sonde {
namespace {

constexpr Nanos kSayAlive = 30 * kSecond;
constexpr int kPruneTries = 10;  // each of which deletes something
constexpr Nanos kMakeRoomWhenFullFor = 10 * kSecond;
constexpr Nanos kGiveBackBehind = 10 * kSecond;

// The largest step that waits.
Result<std::optional<IncomingStep>> IncomingIn(const ArchivePaths& paths) {
  std::optional<IncomingStep> incoming;
  const auto steps = ScanLive(paths);
  if (!steps.ok()) return steps.status();
  for (const LiveStep& step : *steps) {
    if (step.running) continue;
    const uint64_t bytes = BytesIn(step.paths.blocks());
    if (!incoming || bytes > incoming->bytes) incoming = IncomingStep{step.job.user, bytes};
  }
  return incoming;
}

}  // namespace

struct OwnedArchive::Rep {
  explicit Rep(std::unique_ptr<DbOwner> taken) : owner(std::move(taken)), db(*owner) {}

  const std::unique_ptr<DbOwner> owner;
  DbOwner& db;  // the owner of a long turn opens and closes it
  mutable ArchiveTurns turns;

  // `progress`, which also touches the archive's lock now and then to show that its holder is
  // alive, and pauses the turn.
  ArchiveProgress Alive(const ArchiveProgress& progress) const;
  Status RecoverIfFree();
  // Within the caller's turn.
  Result<uint64_t> IngestAll(WritableDb& into,
                             const std::function<void(size_t, size_t)>& progress) const;
  Result<PruneReport> Prune(const Retention& limits, const PruneWork& work);
  Result<bool> MakeRoom(const Retention& limits);
  Result<uint64_t> GiveBack(Nanos budget);
};

OwnedArchive::OwnedArchive(std::unique_ptr<Rep> rep) : rep_(std::move(rep)) {}
OwnedArchive::~OwnedArchive() = default;

Result<std::unique_ptr<OwnedArchive>> OwnedArchive::Take(const Archive& archive, Nanos wait) {
  SONDE_RETURN_IF_ERROR(CheckNotReadOnly(ArchivePaths(archive.root())));
  return Take(archive.db_, wait);
}

Result<std::unique_ptr<OwnedArchive>> OwnedArchive::Take(std::shared_ptr<SharedDb> db, Nanos wait) {
  auto taken = DbOwner::Take(std::move(db), wait);
  if (!taken.ok()) return taken.status();
  return std::unique_ptr<OwnedArchive>(new OwnedArchive(std::make_unique<Rep>(*std::move(taken))));
}

bool OwnedArchive::IsOpen() const { return rep_->db.IsOpen(); }

bool OwnedArchive::ClosedByFailure() const { return rep_->db.ClosedByFailure(); }

ArchiveProgress OwnedArchive::Rep::Alive(const ArchiveProgress& progress) const {
  return [this, progress, next = Clock::System().Monotonic() + kSayAlive](uint64_t done,
                                                                          uint64_t total) mutable {
    if (const Nanos now = Clock::System().Monotonic(); now >= next) {
      next = now + kSayAlive;
      db.Touch();
    }
    turns.Pause();
    return !progress || progress(done, total);
  };
}

Result<uint64_t> OwnedArchive::IngestWaiting(const std::function<void(size_t, size_t)>& progress) {
  const auto turn = rep_->turns.Long();
  return rep_->db.Change([&](WritableDb& db) {
    rep_->db.Touch();
    return rep_->IngestAll(db, progress);
  });
}

Result<uint64_t> OwnedArchive::Rep::IngestAll(
    WritableDb& into, const std::function<void(size_t, size_t)>& progress) const {
  auto scanned = ScanLive(db.paths());
  if (!scanned.ok()) return scanned.status();
  std::vector<LiveStep>& waiting = *scanned;
  std::erase_if(waiting, [](const LiveStep& step) { return step.running; });
  Intake intake(into, db.paths());
  size_t busy = 0;
  Status first;
  // Of several failures the one that the user can do something about.
  const auto heard = [&](const Status& status) {
    if (first.ok() || (WantsRoom(status) && !WantsRoom(first))) first = status;
  };
  // After a failure has stopped the database no other work can succeed.
  for (size_t i = 0; i < waiting.size() && into.failure().ok(); ++i) {
    if (progress) progress(i, waiting.size());
    // Tags are changed only of steps that have left live/.
    if (turns.IsWanted()) heard(intake.Settle());
    turns.Pause();
    const Status status = intake.Add(waiting[i]);
    if (status.code() == Code::kBusy) ++busy;
    if (status.code() != Code::kBusy) heard(status);
    if (intake.full()) heard(intake.Settle());
  }
  heard(intake.Settle());
  if (progress && !waiting.empty()) progress(waiting.size(), waiting.size());
  if (first.ok()) return intake.settled();
  return Status(
      first.code(),
      fmt::format("{} of {} finished steps could not be moved into the archive: {}",
                  waiting.size() - busy - intake.settled(), waiting.size(), first.message()));
}

Result<bool> OwnedArchive::BuildIndexes(Nanos budget,
                                        const std::function<void(uint64_t, uint64_t)>& progress) {
  const auto turn = rep_->turns.Long();
  auto complete =
      rep_->db.Change([&](WritableDb& db) { return sonde::BuildIndexes(db, budget, progress); });
  // Another process has db/ now.
  if (complete.status().code() == Code::kBusy) return true;
  return complete;
}

// The owner of a short turn cannot wait until db/ is closed: the owner of the long turn may be
// using it, and that one looks after a failure itself at its end.
Status OwnedArchive::Rep::RecoverIfFree() {
  if (!db.NeedsRecovery()) return {};
  const auto turn = turns.LongIfFree();
  if (turn) return db.Writable().status();
  const auto open = db.Now();
  return open.ok() ? (*open)->writable->failure() : open.status();
}

Result<UserTags> OwnedArchive::Tag(const std::string& key, const TagChange& change) {
  const auto in_short_turn = [&]() -> Result<UserTags> {
    const auto turn = rep_->turns.Short();
    if (!turn.ok()) return turn.status();
    const auto open = rep_->db.Now();
    if (!open.ok()) return open.status();
    const auto steps = ScanLive(rep_->db.paths(), {.key = key, .described = false});
    if (!steps.ok()) return steps.status();
    for (const LiveStep& step : *steps) {
      return Status(
          Code::kBusy,
          step.job.id.ToString() + (step.running ? " is running; it can be tagged when it has ended"
                                                 : " waits in live/"));
    }
    return ChangeTags(*(*open)->writable, key, change);
  };
  SONDE_RETURN_IF_ERROR(rep_->RecoverIfFree());
  auto tags = in_short_turn();
  const Status recovered = rep_->RecoverIfFree();
  if (recovered.code() == Code::kCorrupt) return recovered;
  return tags;
}

Result<PruneReport> OwnedArchive::Prune(const Retention& limits, Nanos now, Nanos budget,
                                        const ArchiveProgress& progress) {
  const auto turn = rep_->turns.Long();
  PruneWork work{.now = now, .budget = budget};
  auto live = LiveKeys(rep_->db.paths());
  if (!live.ok()) return live.status();
  work.live = *std::move(live);
  work.progress = rep_->Alive(progress);
  return rep_->Prune(limits, work);
}

// On a full disk LevelDB may find room when db/ is opened anew, since it then tidies its log.
Result<PruneReport> OwnedArchive::Rep::Prune(const Retention& limits, const PruneWork& work) {
  PruneReport report;
  for (int tries = 1;; ++tries) {
    auto open = db.Writable();
    if (!open.ok()) return open.status();
    const uint64_t before = report.profiles;
    const Status done = PruneDb(*(*open)->writable, limits, work, report);
    const bool stopped = !(*open)->writable->failure().ok();
    open->reset();
    if (done.ok()) return report;
    const bool again = stopped && (report.profiles > before || tries == 1) && tries < kPruneTries;
    const Status recovered = db.Recover();
    if (recovered.code() == Code::kCorrupt) return recovered;
    if (recovered.ok() && again) continue;
    if (report.profiles == 0) return done;
    return done.Within(fmt::format("{} profiles were deleted, then", report.profiles));
  }
}

Result<bool> OwnedArchive::MakeRoom(const Retention& limits) {
  const auto turn = rep_->turns.Long();
  const ArchivePaths& paths = rep_->db.paths();
  const bool had_reserve = EmptyReserve(paths);
  // If it could not be opened just now, it cannot be opened now.
  if (!had_reserve && ClosedByFailure()) return false;
  auto made = rep_->MakeRoom(limits);
  // Making room has failed, or there was nothing to do.
  if (!made.ok() || !*made) FillReserve(paths);
  return rep_->db.AndRecover(std::move(made));
}

Result<bool> OwnedArchive::Rep::MakeRoom(const Retention& limits) {
  PruneWork work{.now = Clock::System().Now(), .budget = kMakeRoomWhenFullFor};
  auto live = LiveKeys(db.paths());
  if (!live.ok()) return live.status();
  work.live = *std::move(live);
  work.progress = Alive(nullptr);
  auto incoming = IncomingIn(db.paths());
  if (!incoming.ok()) return incoming.status();
  work.incoming = *std::move(incoming);
  const auto pruned = Prune(limits, work);
  if (!pruned.ok()) return pruned.status();
  const auto given = GiveBack(kMakeRoomWhenFullFor);
  if (!given.ok()) return given.status();
  return pruned->profiles + *given > 0;
}

Result<uint64_t> OwnedArchive::Rep::GiveBack(Nanos budget) {
  return db.With([&](WritableDb& in) {
    // LevelDB writes while it compacts.
    const ArchiveTurns::Rest rest(turns);
    return sonde::GiveBack(in, budget);
  });
}

Status OwnedArchive::KeepRoom() {
  const auto turn = rep_->turns.Long();
  const auto owed = rep_->db.With([](WritableDb& db) { return ReadOwedRoom(db); });
  if (!owed.ok()) return owed.status();
  Status given;
  if (owed->much()) given = rep_->GiveBack(kGiveBackBehind).status();
  FillReserve(rep_->db.paths());
  return rep_->db.AndRecover(given);
}

Status OwnedArchive::Compact(const ArchiveProgress& progress) {
  const auto turn = rep_->turns.Long();
  const ArchiveProgress alive = rep_->Alive(progress);
  return rep_->db.Change([&](WritableDb& db) -> Status {
    SONDE_RETURN_IF_ERROR(DropSchemas(db, alive));
    // LevelDB writes while it compacts.
    const ArchiveTurns::Rest rest(rep_->turns);
    return CompactDb(db, alive);
  });
}

Result<Imported> OwnedArchive::Import(int file, const std::string& name,
                                      const ArchiveProgress& progress) {
  const auto turn = rep_->turns.Long();
  return rep_->db.Change([&](WritableDb& db) {
    return ImportInto(db, rep_->db.paths(), file, name, rep_->Alive(progress));
  });
}

Result<RepairReport> OwnedArchive::Repair(const ArchiveProgress& progress) {
  const auto turn = rep_->turns.Alone();
  DbOwner& db = rep_->db;
  // After a failure the acknowledged records are checked before db/ is changed.
  SONDE_RETURN_IF_ERROR(db.Writable().status());
  db.Close();
  auto report = RepairHeld(db.paths(), db.claim(), [&](uint64_t done, uint64_t total) {
    db.Touch();
    return !progress || progress(done, total);
  });
  SONDE_RETURN_IF_ERROR(db.OpenAgain());
  return report;
}

}  // namespace sonde
