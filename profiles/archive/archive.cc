// The reading side: db/ and live/ as one list of profiles.
//
// Whoever opens db/ for writing ingests first. Everybody else (who only wants to read, or finds
// that somebody has it open, that it is another user's, read-only or damaged) reads a snapshot of
// it, taken anew for every list if something was written since.
#include "profiles/archive.h"

#include <fmt/format.h>
#include <leveldb/db.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <mutex>

#include "profiles/archive_db.h"
#include "profiles/archive_rep.h"
#include "profiles/archive_repair.h"
#include "profiles/card.h"
#include "profiles/index.h"
#include "profiles/ingest.h"
#include "profiles/keys.h"
#include "profiles/live_steps.h"
#include "profiles/lock_holder.h"
#include "profiles/select.h"

namespace sonde {
namespace {

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

// A snapshot and the share that keeps its tables where they are.
std::shared_ptr<const OpenedDb> Shared(std::shared_ptr<const OpenedDb> snapshot, FileShare share) {
  struct Both {
    std::shared_ptr<const OpenedDb> snapshot;
    FileShare share;
  };
  auto both = std::make_shared<const Both>(Both{std::move(snapshot), std::move(share)});
  return {both, both->snapshot.get()};
}

}  // namespace

std::shared_ptr<const OpenedDb> Archive::Rep::Current() const {
  const std::lock_guard guard(mutex);
  return db;
}

std::shared_ptr<const OpenedDb> Archive::Rep::Refreshed() const {
  auto current = Current();
  if (current && current->owned) return current;
  auto share = FileShare::Take(paths.db_lock());
  if (current && current->snapshot.state == DbState::Of(paths.db())) {
    return Shared(std::move(current), std::move(share));
  }
  auto taken = ReadOnlyDb::Open(paths.db());
  if (!taken.ok()) return current;
  auto fresh = std::make_shared<OpenedDb>();
  fresh->snapshot = *std::move(taken);
  const std::lock_guard guard(mutex);
  // Meanwhile it may have become ours.
  if (db && db->owned) return db;
  db = std::move(fresh);
  return Shared(db, std::move(share));
}

std::shared_ptr<const OpenedDb> Archive::Rep::Known() const {
  auto current = Current();
  if (!current || current->owned) return current;
  auto share = FileShare::Take(paths.db_lock());
  const bool same = current->snapshot.state.HasSameTables(DbState::OfTables(paths.db()));
  return same ? Shared(std::move(current), std::move(share)) : nullptr;
}

bool Archive::Rep::WorkWaits() const {
  constexpr size_t kMostFormat = 64;
  const auto format = ReadSmallFile(paths.db_format(), kMostFormat);
  if (!format.ok() || *format != keys::kFormat) return true;
  for (const std::string& name : NamesIn(paths.live())) {
    if (name[0] == kHidden) return true;
  }
  const std::vector<LiveStep> steps = ScanLive(paths);
  const auto waits = [](const LiveStep& step) { return !step.running; };
  if (std::any_of(steps.begin(), steps.end(), waits)) return true;
  const auto seen = Refreshed();
  return !seen || !seen->snapshot.damage.empty() || !IsIndexed(*seen->get());
}

void Archive::Rep::Look() {
  const auto snapshot = Refreshed();
  if (!snapshot || snapshot->snapshot.damage.empty()) return;
  AddNote("the archive is damaged and some of it may be missing: " + snapshot->snapshot.damage +
          "; 'sonde archive verify' tells what, 'sonde archive repair' mends it");
}

Archive::Archive() = default;
Archive::~Archive() = default;

Result<std::unique_ptr<Archive>> Archive::Open(const std::string& root, Nanos wait,
                                               const std::function<void(size_t, size_t)>& progress,
                                               For use) {
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
  rep.read_only = *read_only;
  if (*read_only) {
    rep.AddNote("archive " + root + " is only read: it is another user's or cannot be written");
  } else if (use == For::kReading && !rep.WorkWaits()) {
    return archive;
  } else if (!NamesIn(rep.paths.live()).empty() || !NamesIn(rep.paths.db()).empty() ||
             IsRepairCutOff(rep.paths)) {
    const Status status = rep.OpenOwned(wait, Rep::Keeper::kAsked);
    if (status.ok()) {
      SweepLive(rep.paths);
      const auto taken = rep.IngestAll(progress);
      if (!taken.ok()) rep.AddNote(taken.status().message());
      if (!rep.Recover().ok()) rep.AddNote("the archive is only read until it can be written");
      return archive;
    }
    if (status.code() == Code::kUnsupported) return status;
    if (status.code() != Code::kBusy) {
      rep.AddNote("only reading: " + std::string(status.message()));
    } else if (!rep.kept) {
      rep.AddNote(
          LockHolder(rep.paths.db_lock()) +
          " has the archive open: steps that finished just now wait in live/ and are moved later");
    }
  }
  rep.Look();
  return archive;
}

Result<std::unique_ptr<Archive>> Archive::OpenToRead(const std::string& root) {
  std::unique_ptr<Archive> archive(new Archive);
  archive->rep_ = std::make_unique<Rep>(root);
  archive->rep_->read_only = true;
  SONDE_RETURN_IF_ERROR(CheckArchiveFormat(archive->rep_->paths));
  return archive;
}

const std::string& Archive::note() const { return rep_->note; }

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
    if (Matches(card, selection) && Lasts(card, selection))
      list.Add(step.key, made, card, step.job.start);
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
    const auto opened = ReadOnlyDb::Open(step.paths.blocks(), step.paths.lock());
    if (!opened.ok()) return opened.status();
    return f(ProfileReader(*opened->db, key));
  };
  std::vector<LiveStep> parts = ScanLive(paths);
  std::erase_if(parts, [&](const LiveStep& step) { return step.key != key; });
  for (const LiveStep& step : parts) {
    if (!step.running) continue;
    auto read = in_live(step);
    if (read.ok() || std::filesystem::exists(step.paths.lock())) return read;
    break;  // it has ended and was taken in since
  }
  // In the end once more: what lay in live/ may have been taken in meanwhile.
  for (const bool last : {false, true}) {
    for (const auto see : {&Rep::Known, &Rep::Refreshed}) {
      const auto current = (this->*see)();
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
                                              Nanos start, Nanos end, Thinned thinned,
                                              Earlier earlier) const {
  using Data = std::vector<SeriesData>;
  return rep_->WithReader<Data>(key, [&](const ProfileReader& reader) {
    return reader.Read(scope, wanted, start, end, thinned, earlier);
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

}  // namespace sonde
