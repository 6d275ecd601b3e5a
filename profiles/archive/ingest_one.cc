#include "profiles/archive/ingest_one.h"

#include <memory>
#include <optional>
#include <string>

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
  if (db_ && db_->failure().ok()) return {};
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

Status OneIntake::Prune(const Retention& limits, PruneWork work, PruneReport& report) {
  SONDE_RETURN_IF_ERROR(Open());
  work.now = Clock::System().Now();
  work.live = LiveKeys(paths_);
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

}  // namespace

Status IngestLive(const std::string& root, const std::string& live_path, Nanos wait,
                  const Retention* limits) {
  const ArchivePaths paths(root);
  const std::string prefix = paths.live() + "/";
  if (!live_path.starts_with(prefix)) {
    return {Code::kInvalid, "ingest " + live_path + ": it is not below " + paths.live()};
  }
  const bool limited = limits != nullptr && limits->any();
  auto lock = ArchiveLock::Acquire(paths, wait);
  if (lock.status().code() == Code::kBusy && AskToIngest(root, 0).ok()) {
    return {Code::kBusy, "ingest " + live_path + ": who keeps the archive was asked to do it"};
  }
  // On a disk that is full to the last block the lock's text has no room either.
  if (limited && WantsRoom(lock.status()) && EmptyReserve(paths)) {
    lock = ArchiveLock::Acquire(paths, wait);
  }
  if (!lock.ok()) return lock.status();
  auto step = ReadLive(paths, live_path.substr(prefix.size()));
  if (!step.ok()) return step.status();
  if (step->running) return {Code::kBusy, "ingest " + live_path + ": its step still runs"};
  OneIntake intake(paths, *std::move(step), lock->claim());
  return limited ? IngestWithin(*limits, paths, intake) : intake.Ingest();
}

}  // namespace sonde
