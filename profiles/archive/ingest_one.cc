#include "profiles/archive/ingest_one.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/log.h"
#include "profiles/archive/ask_keeper.h"
#include "profiles/disk/archive_dir.h"
#include "profiles/disk/room.h"
#include "profiles/live/live_steps.h"
#include "profiles/records/owed_room.h"
#include "profiles/upkeep/ingest.h"
#include "profiles/upkeep/lock.h"
#include "profiles/upkeep/open_db.h"
#include "profiles/upkeep/retention.h"

namespace sonde {
namespace {

constexpr Nanos kPruneFor = 20 * kMillisecond;  // after the ingest
constexpr Nanos kGiveBackFor = 2 * kSecond;
constexpr Nanos kMakeRoomFor = 10 * kSecond;

class OneIntake {
 public:
  OneIntake(const ArchivePaths& paths, LiveStep step, std::shared_ptr<Fence> fence)
      : paths_(paths), step_(std::move(step)), fence_(std::move(fence)) {}

  // Does nothing if the step was ingested already.
  Status Ingest();
  // What other heads have left, until the deadline.
  void TakeWaiting(Nanos deadline);
  // Whether that made any room.
  Result<bool> MakeRoom(const Retention& limits);
  Status KeepTo(const Retention& limits);
  // Ends LevelDB's work under way, and gives its room back.
  void Close() { db_.reset(); }

 private:
  Status Open();
  Status Prune(const Retention& limits, PruneWork work, PruneReport& report);

  const ArchivePaths& paths_;
  const LiveStep step_;
  const std::shared_ptr<Fence> fence_;
  std::unique_ptr<WritableDb> db_;
  bool taken_ = false;
};

// Opens db/ anew after a failure.
Status OneIntake::Open() {
  if (db_ && db_->failure().ok()) {
    db_->BeginChange();
    return {};
  }
  db_.reset();
  auto opened = OpenDb(paths_, fence_);
  if (!opened.ok()) return opened.status();
  db_ = *std::move(opened);
  return {};
}

Status OneIntake::Ingest() {
  if (taken_) return {};
  SONDE_RETURN_IF_ERROR(Open());
  Intake intake(*db_, paths_);
  SONDE_RETURN_IF_ERROR(intake.Add(step_));
  SONDE_RETURN_IF_ERROR(intake.Settle());
  taken_ = true;
  return {};
}

void OneIntake::TakeWaiting(Nanos deadline) {
  const std::vector<std::string> names = NamesIn(paths_.waiting());
  if (names.empty() || !Open().ok()) return;
  Intake intake(*db_, paths_);
  const auto told = [&](const Status& status) {
    if (!status.ok()) log::Info("steps stay in {}: {}", paths_.live(), status.message());
    return status.ok();
  };
  for (const std::string& name : names) {
    if (Clock::System().Monotonic() >= deadline) break;
    const auto step = ReadLive(paths_, name);
    const auto there = step.ok() ? Exists(step->paths.dir) : Result<bool>(false);
    if (!there.ok()) continue;
    if (!*there) {
      ForgetWaiting(paths_, name);
      continue;
    }
    if (step->running || step->foreign) continue;
    const Status added = intake.Add(*step);
    // One step may be damaged, or of a newer release: that says nothing of those behind it.
    if (!told(added) && (WantsRoom(added) || !db_->failure().ok())) break;
    if (intake.full() && !told(intake.Settle())) break;
  }
  told(intake.Settle());
}

Status OneIntake::Prune(const Retention& limits, PruneWork work, PruneReport& report) {
  SONDE_RETURN_IF_ERROR(Open());
  work.now = Clock::System().Now();
  auto live = LiveKeys(paths_);
  if (!live.ok()) return live.status();
  work.live = *std::move(live);
  return PruneDb(*db_, limits, work, report);
}

Result<bool> OneIntake::MakeRoom(const Retention& limits) {
  PruneReport report;
  PruneWork work{.budget = kMakeRoomFor};
  if (!taken_) work.incoming = IncomingStep{step_.job.user, BytesIn(step_.paths.blocks())};
  SONDE_RETURN_IF_ERROR(Prune(limits, std::move(work), report));
  const auto given = GiveBack(*db_, kMakeRoomFor);
  if (!given.ok()) return given.status();
  return report.profiles + *given > 0;
}

Status OneIntake::KeepTo(const Retention& limits) {
  PruneReport report;
  SONDE_RETURN_IF_ERROR(Prune(limits, {.budget = kPruneFor}, report));
  const auto owed = ReadOwedRoom(*db_);
  if (!owed.ok()) return owed.status();
  return owed->much() ? GiveBack(*db_, kGiveBackFor).status() : Status();
}

Status IngestWithin(const Retention& limits, const ArchivePaths& paths, OneIntake& intake) {
  const auto all = [&]() -> Status {
    SONDE_RETURN_IF_ERROR(intake.Ingest());
    return intake.KeepTo(limits);
  };
  Status done = all();
  if (WantsRoom(done)) {
    // Otherwise no ingest could make the room that the next one needs.
    EmptyReserve(paths);
    const auto made = intake.MakeRoom(limits);
    if (!made.ok()) log::Info("make room in {}: {}", paths.root, made.status().message());
    if (made.ok() && *made) done = all();
  }
  intake.Close();
  FillReserve(paths);
  return done;
}

Result<ArchiveLock> TakeLock(const ArchivePaths& paths, Nanos wait, bool limited) {
  auto lock = ArchiveLock::Acquire(paths, wait);
  // On a disk that is full to the last block the lock's text has no room either.
  if (limited && WantsRoom(lock.status()) && EmptyReserve(paths)) {
    return ArchiveLock::Acquire(paths, wait);
  }
  return lock;
}

Status IngestOwn(const ArchivePaths& paths, const std::string& name, const Retention* limits,
                 const std::shared_ptr<Fence>& fence) {
  auto step = ReadLive(paths, name);
  if (!step.ok()) return step.status();
  if (step->running) {
    return {Code::kBusy, "ingest " + step->paths.dir + ": its step still runs"};
  }
  // Another process has taken it in already.
  const auto there = Exists(step->paths.dir);
  if (!there.ok() || !*there) return there.status();
  OneIntake intake(paths, *std::move(step), fence);
  return limits != nullptr ? IngestWithin(*limits, paths, intake) : intake.Ingest();
}

}  // namespace

Status IngestLive(const std::string& root, const std::string& live_path, Nanos wait,
                  const Retention* limits, Nanos others_for) {
  const ArchivePaths paths(root);
  const std::string prefix = paths.live() + "/";
  if (!live_path.starts_with(prefix)) {
    return {Code::kInvalid, "ingest " + live_path + ": it is not below " + paths.live()};
  }
  const std::string name = live_path.substr(prefix.size());
  const Nanos deadline = Clock::System().Monotonic() + others_for;
  const bool limited = limits != nullptr && limits->any();
  auto lock = TakeLock(paths, wait, limited);
  if (lock.status().code() == Code::kBusy) {
    if (AskToIngest(root, 0).ok()) {
      return {Code::kBusy, "ingest " + live_path + ": who keeps the archive was asked to do it"};
    }
    SONDE_RETURN_IF_ERROR(LeaveToHolder(paths, name));
    lock = TakeLock(paths, 0, limited);
  }
  if (!lock.ok()) return lock.status();
  const Status own = IngestOwn(paths, name, limited ? limits : nullptr, lock->claim());
  // The lock is given back before each look at what waits: who found it taken has left a name
  // before that, and who comes later finds it free. A failure of one's own says nothing of others.
  std::vector<std::string> tried;
  while (lock.ok()) {
    lock = Status(Code::kBusy, "given back");
    auto names = NamesIn(paths.waiting());
    if (names.empty() || names == tried || Clock::System().Monotonic() >= deadline) break;
    lock = TakeLock(paths, 0, limited);
    if (lock.ok()) OneIntake(paths, LiveStep(), lock->claim()).TakeWaiting(deadline);
    tried = std::move(names);
  }
  return own;
}

}  // namespace sonde
