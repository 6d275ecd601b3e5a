// The writing side: what changes db/, by whoever has it open.
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "core/log.h"
#include "profiles/archive_db.h"
#include "profiles/archive_dir.h"
#include "profiles/archive_rep.h"
#include "profiles/ask_keeper.h"
#include "profiles/index.h"
#include "profiles/ingest.h"
#include "profiles/live_steps.h"
#include "profiles/owed_room.h"
#include "profiles/retention.h"
#include "profiles/room.h"
#include "profiles/tags.h"

namespace sonde {
namespace {

constexpr Nanos kSayAlive = 30 * kSecond;
constexpr int kPruneTries = 10;  // each of which deletes something
constexpr Nanos kMakeRoomFor = 10 * kSecond;
constexpr Nanos kGiveBackFor = 10 * kSecond;

// The largest of those that wait.
std::optional<IncomingStep> IncomingIn(const ArchivePaths& paths) {
  std::optional<IncomingStep> incoming;
  for (const LiveStep& step : ScanLive(paths)) {
    if (step.running) continue;
    const uint64_t bytes = BytesIn(step.paths.blocks());
    if (!incoming || bytes > incoming->bytes) incoming = IncomingStep{step.job.user, bytes};
  }
  return incoming;
}

}  // namespace

Status Archive::Rep::OpenOwned(Nanos wait, Keeper keeper) {
  auto lock = ArchiveLock::Acquire(paths, 0);
  if (lock.status().code() == Code::kBusy && keeper == Keeper::kAsked) {
    // Who keeps the archive for long takes in what waits, and is not waited for.
    kept = AskToIngest(paths.root, 0).ok();
    if (!kept && wait > 0) lock = ArchiveLock::Acquire(paths, wait);
  }
  // What was written here may be gone by right.
  if (lock.status().code() == Code::kBusy) unchecked = {};
  if (!lock.ok()) return lock.status();
  if (!unchecked.empty() && !left.HasSameTables(DbState::OfTables(paths.db()))) unchecked = {};
  return OpenWith(*std::move(lock));
}

Status Archive::Rep::OpenWith(ArchiveLock lock) {
  auto opened = OpenDb(paths);
  const auto fails = [&](Status status) {
    if (opened.ok()) opened->reset();
    left = DbState::OfTables(paths.db());
    return status;
  };
  if (!opened.ok()) return fails(opened.status());
  const Status found = unchecked.FindIn(**opened).Within("open " + paths.db() + " again");
  const bool lost = found.code() == Code::kCorrupt;
  if (!found.ok() && !lost) return fails(found);
  // What is lost is not there at the next look either.
  unchecked = {};
  if (lost) log::Error("archive {}: {}", paths.root, found.message());
  auto owned = std::make_shared<OpenedDb>();
  owned->lock = std::move(lock);
  owned->owned = *std::move(opened);
  const std::lock_guard guard(mutex);
  db = std::move(owned);
  closed_by = {};
  return found;
}

ArchiveLock Archive::Rep::Close() {
  std::shared_ptr<const OpenedDb> last;
  {
    const std::lock_guard guard(mutex);
    last = std::move(db);
    db = nullptr;
  }
  ArchiveLock lock = std::move(last->lock);
  const std::future<void> end = last->end.come.get_future();
  last.reset();
  end.wait();
  return lock;
}

bool Archive::Rep::NeedsRecovery() const {
  const std::lock_guard guard(mutex);
  return !closed_by.ok() || (db && db->failed());
}

Status Archive::Rep::Recover() {
  {
    const auto current = Current();
    if (!current || !current->failed()) return {};
    log::Warning("archive {}: {}", paths.root, current->owned->failure().message());
    unchecked = current->owned->TakeWritten();
  }
  Status status = OpenWith(Close());
  if (status.ok() || Owned().ok()) return status;
  log::Error("archive {}: it is closed until it can be written again: {}", paths.root,
             status.message());
  const std::lock_guard guard(mutex);
  closed_by = status;
  return status;
}

Result<std::shared_ptr<const OpenedDb>> Archive::Rep::Writable() {
  SONDE_RETURN_IF_ERROR(Recover());
  if (!NeedsRecovery()) return Owned();
  // To try it costs LevelDB a file or two each time.
  const Status room = CheckRoom(paths, RoomToOpen(paths));
  const Status status = WantsRoom(room) ? room : OpenOwned(0, Keeper::kNotAsked);
  if (Owned().ok()) {
    log::Info("archive {}: it can be written again", paths.root);
    SONDE_RETURN_IF_ERROR(status);
  } else {
    const std::lock_guard guard(mutex);
    // Somebody else could open it.
    closed_by = status.code() == Code::kBusy ? Status() : status;
  }
  return Owned();
}

Result<std::shared_ptr<const OpenedDb>> Archive::Rep::Owned() const {
  auto current = Current();
  if (current && current->owned) return current;
  {
    const std::lock_guard guard(mutex);
    if (!closed_by.ok()) return closed_by;
  }
  if (read_only)
    return Status(Code::kPermission, "the archive " + paths.root + " is only read here");
  return Status(Code::kBusy,
                "the archive cannot be written now: " +
                    (note.empty() ? "who had it open has just ended; try again" : note));
}

ArchiveProgress Archive::Rep::Alive(const ArchiveProgress& progress) const {
  return [this, progress, next = Clock::System().Monotonic() + kSayAlive](uint64_t done,
                                                                          uint64_t total) mutable {
    if (const Nanos now = Clock::System().Monotonic(); now >= next) {
      next = now + kSayAlive;
      if (const auto current = Current(); current && current->owned) current->lock.Touch();
    }
    turns.Pause();
    return !progress || progress(done, total);
  };
}

Result<uint64_t> Archive::Rep::IngestAll(const std::function<void(size_t, size_t)>& progress) {
  const auto current = Current();
  std::vector<LiveStep> waiting = ScanLive(paths);
  std::erase_if(waiting, [](const LiveStep& step) { return step.running; });
  Intake intake(*current->owned, paths);
  size_t busy = 0;
  Status first;
  // Of several failures the one that somebody can do something about.
  const auto heard = [&](const Status& status) {
    if (first.ok() || (WantsRoom(status) && !WantsRoom(first))) first = status;
  };
  // On a database that has stopped none of the others can follow.
  for (size_t i = 0; i < waiting.size() && !current->failed(); ++i) {
    if (progress) progress(i, waiting.size());
    // Tags are changed of what has left live/.
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

const std::string& Archive::root() const { return rep_->paths.root; }

bool Archive::owned() const { return rep_->Owned().ok(); }

bool Archive::closed_by_failure() const {
  const std::lock_guard guard(rep_->mutex);
  return !rep_->closed_by.ok();
}

Result<uint64_t> Archive::IngestWaiting() {
  const auto turn = rep_->turns.Long();
  if (const auto current = rep_->Writable(); current.ok()) {
    (*current)->lock.Touch();
  } else if (rep_->NeedsRecovery() || rep_->Owned().ok()) {
    return current.status();
  } else {
    SONDE_RETURN_IF_ERROR(rep_->OpenOwned(0, Rep::Keeper::kNotAsked));
  }
  return rep_->AndRecover(rep_->IngestAll(nullptr));
}

Result<bool> Archive::BuildIndexes(Nanos budget,
                                   const std::function<void(uint64_t, uint64_t)>& progress) {
  const auto turn = rep_->turns.Long();
  auto current = rep_->Writable();
  if (!current.ok()) {
    const bool others = !rep_->NeedsRecovery() && current.status().code() != Code::kCorrupt;
    return others ? Result<bool>(true) : current.status();
  }
  auto complete = sonde::BuildIndexes(*(*current)->owned, budget, progress);
  current->reset();
  return rep_->AndRecover(std::move(complete));
}

Result<UserTags> Archive::Rep::Tag(const std::string& key, const TagChange& change) {
  const auto turn = turns.Short();
  if (!turn.ok()) return turn.status();
  const auto current = Owned();
  if (!current.ok()) return current.status();
  for (const LiveStep& step : ScanLive(paths)) {
    if (step.key != key) continue;
    return Status(Code::kBusy, step.job.id.ToString() +
                                   (step.running ? " is running; it can be tagged when it has ended"
                                                 : " waits in live/"));
  }
  return ChangeTags(*(*current)->owned, key, change);
}

// Who has a short turn cannot wait until db/ is closed: that may be used by who has the long one,
// and he looks after a failure himself when he ends.
Result<UserTags> Archive::Tag(const std::string& key, const TagChange& change) {
  const auto recover = [&]() -> Status {
    if (!rep_->NeedsRecovery()) return {};
    const auto turn = rep_->turns.LongIfFree();
    if (turn) return rep_->Writable().status();
    const auto current = rep_->Owned();
    return current.ok() ? (*current)->owned->failure() : current.status();
  };
  SONDE_RETURN_IF_ERROR(recover());
  auto tags = rep_->Tag(key, change);
  const Status recovered = recover();
  if (recovered.code() == Code::kCorrupt) return recovered;
  return tags;
}

Result<PruneReport> Archive::Prune(const Retention& limits, Nanos now, Nanos budget, bool dry_run,
                                   const ArchiveProgress& progress) {
  if (dry_run) {
    const PruneWork work{now, budget, dry_run, LiveKeys(rep_->paths), progress};
    PruneReport report;
    const auto seen = rep_->Refreshed();
    if (seen) SONDE_RETURN_IF_ERROR(PruneDb(*seen->get(), limits, work, report));
    return report;
  }
  const auto turn = rep_->turns.Long();
  return rep_->Prune(limits, {now, budget, dry_run, LiveKeys(rep_->paths), rep_->Alive(progress)});
}

Result<bool> Archive::MakeRoom(const Retention& limits) {
  const auto turn = rep_->turns.Long();
  const bool had_reserve = EmptyReserve(rep_->paths);
  // Where it could not be opened just now it cannot be now.
  if (!had_reserve && closed_by_failure()) return false;
  auto made = rep_->MakeRoom(limits);
  // What it is for has failed, or there is nothing to do.
  if (!made.ok() || !*made) FillReserve(rep_->paths);
  return rep_->AndRecover(std::move(made));
}

Result<bool> Archive::Rep::MakeRoom(const Retention& limits) {
  const auto pruned = Prune(limits, {Clock::System().Now(), kMakeRoomFor, false, LiveKeys(paths),
                                     Alive(nullptr), IncomingIn(paths)});
  if (!pruned.ok()) return pruned.status();
  const auto given = GiveBack(kMakeRoomFor);
  if (!given.ok()) return given.status();
  return pruned->profiles + *given > 0;
}

Result<uint64_t> Archive::Rep::GiveBack(Nanos budget) {
  const auto current = Writable();
  if (!current.ok()) return current.status();
  // LevelDB writes while it compacts.
  const ArchiveTurns::Rest rest(turns);
  return sonde::GiveBack(*(*current)->owned, budget);
}

Status Archive::KeepRoom() {
  const auto turn = rep_->turns.Long();
  const auto owed = rep_->Owed();
  if (!owed.ok()) return owed.status();
  Status given;
  if (owed->much()) given = rep_->GiveBack(kGiveBackFor).status();
  FillReserve(rep_->paths);
  return rep_->AndRecover(given);
}

Result<OwedRoom> Archive::Rep::Owed() {
  const auto current = Writable();
  if (!current.ok()) return current.status();
  return ReadOwedRoom(*(*current)->owned);
}

// On a full disk LevelDB may find room when it is opened anew, since it puts its log in order.
Result<PruneReport> Archive::Rep::Prune(const Retention& limits, const PruneWork& work) {
  PruneReport report;
  for (int tries = 1;; ++tries) {
    auto current = Writable();
    if (!current.ok()) return current.status();
    const uint64_t before = report.profiles;
    Status done = PruneDb(*(*current)->owned, limits, work, report);
    const bool stopped = (*current)->failed();
    current->reset();
    if (done.ok()) return report;
    const bool again = stopped && (report.profiles > before || tries == 1) && tries < kPruneTries;
    const Status recovered = Recover();
    if (recovered.code() == Code::kCorrupt) return recovered;
    if (recovered.ok() && again) continue;
    if (report.profiles == 0) return done;
    return done.Within(fmt::format("{} profiles were deleted, then", report.profiles));
  }
}

Status Archive::Compact(const ArchiveProgress& progress) {
  const auto turn = rep_->turns.Long();
  return rep_->AndRecover(rep_->Compact(rep_->Alive(progress)));
}

Status Archive::Rep::Compact(const ArchiveProgress& alive) {
  const auto current = Writable();
  if (!current.ok()) return current.status();
  SONDE_RETURN_IF_ERROR(DropSchemas(*(*current)->owned, alive));
  // LevelDB writes while it compacts.
  const ArchiveTurns::Rest rest(turns);
  return CompactDb(*(*current)->owned, alive);
}

Result<Imported> Archive::Import(int file, const std::string& name,
                                 const ArchiveProgress& progress) {
  const auto turn = rep_->turns.Long();
  auto current = rep_->Writable();
  if (!current.ok()) return current.status();
  auto imported = ImportInto(*(*current)->owned, rep_->paths, file, name, rep_->Alive(progress));
  current->reset();
  return rep_->AndRecover(std::move(imported));
}

Result<RepairReport> Archive::Repair(const ArchiveProgress& progress) {
  const auto turn = rep_->turns.Alone();
  // After a failure what was acknowledged is looked for before it is touched.
  if (const auto current = rep_->Writable(); !current.ok()) return current.status();
  ArchiveLock lock = rep_->Close();
  auto report = RepairHeld(rep_->paths, [&](uint64_t done, uint64_t total) {
    lock.Touch();
    return !progress || progress(done, total);
  });
  if (const Status opened = rep_->OpenWith(std::move(lock)); !opened.ok()) {
    const std::lock_guard guard(rep_->mutex);
    rep_->closed_by = opened;
    return opened;
  }
  return report;
}

}  // namespace sonde
