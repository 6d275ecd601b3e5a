#include "profiles/upkeep/retention.h"

#include <fmt/core.h>
#include <leveldb/write_batch.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <memory>
#include <optional>

#include "core/text/user_tags.h"
#include "profiles/disk/leveldb_env.h"
#include "profiles/disk/leveldb_read.h"
#include "profiles/json/fields.h"
#include "profiles/json/parse.h"
#include "profiles/json/writer.h"
#include "profiles/records/card.h"
#include "profiles/records/index.h"
#include "profiles/records/keys.h"
#include "profiles/records/owed_room.h"
#include "profiles/records/records.h"
#include "series/block/block.h"

namespace sonde {
namespace {

// Walks the profiles from the oldest on, as long as one may be beyond a limit.
class Pruner {
 public:
  Pruner(leveldb::DB& db, const Retention& limits, const PruneWork& work, PruneReport& report)
      : db_(db), limits_(limits), work_(work), report_(report) {}

  Status Run();

 private:
  void Count(ProfileTotals& totals) const;
  Status ReadTotals();
  bool UserIsOver(const ProfileTotals& totals) const;
  // The reason for deleting a profile; "": it stays, whatever is known of its user and of all.
  std::string Why(const Card& card, Nanos start) const;
  bool MayGo(Nanos start) const;
  // `at` is its key in the index by time, `bytes` the value there when the work began.
  Status Take(const std::string& key, std::string_view at, std::string_view bytes, Nanos start);
  Status Delete(const std::string& key);
  void Forget(const Card& card);

  leveldb::DB& db_;
  const Retention& limits_;
  const PruneWork& work_;
  PruneReport& report_;
  ProfileTotals all_;
  std::map<std::string, ProfileTotals, std::less<>> users_;  // users beyond a limit
  std::optional<std::string> others_;  // kinds of records of later versions, as found first
  Card card_;
};

bool Pruner::UserIsOver(const ProfileTotals& totals) const {
  return (limits_.user_profiles != 0 && totals.profiles > limits_.user_profiles) ||
         (limits_.user_bytes != 0 && totals.bytes > limits_.user_bytes);
}

// The incoming step.
void Pruner::Count(ProfileTotals& totals) const {
  ++totals.profiles;
  totals.bytes += work_.incoming->bytes;
}

Status Pruner::ReadTotals() {
  const auto all = sonde::ReadTotals(db_);
  if (!all.ok() && all.status().code() != Code::kNotFound) return all.status();
  if (all.ok()) all_ = *all;
  if (work_.incoming) Count(all_);
  if (!limits_.of_users()) return {};
  // Past the last entry it would read over all deleted blocks that are still on the disk.
  const std::unique_ptr<leveldb::Iterator> it(db_.NewIterator(CheckedScan()));
  for (it->Seek(AsSlice(keys::kTotals));
       it->Valid() && it->key().starts_with(AsSlice(keys::kTotals)); it->Next()) {
    auto totals = TotalsFromBytes(View(it->value()));
    if (!totals.ok()) return totals.status();
    const auto user = keys::UserOfTotals(View(it->key()));
    if (!user) continue;
    if (work_.incoming && work_.incoming->user == *user) Count(*totals);
    if (UserIsOver(*totals)) users_.emplace(*user, *totals);
  }
  return FromLevelDb(it->status(), "read the archive's totals");
}

std::string Pruner::Why(const Card& card, Nanos start) const {
  const Nanos end = card.end != 0 ? card.end : start;
  if (limits_.age != 0 && end < work_.now - limits_.age) {
    return "older than " + FormatDuration(limits_.age);
  }
  if (limits_.profiles != 0 && all_.profiles > limits_.profiles) {
    return fmt::format("more than {} profiles", limits_.profiles);
  }
  if (limits_.bytes != 0 && all_.bytes > limits_.bytes) {
    return fmt::format("more than {} bytes", limits_.bytes);
  }
  if (users_.contains(card.user)) {
    return limits_.user_profiles != 0 &&
                   users_.find(card.user)->second.profiles > limits_.user_profiles
               ? fmt::format("more than {} profiles of {}", limits_.user_profiles, card.user)
               : fmt::format("more than {} bytes of {}", limits_.user_bytes, card.user);
  }
  return "";
}

// A step that began later than the age also ended later.
bool Pruner::MayGo(Nanos start) const {
  return (limits_.age != 0 && start < work_.now - limits_.age) ||
         (limits_.profiles != 0 && all_.profiles > limits_.profiles) ||
         (limits_.bytes != 0 && all_.bytes > limits_.bytes) || !users_.empty();
}

void Pruner::Forget(const Card& card) {
  const auto less = [&](ProfileTotals& totals) {
    totals.profiles -= std::min<uint64_t>(1, totals.profiles);
    totals.bytes -= std::min(card.size, totals.bytes);
  };
  less(all_);
  const auto user = users_.find(card.user);
  if (user == users_.end()) return;
  less(user->second);
  if (!UserIsOver(user->second)) users_.erase(user);
}

// All in one batch, so that no profile is left without its blocks.
Status Pruner::Delete(const std::string& key) {
  leveldb::WriteBatch batch;
  uint64_t bytes = 0;
  const std::unique_ptr<leveldb::Iterator> it(db_.NewIterator(CheckedScan()));
  for (const std::string& prefix : {keys::Blocks(key), keys::Parts(key)}) {
    for (it->Seek(prefix); it->Valid() && it->key().starts_with(prefix); it->Next()) {
      batch.Delete(it->key());
      bytes += it->value().size();
    }
  }
  if (!it->status().ok()) return FromLevelDb(it->status(), "read the blocks of " + key);
  if (!others_) {
    auto kinds = OtherKinds(db_);
    if (!kinds.ok()) return kinds.status();
    others_ = *std::move(kinds);
  }
  SONDE_RETURN_IF_ERROR(
      ForEachOther(db_, *others_, key, [&](std::string_view at, std::string_view value) {
        batch.Delete(AsSlice(at));
        bytes += value.size();
      }));
  for (const std::string& at :
       {keys::Description(key), keys::Profile(key), keys::BlockCount(key)}) {
    batch.Delete(at);
  }
  IndexWriter index(db_);
  SONDE_RETURN_IF_ERROR(index.Remove(key, batch));
  index.Finish(batch);
  Owe(batch, key, bytes);
  return FromLevelDb(db_.Write(leveldb::WriteOptions(), &batch), "delete " + key);
}

Status Pruner::Take(const std::string& key, std::string_view at, std::string_view bytes,
                    Nanos start) {
  std::string made;
  if (!DecodeCard(bytes, card_).ok()) {
    made = IndexedFrom(db_, key).card;
    SONDE_RETURN_IF_ERROR(DecodeCard(made, card_));
  }
  const std::string why = Why(card_, start);
  if (why.empty() || work_.live.contains(key)) return {};
  const auto pinned = [](const auto& tag) { return tag.first == kKeepTag; };
  // The user may have pinned it since the work began.
  std::string now;
  const leveldb::Status read = db_.Get(CheckedScan(), AsSlice(at), &now);
  if (read.IsNotFound()) return {};
  if (!read.ok() && !read.IsCorruption()) return FromLevelDb(read, "read the card of " + key);
  Card current;
  if (read.ok() && DecodeCard(now, current).ok()) card_ = current;
  if (std::any_of(card_.tags.begin(), card_.tags.end(), pinned)) {
    ++report_.pinned;
    return {};
  }
  if (!work_.dry_run) SONDE_RETURN_IF_ERROR(Delete(key));
  ++report_.profiles;
  report_.bytes += card_.size;
  if (report_.pruned.size() < PruneReport::kMaxNamed) {
    report_.pruned.push_back({key, why, card_.size});
  }
  Forget(card_);
  return {};
}

Status Pruner::Run() {
  if (IsIndexed(db_)) {
    SONDE_RETURN_IF_ERROR(ReadTotals());
  } else {
    report_.complete = limits_.profiles == 0 && limits_.bytes == 0 && !limits_.of_users();
  }
  const std::unique_ptr<leveldb::Iterator> it(db_.NewIterator(CheckedScan()));
  // Seeks past the last entry, which is the oldest, and back.
  const std::string behind(1, static_cast<char>(keys::kByTime[0] + 1));
  it->Seek(behind);
  it->Valid() ? it->Prev() : it->SeekToLast();
  // LevelDB has to read its first entries from the disk, and that may take as long.
  const Nanos until = Clock::System().Monotonic() + work_.budget;
  for (; it->Valid() && it->key().starts_with(AsSlice(keys::kByTime)); it->Prev()) {
    const Nanos start = keys::StartOfTimeIndex(View(it->key()));
    const std::string key(keys::ProfileOfTimeIndex(View(it->key())));
    if (!MayGo(start)) break;
    if (Clock::System().Monotonic() > until ||
        (work_.progress && !work_.progress(report_.profiles, 0))) {
      report_.complete = false;
      break;
    }
    if (keys::DescribeKey(key))
      SONDE_RETURN_IF_ERROR(Take(key, View(it->key()), View(it->value()), start));
  }
  return FromLevelDb(it->status(), "read the archive's index by time");
}

// Of compacting: blocks, the bulk, by the first letters of their keys.
constexpr int kFirstLetter = 0x20;
constexpr int kLastLetter = 0x7f;
constexpr uint64_t kCompactSteps = kLastLetter - kFirstLetter + 2;

// The schemas that blocks name.
Result<std::set<uint64_t>> NamedSchemas(leveldb::DB& db, const ArchiveProgress& progress) {
  constexpr uint64_t kBetween = 4096;
  std::set<uint64_t> named;
  uint64_t looked = 0;
  const std::unique_ptr<leveldb::Iterator> it(db.NewIterator(CheckedScan()));
  for (it->Seek("b"); it->Valid() && it->key().starts_with("b"); it->Next()) {
    if (progress && ++looked % kBetween == 0 && !progress(0, kCompactSteps)) return StoppedWork();
    const auto info = ReadBlockInfo(View(it->value()));
    // A block that cannot be read may need any schema.
    if (!info.ok()) return Status(Code::kCorrupt, "a block cannot be read");
    named.insert(info->schema_id);
  }
  if (!it->status().ok()) return FromLevelDb(it->status(), "read the archive's blocks");
  return named;
}

}  // namespace

Retention RetentionOf(const Config& config) {
  return {config.keep_age, config.keep_profiles, config.keep_size, config.keep_user_profiles,
          config.keep_user_size};
}

std::string RetentionToText(const Retention& limits) {
  return fmt::format("{} {} {} {} {}", limits.age, limits.profiles, limits.bytes,
                     limits.user_profiles, limits.user_bytes);
}

Result<Retention> RetentionFromText(std::string_view text) {
  Retention limits;
  uint64_t age = 0;
  uint64_t* const numbers[] = {&age, &limits.profiles, &limits.bytes, &limits.user_profiles,
                               &limits.user_bytes};
  const char* at = text.data();
  const char* const end = text.data() + text.size();
  for (uint64_t* number : numbers) {
    if (number != &age && (at == end || *at++ != ' ')) at = end;
    const auto read = std::from_chars(at, end, *number);
    if (read.ec != std::errc()) return Status(Code::kCorrupt, "expected five limits");
    at = read.ptr;
  }
  if (at != end || age > INT64_MAX) return Status(Code::kCorrupt, "expected five limits");
  limits.age = static_cast<Nanos>(age);
  return limits;
}

Status PruneDb(leveldb::DB& db, const Retention& limits, const PruneWork& work,
               PruneReport& report) {
  report.pinned = 0;
  report.complete = true;
  return limits.any() ? Pruner(db, limits, work, report).Run() : Status();
}

std::string PruneToJson(const PruneReport& report, bool dry_run) {
  std::string out;
  JsonWriter w(out);
  w.BeginObject().Field("dry_run", dry_run).Field("profiles", report.profiles);
  w.Field("bytes", report.bytes).Field("pinned", report.pinned);
  w.Field("complete", report.complete).Key("pruned").BeginArray();
  for (const PrunedProfile& one : report.pruned) {
    w.BeginObject().Field("key", one.key).Field("why", one.why).Field("bytes", one.bytes);
    w.EndObject();
  }
  w.EndArray().EndObject();
  return out;
}

Result<PruneReport> PruneFromJson(std::string_view json) {
  const auto value = ParseJson(json, "report of a prune");
  if (!value.ok()) return value.status();
  PruneReport report;
  std::string error;
  JsonFields fields(*value, error, "report of a prune");
  fields.Read("profiles", report.profiles);
  fields.Read("bytes", report.bytes);
  fields.Read("pinned", report.pinned);
  fields.Read("complete", report.complete);
  if (const auto* pruned = fields.Array("pruned", PruneReport::kMaxNamed)) {
    for (const auto& one : *pruned) {
      PrunedProfile& profile = report.pruned.emplace_back();
      JsonFields of(one, error, "a profile");
      of.Read("key", profile.key);
      of.Read("why", profile.why);
      of.Read("bytes", profile.bytes);
    }
  }
  if (!error.empty()) return Status(Code::kCorrupt, "read the report of a prune: " + error);
  return report;
}

Status DropSchemas(leveldb::DB& db, const ArchiveProgress& progress) {
  const auto named = NamedSchemas(db, progress);
  if (named.status().code() == Code::kUnavailable) return named.status();
  // If blocks are damaged all schemas stay.
  if (!named.ok()) return {};
  leveldb::WriteBatch batch;
  const std::string prefix(1, keys::kSchemaKind);
  const std::unique_ptr<leveldb::Iterator> it(db.NewIterator(CheckedScan()));
  for (it->Seek(prefix); it->Valid() && it->key().starts_with(prefix); it->Next()) {
    const auto id = keys::ParseSchema(View(it->key()));
    if (id && !named->contains(*id)) batch.Delete(it->key());
  }
  if (!it->status().ok()) return FromLevelDb(it->status(), "read the archive's schemas");
  leveldb::WriteOptions options;
  options.sync = true;
  return FromLevelDb(db.Write(options, &batch), "delete schemas");
}

Status CompactDb(WritableDb& db, const ArchiveProgress& progress) {
  std::string from;
  uint64_t done = 0;
  for (int c = kFirstLetter; c <= kLastLetter; ++c) {
    const std::string to = {'b', static_cast<char>(c)};
    const leveldb::Slice begin(from);
    const leveldb::Slice end(to);
    db.CompactRange(from.empty() ? nullptr : &begin, &end);
    SONDE_RETURN_IF_ERROR(db.failure());
    from = to;
    if (progress && !progress(++done, kCompactSteps)) return StoppedWork();
  }
  const leveldb::Slice begin(from);
  db.CompactRange(&begin, nullptr);
  SONDE_RETURN_IF_ERROR(db.failure());
  if (progress) progress(kCompactSteps, kCompactSteps);
  return ForgetOwedRoom(db);
}

}  // namespace sonde
