#include "profiles/upkeep/verify.h"

#include <fmt/core.h>

#include <filesystem>
#include <functional>
#include <map>
#include <unordered_map>
#include <utility>

#include "profiles/disk/archive_dir.h"
#include "profiles/disk/read_only_db.h"
#include "profiles/json/writer.h"
#include "profiles/live/live_steps.h"
#include "profiles/records/card.h"
#include "profiles/records/index.h"
#include "profiles/records/joined_records.h"
#include "profiles/records/keys.h"
#include "profiles/records/records.h"
#include "profiles/upkeep/open_db.h"
#include "profiles/upkeep/repair.h"

namespace sonde {
namespace {

namespace fs = std::filesystem;

uint64_t BytesOf(const std::string& directory) {
  uint64_t bytes = 0;
  std::error_code error;
  for (const std::string& name : NamesIn(directory)) {
    const uintmax_t size = fs::file_size(directory + "/" + name, error);
    if (!error) bytes += size;
  }
  return bytes;
}

uint64_t Hash(std::string_view text) { return std::hash<std::string_view>()(text); }

// An index entry that must exist.
struct Expected {
  uint32_t profile = 0;  // index of its profile
  bool seen = false;
  uint64_t value = 0;  // hash of the entry's value
};

// The facts about a profile after all of its records were read.
struct Seen {
  uint64_t blocks = 0;
  std::optional<uint64_t> blocks_stored;
  bool description = false;
  bool profile = false;
  uint64_t bad = 0;  // records
};

// A card as a later version makes it of the profile.
bool IsForeignCard(std::string_view value) {
  Card card;
  const Status read = DecodeCard(value, card);
  return read.code() == Code::kUnsupported || (read.ok() && card.state == EndState::kUnknown);
}

class Verifier {
 public:
  Verifier(ArchivePaths paths, const ArchiveProgress& progress)
      : paths_(std::move(paths)), progress_(progress) {}

  Result<VerifyReport> Run();

 private:
  Status VerifyDb();
  void Expect(leveldb::DB& db);
  void Take(std::string_view key, std::string_view value);
  void TakeIndex(std::string_view key, std::string_view value);
  void TakeTotals(std::string_view key, std::string_view value);
  void ExpectEntries(std::string_view profile, const StoredCard& stored);
  void CheckProfiles();
  void CheckSchemas();
  void CheckIndexes();
  void VerifyLive(const LiveStep& step);
  void Problem(std::string_view profile, std::string what);
  void Advance(size_t bytes);

  const ArchivePaths paths_;
  const ArchiveProgress& progress_;
  VerifyReport report_;
  uint64_t done_ = 0;
  uint64_t total_ = 0;
  std::map<std::string, Seen, std::less<>> profiles_;
  // Of the blocks read: schema and columns, and a profile that has such a block.
  std::map<std::pair<uint64_t, uint64_t>, std::string> wanted_schemas_;
  std::map<uint64_t, uint64_t> schemas_;                      // their series
  bool indexed_ = false;                                      // a record says they are complete
  std::vector<std::string> indexed_profiles_;                 // profiles that have entries
  std::unordered_map<uint64_t, Expected> indexes_;            // by the hashes of their keys
  std::map<std::string, ProfileTotals, std::less<>> totals_;  // by their keys; as they should be
  std::map<std::string, bool> waiting_;                       // keys of steps in live/
};

void Verifier::Problem(std::string_view profile, std::string what) {
  ++report_.problem_count;
  if (report_.problems.size() == VerifyReport::kMaxProblems) return;
  report_.problems.push_back({std::string(profile), std::move(what)});
}

void Verifier::Advance(size_t bytes) {
  constexpr uint64_t kStep = 1u << 20;
  const uint64_t before = done_ / kStep;
  done_ += bytes;
  if (progress_ && done_ / kStep != before) progress_(std::min(done_, total_), total_);
}

void Verifier::ExpectEntries(std::string_view profile, const StoredCard& stored) {
  const auto number = static_cast<uint32_t>(indexed_profiles_.size());
  indexed_profiles_.emplace_back(profile);
  indexes_[Hash(keys::ByTime(stored.job))] = {number, false, Hash(indexed_ ? stored.card : "")};
  if (!indexed_) {
    indexes_[Hash(keys::ByJob(stored.job.id.job, stored.job))] = {number, false, Hash("")};
    return;
  }
  for (const std::string& key : IndexKeys(stored.job)) {
    indexes_[Hash(key)] = {number, false, Hash("")};
  }
  Card card;
  if (!DecodeCard(stored.card, card).ok()) return;
  for (const std::string& key : {std::string(keys::kTotals), keys::Totals(card.user)}) {
    ++totals_[key].profiles;
    totals_[key].bytes += card.size;
    totals_[key].longest = std::max(*totals_[key].longest, card.end - stored.job.start);
  }
}

// The index entries that the profiles need.
void Verifier::Expect(leveldb::DB& db) {
  indexed_ = IsIndexed(db);
  const std::string_view kind = "p";
  static_cast<void>(ForEachRecord(db, kind, [&](std::string_view key, std::string_view value) {
    const Record record = ParseRecord(key);
    const auto profile = ProfileFromJson(value);
    if (!profile.ok() || keys::ProfileKey(profile->job) != record.profile) return;
    ExpectEntries(record.profile, {MakeCard(*profile, value.size()), profile->job});
  }));
}

void Verifier::TakeIndex(std::string_view key, std::string_view value) {
  ++report_.index_entries;
  const auto expected = indexes_.find(Hash(key));
  if (expected != indexes_.end()) {
    expected->second.seen = true;
    // While the indexes are being made there may be cards already.
    const bool differs = expected->second.value != Hash(value) && indexed_;
    if (differs && IsForeignCard(value)) {
      ++report_.foreign;
    } else if (differs) {
      Problem(indexed_profiles_[expected->second.profile],
              value.empty() ? "its card is missing in the index by time"
                            : "its card in the index by time says something else");
    }
    return;
  }
  const bool by_time = key.starts_with(keys::kByTime);
  if (!by_time && !indexed_) return;
  const auto term = keys::ParseTerm(key);
  const std::string_view profile = by_time ? keys::ProfileOfTimeIndex(key)
                                   : term  ? term->profile
                                           : keys::ProfileOfJobIndex(key);
  Problem(keys::DescribeKey(profile) ? profile : "",
          "an entry of an index leads to a profile that is not there or says something else");
}

void Verifier::TakeTotals(std::string_view key, std::string_view value) {
  const auto totals = TotalsFromBytes(value);
  const auto expected = totals_.find(key);
  const auto holds = [](const ProfileTotals& stored, const ProfileTotals& counted) {
    return stored.profiles == counted.profiles && stored.bytes == counted.bytes &&
           (!stored.longest || *stored.longest >= *counted.longest);
  };
  if (expected == totals_.end() || !totals.ok() || !holds(*totals, expected->second)) {
    Problem("",
            "the numbers, sizes and lengths of profiles that the indexes have are not those of the "
            "profiles");
  }
  if (expected != totals_.end()) totals_.erase(expected);
}

void Verifier::Take(std::string_view key, std::string_view value) {
  Advance(key.size() + value.size());
  const Record record = ParseRecord(key);
  if (record.kind == RecordKind::kIndexed || record.kind == RecordKind::kOwed) return;
  if (record.kind == RecordKind::kTotals && indexed_) return TakeTotals(key, value);
  if (record.kind >= RecordKind::kCard) return TakeIndex(key, value);
  if (!record.profile.empty() && key[0] == keys::kJoinedKind) {
    const Status joined = CheckJoinedRecord(key, value);
    if (joined.code() == Code::kUnsupported) {
      ++report_.foreign;
    } else if (!joined.ok()) {
      Problem(record.profile, std::string(joined.message()));
    }
    return;
  }
  if (record.kind == RecordKind::kOther) {
    ++report_.foreign;
    return;
  }
  const auto content = CheckRecord(key, value);
  Seen none;
  Seen& seen = record.profile.empty()
                   ? none
                   : profiles_.try_emplace(std::string(record.profile)).first->second;
  const bool foreign = content.status().code() == Code::kUnsupported;
  report_.foreign += foreign ? 1 : 0;
  if (record.kind == RecordKind::kBlock) {
    ++report_.blocks;
    ++seen.blocks;
    report_.block_bytes += value.size();
  }
  if (record.kind == RecordKind::kSchema) {
    ++report_.schemas;
    const uint64_t id = keys::ParseSchema(key).value_or(0);
    schemas_[id] = content.ok() ? content->columns : 0;
  }
  if (!content.ok()) {
    if (!foreign) Problem(record.profile, std::string(content.status().message()));
    return;
  }
  if (record.kind == RecordKind::kBlock) {
    wanted_schemas_.try_emplace({content->schema, content->columns}, record.profile);
  }
  seen.description |= record.kind == RecordKind::kDescription;
  seen.profile |= record.kind == RecordKind::kProfile;
  if (record.kind == RecordKind::kBlockCount) seen.blocks_stored = content->blocks;
}

void Verifier::CheckProfiles() {
  for (const auto& [key, seen] : profiles_) {
    // A killed ingest has left blocks here, and the next ingest goes on with them.
    if (!seen.description && !seen.profile && waiting_.contains(key)) continue;
    ++report_.profiles;
    if (!seen.description) Problem(key, "its description is missing");
    if (!seen.profile) Problem(key, "its profile is missing");
    if (seen.blocks_stored && *seen.blocks_stored > seen.blocks && !waiting_.contains(key)) {
      Problem(key, fmt::format("{} of {} blocks are missing", *seen.blocks_stored - seen.blocks,
                               *seen.blocks_stored));
    }
  }
}

void Verifier::CheckSchemas() {
  for (const auto& [wanted, profile] : wanted_schemas_) {
    const auto [id, columns] = wanted;
    const auto schema = schemas_.find(id);
    if (schema == schemas_.end()) {
      Problem(profile, fmt::format("schema {:016x} of its blocks is missing", id));
    } else if (schema->second != 0 && schema->second != columns) {
      Problem(profile,
              fmt::format("a block has {} columns and its schema {}", columns, schema->second));
    }
  }
}

void Verifier::CheckIndexes() {
  std::map<uint32_t, uint64_t> missing;
  for (const auto& [hash, entry] : indexes_) {
    if (!entry.seen) ++missing[entry.profile];
  }
  for (const auto& [profile, count] : missing) {
    Problem(indexed_profiles_[profile],
            fmt::format("{} of its entries in the indexes are missing", count));
  }
  if (!totals_.empty()) {
    Problem("", "numbers and sizes of profiles are missing in the indexes");
  }
}

Status Verifier::VerifyDb() {
  const auto db = ReadOnlyDb::Open(paths_.db(), paths_.db_lock());
  if (!db.ok() && db.status().code() == Code::kNotFound) {
    const auto names = ListNames(paths_.db());
    if (!names.ok()) return names.status();
    if (names->empty()) return {};
  }
  // It may be whole; who may or can read it sees that.
  const Code code = db.status().code();
  if (!db.ok() && code != Code::kCorrupt && code != Code::kNotFound) return db.status();
  if (!db.ok()) {
    Problem("", std::string(db.status().message()));
    return {};
  }
  if (!db->damage.empty()) Problem("", "db/: " + db->damage);
  Expect(*db->db);
  const Status status = ForEachRecord(
      *db->db, "", [&](std::string_view key, std::string_view value) { Take(key, value); });
  if (!status.ok()) Problem("", std::string(status.message()));
  CheckProfiles();
  CheckSchemas();
  CheckIndexes();
  return {};
}

void Verifier::VerifyLive(const LiveStep& step) {
  const auto db = ReadOnlyDb::Open(step.paths.blocks(), step.paths.lock());
  if (!db.ok() || !db->damage.empty()) {
    const std::string why = db.ok() ? db->damage : std::string(db.status().message());
    if (db.ok() || db.status().code() != Code::kNotFound) {
      Problem(step.key, fmt::format("live/{}: {}", step.name, why));
    }
    if (!db.ok()) return;
  }
  const Status status =
      ForEachRecord(*db->db, "", [&](std::string_view key, std::string_view value) {
        Advance(key.size() + value.size());
        const auto content = CheckRecord(key, value);
        if (content.status().code() == Code::kUnsupported) {
          ++report_.foreign;
        } else if (!content.ok()) {
          Problem(step.key, fmt::format("live/{}: {}", step.name, content.status().message()));
        }
      });
  if (!status.ok()) Problem(step.key, fmt::format("live/{}: {}", step.name, status.message()));
}

Result<VerifyReport> Verifier::Run() {
  const auto read_only = IsReadOnly(paths_);
  if (!read_only.ok()) return read_only.status();
  SONDE_RETURN_IF_ERROR(CheckArchiveFormat(paths_));
  const auto steps = ScanLive(paths_, {.described = false});
  if (!steps.ok()) return steps.status();
  total_ = BytesOf(paths_.db());
  for (const LiveStep& step : *steps) {
    waiting_[step.key] = true;
    if (!step.running) total_ += BytesOf(step.paths.blocks());
  }
  SONDE_RETURN_IF_ERROR(VerifyDb());
  for (const LiveStep& step : *steps) {
    ++(step.running ? report_.running : report_.live);
    if (!step.running) VerifyLive(step);
  }
  report_.damaged = KeptDamage(paths_.root);
  if (progress_) progress_(total_, total_);
  return std::move(report_);
}

}  // namespace

Result<VerifyReport> VerifyArchive(const std::string& root, const ArchiveProgress& progress) {
  return Verifier(ArchivePaths(root), progress).Run();
}

std::vector<std::string> KeptDamage(const std::string& root) {
  const ArchivePaths paths(root);
  std::vector<std::string> kept;
  for (const std::string& name : NamesIn(root)) {
    if (name.starts_with(kDamagedPrefix)) kept.push_back(name);
  }
  for (const std::string& name : NamesIn(paths.live())) {
    if (name.ends_with(kCorruptSuffix)) kept.push_back("live/" + name);
  }
  return kept;
}

std::string VerifyToJson(const VerifyReport& report) {
  std::string out;
  JsonWriter w(out);
  w.BeginObject().Field("ok", report.ok()).Field("profiles", report.profiles);
  w.Field("blocks", report.blocks).Field("block_bytes", report.block_bytes);
  w.Field("schemas", report.schemas).Field("index_entries", report.index_entries);
  w.Field("live", report.live).Field("running", report.running);
  w.Field("foreign", report.foreign).Field("problem_count", report.problem_count);
  w.Key("problems").BeginArray();
  for (const VerifyReport::Problem& problem : report.problems) {
    w.BeginObject().Field("profile", problem.profile).Field("what", problem.what).EndObject();
  }
  w.EndArray().Key("damaged").BeginArray();
  for (const std::string& name : report.damaged) w.Value(name);
  w.EndArray().EndObject();
  return out;
}

}  // namespace sonde
