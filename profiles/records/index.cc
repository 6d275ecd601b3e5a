#include "profiles/records/index.h"

#include <algorithm>
#include <limits>
#include <memory>
#include <set>
#include <utility>

#include "core/bytes.h"
#include "core/time.h"
#include "profiles/disk/leveldb_env.h"
#include "profiles/disk/leveldb_read.h"
#include "profiles/records/card.h"
#include "profiles/records/keys.h"
#include "profiles/records/records.h"

namespace sonde {
namespace {

constexpr size_t kBatch = size_t{1} << 20;

// The term as it is in the profile's JSON.
std::string TermText(std::string_view text) {
  return CardText(text.substr(0, text.find('\0')), keys::kMaxTerm);
}

void NoteLength(const Card& card, Nanos start, ProfileTotals& totals) {
  if (totals.longest) totals.longest = std::max(*totals.longest, card.end - start);
}

bool HasCard(std::string_view value) {
  Card card;
  return DecodeCard(value, card).ok();
}

Status Write(leveldb::DB& db, leveldb::WriteBatch& batch) {
  leveldb::WriteOptions options;
  options.sync = true;
  const leveldb::Status status = db.Write(options, &batch);
  batch.Clear();
  return FromLevelDb(status, "write the archive's indexes");
}

// Sums up the cards. A profile without a card by now could not be read.
Status CountAll(leveldb::DB& db, leveldb::WriteBatch& batch) {
  std::map<std::string, ProfileTotals> totals;
  const std::unique_ptr<leveldb::Iterator> it(db.NewIterator(CheckedScan()));
  Card card;
  for (it->Seek(AsSlice(keys::kByTime));
       it->Valid() && it->key().starts_with(AsSlice(keys::kByTime)); it->Next()) {
    if (!DecodeCard(View(it->value()), card).ok()) continue;
    for (const std::string& key : {std::string(keys::kTotals), keys::Totals(card.user)}) {
      ++totals[key].profiles;
      totals[key].bytes += card.size;
      NoteLength(card, keys::StartOfTimeIndex(View(it->key())), totals[key]);
    }
  }
  for (const auto& [key, total] : totals) batch.Put(key, TotalsToBytes(total));
  return FromLevelDb(it->status(), "read the archive's index by time");
}

uint64_t CountEntries(leveldb::DB& db) {
  uint64_t count = 0;
  const std::unique_ptr<leveldb::Iterator> it(db.NewIterator(CheckedScan()));
  for (it->Seek(AsSlice(keys::kByTime));
       it->Valid() && it->key().starts_with(AsSlice(keys::kByTime)); it->Next()) {
    ++count;
  }
  return count;
}

}  // namespace

StoredCard IndexedFrom(leveldb::DB& db, const std::string& key) {
  std::string json;
  const leveldb::Status read = db.Get(CheckedScan(), keys::Profile(key), &json);
  auto profile = read.ok() ? ProfileFromJson(json) : Status(Code::kNotFound, "it is gone");
  if (profile.ok()) return {MakeCard(*profile, json.size()), std::move(profile->job)};
  Profile bare;
  auto job = ReadDescription(db, key);
  if (!job.ok()) job = keys::DescribeKey(key).value_or(JobDescription());
  bare.job = *std::move(job);
  if (!HasEnded(bare.job)) bare.job.state = EndState::kLost;
  return {MakeCard(bare, 0), std::move(bare.job)};
}

std::vector<std::string> IdsOf(const JobDescription& job) {
  std::vector<std::string> ids = {job.id.job};
  const auto add = [&](std::string id) {
    if (std::find(ids.begin(), ids.end(), id) == ids.end()) ids.push_back(std::move(id));
  };
  if (!job.array_job.empty()) {
    add(job.array_job);
    add(job.array_job + "_" + job.array_task);
  }
  if (!job.het_job.empty()) add(job.het_job);
  return ids;
}

std::vector<std::string> IndexKeys(const JobDescription& job) {
  using keys::Term;
  std::vector<std::string> entries;
  for (const std::string& id : IdsOf(job)) entries.push_back(keys::ByJob(id, job));
  const auto add = [&](Term kind, std::string_view term) {
    entries.push_back(keys::ByTerm(kind, TermText(term), job));
  };
  add(Term::kCommand, job.command);
  add(Term::kName, job.name);
  add(Term::kState, StateWord(job));
  std::set<std::string_view> hosts;
  for (const NodeInfo& node : job.nodes) {
    if (!node.host.empty() && hosts.insert(node.host).second) add(Term::kHost, node.host);
  }
  for (const auto& [name, value] : job.tags) add(Term::kTag, name + "=" + value);
  return entries;
}

std::string TotalsToBytes(const ProfileTotals& totals) {
  std::string out;
  ByteWriter w(out);
  w.Varint(totals.profiles);
  w.Varint(totals.bytes);
  if (totals.longest) w.Varint(static_cast<uint64_t>(*totals.longest));
  return out;
}

Result<ProfileTotals> TotalsFromBytes(std::string_view bytes) {
  constexpr auto kMost = static_cast<uint64_t>(std::numeric_limits<Nanos>::max());
  ByteReader r(bytes);
  ProfileTotals totals;
  totals.profiles = r.Varint();
  totals.bytes = r.Varint();
  totals.longest.reset();
  if (r.ok() && !r.done()) totals.longest = static_cast<Nanos>(std::min(r.Varint(), kMost));
  if (!r.done()) return Status(Code::kCorrupt, "totals are no two or three numbers");
  return totals;
}

Result<ProfileTotals> ReadTotals(leveldb::DB& db, std::optional<std::string_view> user) {
  if (!IsIndexed(db)) return Status(Code::kNotFound, "the indexes are not complete");
  std::string value;
  const std::string key = user ? keys::Totals(*user) : std::string(keys::kTotals);
  const leveldb::Status read = db.Get(CheckedRead(), key, &value);
  if (read.IsNotFound()) return ProfileTotals();
  if (!read.ok()) return FromLevelDb(read, "read the archive's totals");
  return TotalsFromBytes(value);
}

bool IsIndexed(leveldb::DB& db) {
  std::string value;
  return db.Get(CheckedRead(), AsSlice(keys::kIndexedKey), &value).ok() && value == keys::kIndexed;
}

IndexWriter::IndexWriter(leveldb::DB& db, bool fresh)
    : db_(db), fresh_(fresh), count_(fresh || IsIndexed(db)) {}

Result<IndexWriter::Old> IndexWriter::Existing(const std::string& key) const {
  Old old;
  const auto known = keys::DescribeKey(key);
  if (!known) return Status(Code::kInternal, "index " + key + ": it is no profile's key");
  const std::string by_time = keys::ByTime(*known);
  const leveldb::Status read = db_.Get(CheckedRead(), by_time, &old.card);
  if (read.IsNotFound()) return old;
  if (!read.ok()) return FromLevelDb(read, "read the archive's index by time");
  old.by_time = by_time;
  old.keys = IndexKeys(IndexedFrom(db_, key).job);
  return old;
}

Status IndexWriter::Count(std::string_view bytes, Nanos start, bool add) {
  Card card;
  if (!count_ || !DecodeCard(bytes, card).ok()) return {};
  for (const std::string& key : {std::string(keys::kTotals), keys::Totals(card.user)}) {
    auto known = totals_.find(key);
    if (known == totals_.end()) {
      std::string value;
      const leveldb::Status read =
          fresh_ ? leveldb::Status::NotFound("") : db_.Get(CheckedRead(), key, &value);
      Result<ProfileTotals> stored = ProfileTotals();
      if (read.ok()) stored = TotalsFromBytes(value);
      if (!read.ok() && !read.IsNotFound()) return FromLevelDb(read, "read the archive's totals");
      // Of damaged totals nothing can be counted on: the indexes are made anew.
      if (!stored.ok()) lost_totals_ = true;
      if (!stored.ok()) stored = ProfileTotals();
      known = totals_.emplace(key, *stored).first;
    }
    ProfileTotals& totals = known->second;
    // A verification finds wrong totals; here they do not fall below zero.
    totals.profiles =
        add ? totals.profiles + 1 : totals.profiles - std::min<uint64_t>(1, totals.profiles);
    totals.bytes =
        add ? totals.bytes + card.size : totals.bytes - std::min(card.size, totals.bytes);
    if (add) NoteLength(card, start, totals);
  }
  return {};
}

Status IndexWriter::Put(const Profile& profile, leveldb::WriteBatch& batch) {
  const std::string key = keys::ProfileKey(profile.job);
  const std::string json = ProfileToJson(profile);
  JobDescription described = profile.job;
  if (auto old = ReadDescription(db_, key); old.ok()) described.kept.Merge(old->kept);
  batch.Put(keys::Description(key), DescriptionToJson(described));
  batch.Put(keys::Profile(key), json);
  return Enter(profile, json.size(), batch);
}

Status IndexWriter::Enter(const Profile& profile, size_t profile_bytes,
                          leveldb::WriteBatch& batch) {
  const std::string key = keys::ProfileKey(profile.job);
  Result<Old> old = fresh_ ? Old() : Existing(key);
  if (!old.ok()) return old.status();
  for (const std::string& entry : old->keys) batch.Delete(entry);
  SONDE_RETURN_IF_ERROR(Count(old->card, profile.job.start, false));
  const std::string card = MakeCard(profile, profile_bytes);
  SONDE_RETURN_IF_ERROR(Count(card, profile.job.start, true));
  batch.Put(keys::ByTime(profile.job), card);
  for (const std::string& entry : IndexKeys(profile.job)) batch.Put(entry, "");
  return {};
}

Status IndexWriter::Remove(const std::string& key, leveldb::WriteBatch& batch) {
  const Result<Old> old = Existing(key);
  if (!old.ok()) return old.status();
  for (const std::string& entry : old->keys) batch.Delete(entry);
  if (!old->by_time.empty()) batch.Delete(old->by_time);
  return Count(old->card, 0, false);
}

void IndexWriter::Finish(leveldb::WriteBatch& batch) {
  if (lost_totals_) batch.Delete(AsSlice(keys::kIndexedKey));
  for (const auto& [key, totals] : totals_) {
    if (totals.profiles == 0) {
      batch.Delete(key);
    } else {
      batch.Put(key, TotalsToBytes(totals));
    }
  }
}

Result<bool> BuildIndexes(leveldb::DB& db, Nanos budget,
                          const std::function<void(uint64_t, uint64_t)>& progress) {
  if (IsIndexed(db)) return true;
  const Nanos until = Clock::System().Monotonic() + budget;
  const uint64_t total = CountEntries(db);
  leveldb::WriteBatch batch;
  const std::unique_ptr<leveldb::Iterator> it(db.NewIterator(CheckedScan()));
  uint64_t done = 0;
  for (it->Seek(AsSlice(keys::kByTime));
       it->Valid() && it->key().starts_with(AsSlice(keys::kByTime)); it->Next(), ++done) {
    if (progress) progress(done, total);
    if (HasCard(View(it->value()))) continue;
    if (Clock::System().Monotonic() > until) {
      SONDE_RETURN_IF_ERROR(Write(db, batch));
      return false;
    }
    const std::string key(keys::ProfileOfTimeIndex(View(it->key())));
    if (!keys::DescribeKey(key)) continue;
    const StoredCard made = IndexedFrom(db, key);
    batch.Put(it->key(), made.card);
    for (const std::string& entry : IndexKeys(made.job)) batch.Put(entry, "");
    if (batch.ApproximateSize() >= kBatch) SONDE_RETURN_IF_ERROR(Write(db, batch));
  }
  if (!it->status().ok()) return FromLevelDb(it->status(), "read the archive's index by time");
  SONDE_RETURN_IF_ERROR(Write(db, batch));
  SONDE_RETURN_IF_ERROR(CountAll(db, batch));
  batch.Put(AsSlice(keys::kIndexedKey), AsSlice(keys::kIndexed));
  SONDE_RETURN_IF_ERROR(Write(db, batch));
  if (progress) progress(total, total);
  return true;
}

}  // namespace sonde
