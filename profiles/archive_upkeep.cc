// The writing side: what changes db/, by whoever has it open.
#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "profiles/archive_db.h"
#include "profiles/archive_rep.h"
#include "profiles/ask_keeper.h"
#include "profiles/index.h"
#include "profiles/ingest.h"
#include "profiles/live_steps.h"
#include "profiles/retention.h"
#include "profiles/tags.h"

namespace sonde {
namespace {

constexpr Nanos kPruneFor = 20 * kMillisecond;  // behind an ingest
constexpr Nanos kSayAlive = 30 * kSecond;

std::set<std::string> LiveKeys(const ArchivePaths& paths) {
  std::set<std::string> keys;
  for (const LiveStep& step : ScanLive(paths)) keys.insert(step.key);
  return keys;
}

}  // namespace

Status Archive::Rep::OpenOwned(Nanos wait) {
  auto lock = ArchiveLock::Acquire(paths, 0);
  if (lock.status().code() == Code::kBusy) {
    // Who keeps the archive for long takes in what waits, and is not waited for.
    kept = AskToIngest(paths.root, 0).ok();
    if (!kept && wait > 0) lock = ArchiveLock::Acquire(paths, wait);
  }
  if (!lock.ok()) return lock.status();
  return OpenWith(*std::move(lock));
}

Status Archive::Rep::OpenWith(ArchiveLock lock) {
  auto opened = OpenDb(paths);
  if (!opened.ok()) return opened.status();
  auto owned = std::make_shared<OpenedDb>();
  owned->lock = std::move(lock);
  owned->owned = *std::move(opened);
  const std::lock_guard guard(mutex);
  db = std::move(owned);
  return {};
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

Result<std::shared_ptr<const OpenedDb>> Archive::Rep::Owned() const {
  auto current = Current();
  if (current && current->owned) return current;
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
  size_t failed = 0;
  uint64_t taken = 0;
  Status first;
  for (size_t i = 0; i < waiting.size(); ++i) {
    if (progress) progress(i, waiting.size());
    turns.Pause();
    const Status status = IngestStep(*current->get(), paths, waiting[i]);
    if (status.ok()) ++taken;
    if (status.ok() || status.code() == Code::kBusy) continue;
    if (failed++ == 0) first = status;
  }
  if (progress && !waiting.empty()) progress(waiting.size(), waiting.size());
  if (failed == 0) return taken;
  return Status(first.code(),
                fmt::format("{} of {} finished steps could not be moved into the archive: {}",
                            failed, waiting.size(), first.message()));
}

const std::string& Archive::root() const { return rep_->paths.root; }

bool Archive::owned() const { return rep_->Owned().ok(); }

Result<uint64_t> Archive::IngestWaiting() {
  const auto turn = rep_->turns.Long();
  if (const auto current = rep_->Owned(); current.ok()) {
    (*current)->lock.Touch();
  } else {
    SONDE_RETURN_IF_ERROR(rep_->OpenOwned(0));
  }
  return rep_->IngestAll(nullptr);
}

Result<bool> Archive::BuildIndexes(Nanos budget,
                                   const std::function<void(uint64_t, uint64_t)>& progress) {
  const auto turn = rep_->turns.Long();
  const auto current = rep_->Owned();
  if (!current.ok()) return true;
  return sonde::BuildIndexes(*(*current)->owned, budget, progress);
}

Result<UserTags> Archive::Tag(const std::string& key, const TagChange& change) {
  const auto turn = rep_->turns.Short();
  if (!turn.ok()) return turn.status();
  const auto current = rep_->Owned();
  if (!current.ok()) return current.status();
  for (const LiveStep& step : ScanLive(rep_->paths)) {
    if (step.key != key) continue;
    return Status(Code::kBusy, step.job.id.ToString() +
                                   (step.running ? " is running; it can be tagged when it has ended"
                                                 : " waits in live/"));
  }
  return ChangeTags(*(*current)->owned, key, change);
}

Result<PruneReport> Archive::Prune(const Retention& limits, Nanos now, Nanos budget, bool dry_run,
                                   const ArchiveProgress& progress) {
  if (dry_run) {
    const PruneWork work{now, budget, dry_run, LiveKeys(rep_->paths), progress};
    const auto seen = rep_->Refreshed();
    return seen ? PruneDb(*seen->get(), limits, work) : PruneReport();
  }
  const auto turn = rep_->turns.Long();
  const PruneWork work{now, budget, dry_run, LiveKeys(rep_->paths), rep_->Alive(progress)};
  const auto current = rep_->Owned();
  return current.ok() ? PruneDb(*(*current)->owned, limits, work) : current.status();
}

Status Archive::Compact(const ArchiveProgress& progress) {
  const auto turn = rep_->turns.Long();
  const auto current = rep_->Owned();
  if (!current.ok()) return current.status();
  const auto alive = rep_->Alive(progress);
  SONDE_RETURN_IF_ERROR(DropSchemas(*(*current)->owned, alive));
  // LevelDB writes while it compacts.
  const ArchiveTurns::Rest rest(rep_->turns);
  return CompactDb(*(*current)->owned, alive);
}

Result<Imported> Archive::Import(int file, const std::string& name,
                                 const ArchiveProgress& progress) {
  const auto turn = rep_->turns.Long();
  const auto current = rep_->Owned();
  if (!current.ok()) return current.status();
  return ImportInto(*(*current)->owned, rep_->paths, file, name, rep_->Alive(progress));
}

Result<RepairReport> Archive::Repair(const ArchiveProgress& progress) {
  const auto turn = rep_->turns.Alone();
  if (const auto current = rep_->Owned(); !current.ok()) return current.status();
  ArchiveLock lock = rep_->Close();
  auto report = RepairHeld(rep_->paths, [&](uint64_t done, uint64_t total) {
    lock.Touch();
    return !progress || progress(done, total);
  });
  SONDE_RETURN_IF_ERROR(rep_->OpenWith(std::move(lock)));
  return report;
}

Status IngestLive(const std::string& root, const std::string& live_path, Nanos wait,
                  const Retention* limits) {
  const ArchivePaths paths(root);
  const std::string prefix = paths.live() + "/";
  if (!live_path.starts_with(prefix)) {
    return {Code::kInvalid, "ingest " + live_path + ": it is not below " + paths.live()};
  }
  auto lock = ArchiveLock::Acquire(paths, wait);
  if (lock.status().code() == Code::kBusy && AskToIngest(root, 0).ok()) {
    return {Code::kBusy, "ingest " + live_path + ": who keeps the archive was asked to do it"};
  }
  if (!lock.ok()) return lock.status();
  const auto step = ReadLive(paths, live_path.substr(prefix.size()));
  if (!step.ok()) return step.status();
  if (step->running) return {Code::kBusy, "ingest " + live_path + ": its step still runs"};
  const auto db = OpenDb(paths);
  if (!db.ok()) return db.status();
  SONDE_RETURN_IF_ERROR(IngestStep(**db, paths, *step));
  if (limits == nullptr || !limits->any()) return {};
  const Nanos now = Clock::System().Now();
  const auto pruned = PruneDb(**db, *limits, {now, kPruneFor, false, LiveKeys(paths), nullptr});
  return pruned.ok() ? Status() : pruned.status();
}

}  // namespace sonde
