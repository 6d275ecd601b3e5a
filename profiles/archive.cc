// The reading side: db/ and live/ as one list of profiles.
//
// Whoever can open db/ for writing does, and ingests first. Everybody else (somebody has it open,
// it is another user's, read-only or damaged) reads a snapshot of it, taken anew for every list.
#include "profiles/archive.h"

#include <fmt/format.h>
#include <leveldb/db.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <mutex>
#include <set>

#include "profiles/archive_db.h"
#include "profiles/archive_dir.h"
#include "profiles/archive_keeper.h"
#include "profiles/archive_lock.h"
#include "profiles/card.h"
#include "profiles/index.h"
#include "profiles/ingest.h"
#include "profiles/keys.h"
#include "profiles/leveldb_env.h"
#include "profiles/live_steps.h"
#include "profiles/profile_reader.h"
#include "profiles/retention.h"
#include "profiles/select.h"
#include "profiles/tags.h"

namespace sonde {
namespace {

constexpr Nanos kPruneFor = 20 * kMillisecond;  // behind an ingest

// db/, held for writing or seen through a snapshot. Shared by the calls that use it.
struct OpenedDb {
  mutable ArchiveLock lock;
  std::unique_ptr<leveldb::DB> owned;
  ReadOnlyDb snapshot;
  leveldb::DB* get() const { return owned ? owned.get() : snapshot.db.get(); }
};

ProfileEntry EntryOf(const LiveStep& step) {
  ProfileEntry entry;
  entry.key = step.key;
  entry.job = step.job;
  entry.live = true;
  entry.running = step.running;
  entry.endpoint = step.endpoint;
  return entry;
}

// Whether the step or its job is meant by `id`.
bool IsMeant(const JobDescription& job, const JobStep& id) {
  const std::vector<std::string> ids = IdsOf(job);
  return std::find(ids.begin(), ids.end(), id.job) != ids.end() &&
         (id.step.empty() || id.step == job.id.step);
}

bool RunsOn(const JobDescription& job, const std::string& host) {
  return host.empty() || std::any_of(job.nodes.begin(), job.nodes.end(),
                                     [&](const NodeInfo& node) { return node.host == host; });
}

bool HasProfile(leveldb::DB& db, const JobDescription& job) {
  std::string ignored;
  return db.Get(leveldb::ReadOptions(), keys::ByTime(job), &ignored).ok();
}

std::set<std::string> LiveKeys(const ArchivePaths& paths) {
  std::set<std::string> keys;
  for (const LiveStep& step : ScanLive(paths)) keys.insert(step.key);
  return keys;
}

bool NewerFirst(const ProfileEntry& a, const ProfileEntry& b) {
  return a.job.start != b.job.start ? a.job.start > b.job.start : a.key < b.key;
}

// A step may have several parts in live/ and be in db/ as well: each key once, running first.
std::vector<ProfileEntry> Unite(std::vector<ProfileEntry> db, const std::vector<LiveStep>& live) {
  for (const LiveStep& step : live) {
    const auto same = [&](const ProfileEntry& e) { return e.key == step.key; };
    const auto it = std::find_if(db.begin(), db.end(), same);
    if (it == db.end()) {
      db.push_back(EntryOf(step));
    } else if (step.running && !it->running) {
      *it = EntryOf(step);
    }
  }
  std::sort(db.begin(), db.end(), NewerFirst);
  return db;
}

}  // namespace

struct Archive::Rep {
  explicit Rep(const std::string& root) : paths(root) {}

  ArchivePaths paths;
  std::string note;
  bool kept = false;                           // by a server, which was asked to take in what waits
  std::mutex ingesting;                        // by one at a time
  mutable std::mutex mutex;                    // of `db`
  mutable std::shared_ptr<const OpenedDb> db;  // nullptr: there is none

  void AddNote(std::string_view text) {
    if (!note.empty()) note += "; ";
    note += text;
  }
  Status OpenOwned(Nanos wait);
  Result<uint64_t> IngestAll(const std::function<void(size_t, size_t)>& progress);
  std::shared_ptr<const OpenedDb> Current() const;
  std::shared_ptr<const OpenedDb> Refreshed() const;
  Result<ProfileEntry> EntryOfKey(leveldb::DB& db, std::string_view key) const;
  // The profiles an index names, at most `limit`.
  Result<std::vector<ProfileEntry>> Scan(const std::string& prefix,
                                         std::string_view (*profile_of)(std::string_view),
                                         size_t limit) const;
  template <typename T>
  Result<T> WithReader(const std::string& key,
                       const std::function<Result<T>(const ProfileReader&)>& f) const;
};

Status Archive::Rep::OpenOwned(Nanos wait) {
  auto lock = ArchiveLock::Acquire(paths, 0);
  if (lock.status().code() == Code::kBusy) {
    // Who keeps the archive for long takes in what waits, and is not waited for.
    kept = AskKeeper(paths.root, 0).ok();
    if (!kept && wait > 0) lock = ArchiveLock::Acquire(paths, wait);
  }
  if (!lock.ok()) return lock.status();
  auto opened = OpenDb(paths);
  if (!opened.ok()) return opened.status();
  auto owned = std::make_shared<OpenedDb>();
  owned->lock = std::move(*lock);
  owned->owned = *std::move(opened);
  const std::lock_guard guard(mutex);
  db = std::move(owned);
  return {};
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

std::shared_ptr<const OpenedDb> Archive::Rep::Current() const {
  const std::lock_guard guard(mutex);
  return db;
}

std::shared_ptr<const OpenedDb> Archive::Rep::Refreshed() const {
  auto current = Current();
  if (current && current->owned) return current;
  auto taken = ReadOnlyDb::Open(paths.db());
  if (!taken.ok()) return current;
  auto fresh = std::make_shared<OpenedDb>();
  fresh->snapshot = *std::move(taken);
  const std::lock_guard guard(mutex);
  db = fresh;
  return fresh;
}

Archive::Archive() = default;
Archive::~Archive() = default;

Result<std::unique_ptr<Archive>> Archive::Open(
    const std::string& root, Nanos wait, const std::function<void(size_t, size_t)>& progress) {
  std::unique_ptr<Archive> archive(new Archive);
  archive->rep_ = std::make_unique<Rep>(root);
  Rep& rep = *archive->rep_;
  const auto read_only = IsReadOnly(rep.paths);
  if (!read_only.ok()) {
    if (read_only.status().code() != Code::kNotFound) return read_only.status();
    rep.AddNote(
        "there is no archive at " + root +
        " yet; it is made by the first step that is recorded (SONDE_ARCHIVE names another)");
    return archive;
  }
  SONDE_RETURN_IF_ERROR(CheckArchiveFormat(rep.paths));
  if (*read_only) {
    rep.AddNote("archive " + root + " is only read: it is another user's or cannot be written");
  } else if (!NamesIn(rep.paths.live()).empty() || !NamesIn(rep.paths.db()).empty()) {
    const Status status = rep.OpenOwned(wait);
    if (status.ok()) {
      SweepLive(rep.paths);
      const auto taken = rep.IngestAll(progress);
      if (!taken.ok()) rep.AddNote(taken.status().message());
      return archive;
    }
    if (status.code() == Code::kUnsupported) return status;
    if (status.code() != Code::kBusy) {
      rep.AddNote("only reading: " + std::string(status.message()));
    } else if (!rep.kept) {
      rep.AddNote(
          "another program has the archive open: steps that finished just now wait in live/ and "
          "are moved later");
    }
  }
  const auto snapshot = rep.Refreshed();
  if (snapshot && !snapshot->snapshot.damage.empty()) {
    rep.AddNote(
        "the archive is damaged and some of it may be missing: " + snapshot->snapshot.damage +
        "; 'sonde archive verify' tells what, 'sonde archive repair' mends it");
  }
  return archive;
}

Result<std::unique_ptr<Archive>> Archive::OpenToRead(const std::string& root) {
  std::unique_ptr<Archive> archive(new Archive);
  archive->rep_ = std::make_unique<Rep>(root);
  SONDE_RETURN_IF_ERROR(CheckArchiveFormat(archive->rep_->paths));
  return archive;
}

const std::string& Archive::note() const { return rep_->note; }

bool Archive::owned() const {
  const auto current = rep_->Current();
  return current && current->owned;
}

Result<uint64_t> Archive::IngestWaiting() {
  const std::lock_guard guard(rep_->ingesting);
  if (const auto current = rep_->Current(); current && current->owned) {
    current->lock.Touch();
  } else {
    SONDE_RETURN_IF_ERROR(rep_->OpenOwned(0));
  }
  return rep_->IngestAll(nullptr);
}

Result<ProfileEntry> Archive::Rep::EntryOfKey(leveldb::DB& from, std::string_view key) const {
  ProfileEntry entry;
  entry.key = key;
  auto job = ProfileReader(from, entry.key).Description();
  if (!job.ok()) {
    // It is listed all the same: what the key tells, and why there is no more.
    auto known = keys::DescribeKey(key);
    if (!known) return Status(Code::kCorrupt, "list profiles: a key of the index is damaged");
    known->state = EndState::kLost;
    known->notes.emplace_back(job.status().message());
    job = *std::move(known);
  }
  entry.job = *std::move(job);
  return entry;
}

Result<std::vector<ProfileEntry>> Archive::Rep::Scan(
    const std::string& prefix, std::string_view (*profile_of)(std::string_view),
    size_t limit) const {
  std::vector<ProfileEntry> entries;
  const auto current = Refreshed();
  if (!current) return entries;
  leveldb::ReadOptions options;
  options.verify_checksums = true;
  const std::unique_ptr<leveldb::Iterator> it(current->get()->NewIterator(options));
  for (it->Seek(prefix); it->Valid() && it->key().starts_with(prefix) && entries.size() < limit;
       it->Next()) {
    auto entry = EntryOfKey(*current->get(), profile_of({it->key().data(), it->key().size()}));
    if (entry.ok()) entries.push_back(*std::move(entry));
  }
  if (!it->status().ok()) return FromLevelDb(it->status(), "list profiles in " + paths.db());
  return entries;
}

Result<std::vector<ProfileEntry>> Archive::List(size_t limit) const {
  // live/ first: a step that moves meanwhile is then seen in both rather than in none.
  const std::vector<LiveStep> live = ScanLive(rep_->paths);
  auto entries = rep_->Scan(std::string(keys::kByTime), keys::ProfileOfTimeIndex, limit);
  if (!entries.ok()) return entries;
  std::vector<ProfileEntry> all = Unite(*std::move(entries), live);
  if (all.size() > limit) all.resize(limit);
  return all;
}

Result<std::vector<ListedProfile>> Archive::Select(const Selection& selection, Nanos now) const {
  const std::vector<LiveStep> live = ScanLive(rep_->paths);  // first, as in List
  const auto current = rep_->Refreshed();
  // Some of what db/ gives may run again in live/.
  Selection wanted = selection;
  wanted.limit += std::min(live.size(), SIZE_MAX - wanted.limit);
  SelectedList stored(wanted, now);
  if (current) SONDE_RETURN_IF_ERROR(SelectFrom(*current->get(), wanted, stored));
  std::map<std::string, bool> from_live;  // and whether it runs
  SelectedList list(selection, now);
  Card card;
  for (const LiveStep& step : live) {
    if (!step.running && current && HasProfile(*current->get(), step.job)) continue;
    const auto [known, is_new] = from_live.try_emplace(step.key, step.running);
    known->second |= step.running;
    if (!is_new || step.job.start < selection.since || step.job.start > selection.until ||
        !RunsOn(step.job, selection.node)) {
      continue;
    }
    Profile bare;
    bare.job = step.job;
    const auto profile = Load(step.key);
    const std::string made = MakeCard(profile.ok() ? *profile : bare, 0, now);
    SONDE_RETURN_IF_ERROR(DecodeCard(made, card));
    if (Matches(card, selection)) list.Add(step.key, made, card, step.job.start);
  }
  for (const Selected& one : stored.Take()) {
    if (from_live.contains(one.key)) continue;
    SONDE_RETURN_IF_ERROR(DecodeCard(one.card, card));
    list.Add(one.key, one.card, card, one.start);
  }
  std::vector<ListedProfile> all;
  for (Selected& one : list.Take()) {
    const auto found = from_live.find(one.key);
    const bool is_live = found != from_live.end();
    all.push_back(
        {std::move(one.key), std::move(one.card), one.start, is_live, is_live && found->second});
  }
  return all;
}

Result<bool> Archive::BuildIndexes(Nanos budget,
                                   const std::function<void(uint64_t, uint64_t)>& progress) {
  const std::lock_guard guard(rep_->ingesting);
  const auto current = rep_->Current();
  if (!current || !current->owned) return true;
  return sonde::BuildIndexes(*current->owned, budget, progress);
}

Result<UserTags> Archive::Tag(const std::string& key, const TagChange& change) {
  const std::lock_guard guard(rep_->ingesting);
  const auto current = rep_->Current();
  if (!current || !current->owned) {
    return Status(Code::kBusy, "the archive cannot be written now: " + rep_->note);
  }
  for (const LiveStep& step : ScanLive(rep_->paths)) {
    if (step.key != key) continue;
    return Status(Code::kBusy, step.job.id.ToString() +
                                   (step.running ? " is running; it can be tagged when it has ended"
                                                 : " waits in live/"));
  }
  return ChangeTags(*current->owned, key, change);
}

Result<PruneReport> Archive::Prune(const Retention& limits, Nanos now, Nanos budget, bool dry_run) {
  const std::lock_guard guard(rep_->ingesting);
  const auto current = dry_run ? rep_->Refreshed() : rep_->Current();
  if (!current && dry_run) return PruneReport();
  if (!current || (!current->owned && !dry_run)) {
    return Status(Code::kBusy, "the archive cannot be written now: " + rep_->note);
  }
  return PruneDb(*current->get(), limits, {now, budget, dry_run, LiveKeys(rep_->paths)});
}

Status Archive::Compact(const std::function<void(uint64_t, uint64_t)>& progress) {
  const std::lock_guard guard(rep_->ingesting);
  const auto current = rep_->Current();
  if (!current || !current->owned) {
    return {Code::kBusy, "the archive cannot be written now: " + rep_->note};
  }
  return CompactDb(*current->owned, progress);
}

Result<std::vector<ProfileEntry>> Archive::Find(const JobStep& id) const {
  std::vector<LiveStep> live = ScanLive(rep_->paths);
  std::erase_if(live, [&](const LiveStep& step) { return !IsMeant(step.job, id); });
  auto entries = rep_->Scan(keys::ByJobPrefix(id), keys::ProfileOfJobIndex, SIZE_MAX);
  if (!entries.ok()) return entries;
  return Unite(*std::move(entries), live);
}

template <typename T>
Result<T> Archive::Rep::WithReader(const std::string& key,
                                   const std::function<Result<T>(const ProfileReader&)>& f) const {
  const auto in_live = [&](const LiveStep& step) -> Result<T> {
    const auto opened = ReadOnlyDb::Open(step.paths.blocks());
    if (!opened.ok()) return opened.status();
    return f(ProfileReader(*opened->db, key));
  };
  std::vector<LiveStep> parts = ScanLive(paths);
  std::erase_if(parts, [&](const LiveStep& step) { return step.key != key; });
  for (const LiveStep& step : parts) {
    if (step.running) return in_live(step);
  }
  // In the end once more: what lay in live/ may have been taken in meanwhile.
  for (const bool last : {false, true}) {
    for (const auto& current : {Current(), Refreshed()}) {
      if (!current) continue;
      const ProfileReader reader(*current->get(), key);
      if (reader.Description().status().code() != Code::kNotFound) return f(reader);
    }
    if (last || parts.empty()) break;
    auto read = in_live(parts.front());
    if (read.ok() || std::filesystem::exists(parts.front().paths.lock())) return read;
  }
  return Status(Code::kNotFound, "there is no profile " + key.substr(0, 256));
}

Result<Profile> Archive::Load(const std::string& key) const {
  return rep_->WithReader<Profile>(key, [](const ProfileReader& reader) { return reader.Load(); });
}

Result<std::vector<SeriesData>> Archive::Read(const std::string& key, Scope scope,
                                              const std::function<bool(const Series&)>& wanted,
                                              Nanos start, Nanos end, Thinned thinned) const {
  using Data = std::vector<SeriesData>;
  return rep_->WithReader<Data>(key, [&](const ProfileReader& reader) {
    return reader.Read(scope, wanted, start, end, thinned);
  });
}

Result<std::vector<Series>> Archive::AllSeries(const std::string& key, Scope scope) const {
  return rep_->WithReader<std::vector<Series>>(
      key, [&](const ProfileReader& reader) { return reader.AllSeries(scope); });
}

Status Archive::ReadRows(const std::string& key, Scope scope, const RowsWanted& wanted,
                         const OnStoredRow& f) const {
  const auto read = rep_->WithReader<bool>(key, [&](const ProfileReader& reader) -> Result<bool> {
    const Status status = reader.ReadRows(scope, wanted, f);
    if (!status.ok()) return status;
    return true;
  });
  return read.status();
}

Result<uint64_t> Archive::ReadRecords(const std::string& key,
                                      const std::function<Status(const FileRecord&)>& f) const {
  for (const LiveStep& step : ScanLive(rep_->paths)) {
    if (step.key != key) continue;
    return Status(Code::kBusy, step.running ? "it is running: it can be exported as a file when it "
                                              "has ended"
                                            : "it waits in live/ until the archive, which another "
                                              "program has open, takes it in");
  }
  return rep_->WithReader<uint64_t>(key, [&](const ProfileReader& reader) -> Result<uint64_t> {
    ReadTally tally;
    SONDE_RETURN_IF_ERROR(reader.ForEachRecord(f, tally));
    return tally.unreadable;
  });
}

Result<ProfileEntry> Archive::Entry(const std::string& key) const {
  bool live = false;
  for (const LiveStep& step : ScanLive(rep_->paths)) {
    if (step.key != key) continue;
    if (step.running) return EntryOf(step);
    live = true;
  }
  const auto job = rep_->WithReader<JobDescription>(
      key, [](const ProfileReader& reader) { return reader.Description(); });
  if (!job.ok()) return job.status();
  ProfileEntry entry;
  entry.key = key;
  entry.job = *job;
  entry.live = live;
  return entry;
}

Status IngestLive(const std::string& root, const std::string& live_path, Nanos wait,
                  const Retention* limits) {
  const ArchivePaths paths(root);
  const std::string prefix = paths.live() + "/";
  if (!live_path.starts_with(prefix)) {
    return {Code::kInvalid, "ingest " + live_path + ": it is not below " + paths.live()};
  }
  auto lock = ArchiveLock::Acquire(paths, wait);
  if (lock.status().code() == Code::kBusy && AskKeeper(root, 0).ok()) {
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
  const auto pruned = PruneDb(**db, *limits, {now, kPruneFor, false, LiveKeys(paths)});
  return pruned.ok() ? Status() : pruned.status();
}

}  // namespace sonde
