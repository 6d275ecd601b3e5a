#include "profiles/archive/archive.h"

#include <fmt/core.h>
#include <leveldb/db.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "profiles/archive/shared_db.h"
#include "profiles/disk/damage.h"
#include "profiles/disk/leveldb_env.h"
#include "profiles/disk/leveldb_read.h"
#include "profiles/live/live_steps.h"
#include "profiles/reading/profile_reader.h"
#include "profiles/records/card.h"
#include "profiles/records/index.h"
#include "profiles/records/keys.h"
#include "profiles/records/records.h"
#include "profiles/select/select.h"
#include "profiles/upkeep/open_db.h"
#include "profiles/upkeep/retention.h"

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

// Whether `id` means the step or its job.
bool IsMeant(const JobDescription& job, const JobStep& id) {
  const std::vector<std::string> ids = IdsOf(job);
  return std::find(ids.begin(), ids.end(), id.job) != ids.end() &&
         (id.step.empty() || id.step == job.id.step);
}

bool RunsOn(const JobDescription& job, const std::string& host) {
  return host.empty() || std::any_of(job.nodes.begin(), job.nodes.end(),
                                     [&](const NodeInfo& node) { return node.host == host; });
}

// Whether a step passes the filters, except those of its begin.
bool Passes(const JobDescription& job, const Card& card, const Selection& selection) {
  const auto on_node = [&](const std::string& host) { return RunsOn(job, host); };
  return RunsOn(job, selection.node) && Matches(card, selection) && Lasts(card, selection) &&
         Finds(card, job.id, selection, on_node);
}

bool HasProfile(leveldb::DB& db, const JobDescription& job) {
  std::string ignored;
  return db.Get(CheckedRead(), keys::ByTime(job), &ignored).ok();
}

// Whether it was taken in since it was looked at.
bool IsGone(const LiveStep& step) {
  const auto there = Exists(step.paths.lock());
  return there.ok() && !*there;
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

// The step is listed even if its description cannot be read.
Result<ProfileEntry> EntryOfKey(leveldb::DB& from, std::string_view key, const SharedDb& db) {
  ProfileEntry entry;
  entry.key = key;
  const auto job = ProfileReader(from, entry.key, &db.damage, &db.kept).Described();
  if (!job.ok()) {
    // The profile is still listed, with what its key tells and the reason why there is no more.
    auto known = keys::DescribeKey(key);
    if (!known) return Status(Code::kCorrupt, "list profiles: a key of the index is damaged");
    known->state = EndState::kLost;
    known->notes.emplace_back(job.status().message());
    entry.job = *std::move(known);
  } else {
    entry.job = **job;
  }
  return entry;
}

}  // namespace

Result<std::shared_ptr<const Archive>> Archive::Open(const std::string& root) {
  auto db = std::make_shared<SharedDb>(root);
  SONDE_RETURN_IF_ERROR(CheckArchiveFormat(db->paths));
  return std::make_shared<const Archive>(std::move(db), "");
}

Archive::Archive(std::shared_ptr<SharedDb> db, std::string note)
    : db_(std::move(db)), note_(std::move(note)) {}
Archive::~Archive() { OnDamage(nullptr); }

const std::string& Archive::root() const { return db_->paths.root; }
std::vector<std::string> Archive::damage() const { return db_->damage.List(); }
void Archive::OnDamage(std::function<void(const std::string&)> hear) const {
  db_->damage.OnFound(std::move(hear));
}

Result<std::shared_ptr<const OpenedDb>> Archive::Refreshed() const {
  auto current = db_->Refreshed();
  if (current.ok() && *current && !(*current)->snapshot.damage.empty()) {
    db_->damage.Add("db/: " + (*current)->snapshot.damage);
  }
  return current;
}

Result<std::vector<ProfileEntry>> Archive::Indexed(
    const std::string& prefix, std::string_view (*profile_of)(std::string_view), size_t limit,
    const std::function<bool(const JobDescription&)>& meant) const {
  std::vector<ProfileEntry> entries;
  const auto refreshed = Refreshed();
  if (!refreshed.ok()) return refreshed.status();
  const auto& current = *refreshed;
  if (!current) return entries;
  leveldb::DB& db = *current->get();
  Status status;
  if (current->snapshot.damage.empty()) {
    const std::unique_ptr<leveldb::Iterator> it(db.NewIterator(CheckedRead()));
    for (it->Seek(prefix); it->Valid() && it->key().starts_with(prefix) && entries.size() < limit;
         it->Next()) {
      auto entry = EntryOfKey(db, profile_of(View(it->key())), *db_);
      if (entry.ok()) entries.push_back(*std::move(entry));
    }
    status = FromLevelDb(it->status(), "list profiles in " + db_->paths.db());
    if (status.ok()) return entries;
    if (status.code() != Code::kCorrupt) return status;
    db_->damage.Add("some of the indexes", status);
    entries.clear();
  }
  // Some of the index may be missing: the profiles themselves are looked at.
  for (const std::string& key : DescribedProfiles(db)) {
    auto entry = EntryOfKey(db, key, *db_);
    if (entry.ok() && (!meant || meant(entry->job))) entries.push_back(*std::move(entry));
  }
  std::sort(entries.begin(), entries.end(), NewerFirst);
  if (entries.size() > limit) entries.resize(limit);
  return entries;
}

Result<std::vector<ProfileEntry>> Archive::List(size_t limit) const {
  // live/ first: a step that moves meanwhile is then seen in both rather than in neither.
  const auto live = ScanLive(db_->paths, {.kept = &db_->kept});
  if (!live.ok()) return live.status();
  auto entries = Indexed(std::string(keys::kByTime), keys::ProfileOfTimeIndex, limit);
  if (!entries.ok()) return entries;
  std::vector<ProfileEntry> all = Unite(*std::move(entries), *live);
  if (all.size() > limit) all.resize(limit);
  return all;
}

Result<std::vector<ProfileEntry>> Archive::ListWithRunning(size_t limit) const {
  const auto live = ScanLive(db_->paths, {.kept = &db_->kept});  // first, as in List
  if (!live.ok()) return live.status();
  auto entries = Indexed(std::string(keys::kByTime), keys::ProfileOfTimeIndex, limit);
  if (!entries.ok()) return entries;
  std::vector<ProfileEntry> all = Unite(*std::move(entries), *live);
  const auto beyond = all.begin() + static_cast<ptrdiff_t>(std::min(limit, all.size()));
  all.erase(std::remove_if(beyond, all.end(), [](const ProfileEntry& e) { return !e.running; }),
            all.end());
  return all;
}

Result<std::vector<ListedProfile>> Archive::Select(const Selection& selection, Nanos now) const {
  Result<SelectedPage> page = SelectSome(selection, now, false);
  if (!page.ok()) return page.status();
  return std::move(page->profiles);
}

Result<SelectedPage> Archive::SelectPage(const Selection& selection, Nanos now) const {
  return SelectSome(selection, now, true);
}

Result<SelectedPage> Archive::SelectSome(const Selection& selection, Nanos now, bool count) const {
  const auto scanned = ScanLive(db_->paths, {.kept = &db_->kept});  // first, as in List
  if (!scanned.ok()) return scanned.status();
  const auto refreshed = Refreshed();
  if (!refreshed.ok()) return refreshed.status();
  const auto& current = *refreshed;
  std::map<std::string, bool> from_live;  // and whether it runs
  uint64_t in_both = 0;
  SelectedList list(selection, now);
  Card card;
  for (const LiveStep& step : *scanned) {
    const bool stored = current && HasProfile(*current->get(), step.job);
    if (!step.running && stored) continue;
    const auto [known, is_new] = from_live.try_emplace(step.key, step.running);
    known->second |= step.running;
    if (!is_new) continue;
    if (stored) ++in_both;
    if (step.job.start < selection.since || step.job.start > selection.until) continue;
    Profile bare;
    bare.job = step.job;
    const auto profile = Load(step.key);
    const std::string made = MakeCard(profile.ok() ? *profile : bare, 0, now);
    SONDE_RETURN_IF_ERROR(DecodeCard(made, card));
    if (Passes(step.job, card, selection)) {
      list.Add(step.key, made, card, step.job.start);
    }
  }
  SelectedPage page;
  page.found = list.found();
  // Where nothing is filtered, how many there are is noted.
  std::optional<uint64_t> noted;
  if (count && current && !HasFilters(selection)) {
    const Result<ProfileTotals> totals = ReadTotals(*current->get());
    if (totals.ok()) noted = totals->profiles - std::min(in_both, totals->profiles);
  }
  SelectedList stored(selection, now, count && !noted);
  std::set<std::string, std::less<>> in_live;
  for (const auto& [key, running] : from_live) in_live.insert(key);
  stored.Skip(std::move(in_live));
  if (current && !current->snapshot.damage.empty()) {
    SelectOneByOne(*current->get(), selection, stored);
  } else if (current) {
    SONDE_RETURN_IF_ERROR(SelectFrom(*current->get(), selection, stored, db_->damage));
  }
  page.found += noted.value_or(stored.found());
  for (const Selected& one : stored.Take()) {
    SONDE_RETURN_IF_ERROR(DecodeCard(one.card, card));
    list.Add(one.key, one.card, card, one.start);
  }
  std::vector<Selected> taken = list.Take();
  for (size_t i = selection.offset; i < taken.size(); ++i) {
    Selected& one = taken[i];
    const auto found = from_live.find(one.key);
    const bool is_live = found != from_live.end();
    page.profiles.push_back(
        {std::move(one.key), std::move(one.card), one.start, is_live, is_live && found->second});
  }
  return page;
}

Result<std::vector<ProfileEntry>> Archive::Find(const JobStep& id) const {
  auto live = ScanLive(db_->paths, {.kept = &db_->kept});
  if (!live.ok()) return live.status();
  std::erase_if(*live, [&](const LiveStep& step) { return !IsMeant(step.job, id); });
  auto entries = Indexed(keys::ByJobPrefix(id), keys::ProfileOfJobIndex, SIZE_MAX,
                         [&](const JobDescription& job) { return IsMeant(job, id); });
  if (!entries.ok()) return entries;
  return Unite(*std::move(entries), *live);
}

namespace {

// What `f` reads of a step in live/.
template <typename T>
Result<T> ReadInLive(const LiveStep& step, const SharedDb& db,
                     const std::function<Result<T>(const ProfileReader&)>& f) {
  const auto opened = ReadOnlyDb::Open(step.paths.blocks(), step.paths.lock());
  if (!opened.ok()) return opened.status();
  // While it is being written, its end may be half a record.
  if (!step.running && !opened->damage.empty()) {
    db.damage.Add("some of live/" + step.name, {Code::kCorrupt, opened->damage});
  }
  return f(ProfileReader(*opened->db, step.key, &db.damage, &db.kept));
}

// db/ as a reader knows it, or as it is now.
Result<SharedDb::Opened> See(const SharedDb& db, bool anew) {
  if (anew) return db.Refreshed();
  return db.Known();
}

}  // namespace

template <typename T>
Result<T> Archive::WithReader(const std::string& key,
                              const std::function<Result<T>(const ProfileReader&)>& f) const {
  const auto in_live = [&](const LiveStep& step) { return ReadInLive(step, *db_, f); };
  const auto scanned = ScanLive(db_->paths, {.key = key, .described = false});
  if (!scanned.ok()) return scanned.status();
  const std::vector<LiveStep>& parts = *scanned;
  for (const LiveStep& step : parts) {
    if (!step.running) continue;
    auto read = in_live(step);
    if (read.ok() || !IsGone(step)) return read;
    break;  // the step has ended and was ingested since
  }
  // Read db/ again at the end: steps of live/ may have been ingested meanwhile.
  for (const bool last : {false, true}) {
    for (const bool anew : {false, true}) {
      const auto seen = See(*db_, anew);
      if (!seen.ok()) return seen.status();
      const auto& current = *seen;
      if (!current) continue;
      const ProfileReader reader(*current->get(), key, &db_->damage, &db_->kept);
      // If db/ is damaged there, what still lies in live/ is better.
      if (parts.empty() ? reader.IsThere() : reader.IsReadable()) return f(reader);
    }
    if (last || parts.empty()) break;
    auto read = in_live(parts.front());
    if (read.ok() || !IsGone(parts.front())) return read;
  }
  return Status(Code::kNotFound, "there is no profile " + key.substr(0, 256));
}

Result<Profile> Archive::Load(const std::string& key) const {
  return WithReader<Profile>(key, [](const ProfileReader& reader) { return reader.Load(); });
}

namespace {

// Adds the points of another part of the profile; of equal times those that are there stay.
void AddPart(std::vector<SeriesData> part, std::vector<SeriesData>& all) {
  std::map<std::pair<std::string, Tags>, size_t> places;
  for (size_t i = 0; i < all.size(); ++i) {
    places.emplace(std::pair(all[i].series.metric.name, all[i].series.tags), i);
  }
  for (SeriesData& one : part) {
    const auto at = places.find({one.series.metric.name, one.series.tags});
    if (at == places.end()) {
      all.push_back(std::move(one));
      continue;
    }
    std::vector<Point>& points = all[at->second].points;
    points.insert(points.end(), one.points.begin(), one.points.end());
    std::stable_sort(points.begin(), points.end(),
                     [](const Point& a, const Point& b) { return a.time < b.time; });
    const auto same = [](const Point& a, const Point& b) { return a.time == b.time; };
    points.erase(std::unique(points.begin(), points.end(), same), points.end());
  }
}

}  // namespace

// Of a step that runs, another head's part may lie beside the one that is being written, or in db/.
Result<std::vector<SeriesData>> Archive::Read(const std::string& key, SeriesScope scope,
                                              const SeriesWanted& wanted, Nanos start, Nanos end,
                                              Thinned thinned, Earlier earlier) const {
  using Data = std::vector<SeriesData>;
  const auto read = [&](const ProfileReader& reader) {
    return reader.Read(scope, wanted, start, end, thinned, earlier);
  };
  Result<Data> all = WithReader<Data>(key, read);
  if (!all.ok() || scope != SeriesScope::kNodes) return all;
  const auto scanned = ScanLive(db_->paths, {.key = key, .described = false});
  if (!scanned.ok()) return scanned.status();
  const auto is_acting = [&](const LiveStep& step) { return step.running && step.name != key; };
  if (std::none_of(scanned->begin(), scanned->end(), is_acting)) return all;
  for (const LiveStep& step : *scanned) {
    if (step.running) continue;
    Result<Data> part = ReadInLive<Data>(step, *db_, read);
    if (part.ok()) AddPart(*std::move(part), *all);
  }
  const auto seen = db_->Refreshed();  // last: a part may have been taken in meanwhile
  if (!seen.ok() || *seen == nullptr) return all;
  const ProfileReader reader(*(*seen)->get(), key, &db_->damage, &db_->kept);
  if (!reader.IsThere()) return all;
  Result<Data> part = read(reader);
  if (part.ok()) AddPart(*std::move(part), *all);
  return all;
}

Result<std::vector<Series>> Archive::AllSeries(const std::string& key, SeriesScope scope,
                                               const SeriesWanted& wanted, size_t limit) const {
  return WithReader<std::vector<Series>>(
      key, [&](const ProfileReader& reader) { return reader.AllSeries(scope, wanted, limit); });
}

namespace {

// Of a reader that fails, or gives all to a function.
Result<bool> AsResult(const Status& status) {
  if (!status.ok()) return status;
  return true;
}

}  // namespace

Status Archive::ReadShapes(const std::string& key, SeriesScope scope,
                           const OnStoredShape& f) const {
  return WithReader<bool>(
             key,
             [&](const ProfileReader& reader) { return AsResult(reader.ReadShapes(scope, f)); })
      .status();
}

Status Archive::ReadRows(const std::string& key, SeriesScope scope, const RowsWanted& wanted,
                         const OnStoredRow& f) const {
  return WithReader<bool>(key,
                          [&](const ProfileReader& reader) {
                            return AsResult(reader.ReadRows(scope, wanted, f));
                          })
      .status();
}

Result<uint64_t> Archive::ReadRecords(const std::string& key,
                                      const std::function<Status(const FileRecord&)>& f) const {
  const auto steps = ScanLive(db_->paths, {.key = key, .described = false});
  if (!steps.ok()) return steps.status();
  for (const LiveStep& step : *steps) {
    return Status(Code::kBusy, step.running ? "it is running: it can be exported as a file when it "
                                              "has ended"
                                            : "it waits in live/ until the archive, which another "
                                              "program has open, takes it in");
  }
  return WithReader<uint64_t>(key, [&](const ProfileReader& reader) -> Result<uint64_t> {
    ReadTally tally;
    SONDE_RETURN_IF_ERROR(reader.ForEachRecord(f, tally));
    return tally.unreadable;
  });
}

Result<PruneReport> Archive::WouldPrune(const Retention& limits, Nanos now, Nanos budget,
                                        const ArchiveProgress& progress) const {
  PruneWork work{.now = now, .budget = budget, .dry_run = true};
  auto live = LiveKeys(db_->paths);
  if (!live.ok()) return live.status();
  work.live = *std::move(live);
  work.progress = progress;
  PruneReport report;
  const auto seen = db_->Refreshed();
  if (!seen.ok()) return seen.status();
  if (*seen) SONDE_RETURN_IF_ERROR(PruneDb(*(*seen)->get(), limits, work, report));
  return report;
}

Result<ProfileEntry> Archive::Entry(const std::string& key) const {
  bool live = false;
  const auto steps = ScanLive(db_->paths, {.key = key, .kept = &db_->kept});
  if (!steps.ok()) return steps.status();
  for (const LiveStep& step : *steps) {
    if (step.running) return EntryOf(step);
    live = true;
  }
  const auto job = WithReader<DescriptionPtr>(
      key, [](const ProfileReader& reader) { return reader.Described(); });
  if (!job.ok()) return job.status();
  ProfileEntry entry;
  entry.key = key;
  entry.job = **job;
  entry.live = live;
  return entry;
}

}  // namespace sonde
