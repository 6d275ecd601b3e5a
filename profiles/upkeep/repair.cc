#include "profiles/upkeep/repair.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <leveldb/write_batch.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <utility>

#include "profiles/disk/leveldb_env.h"
#include "profiles/disk/leveldb_read.h"
#include "profiles/disk/read_only_db.h"
#include "profiles/json/fields.h"
#include "profiles/json/parse.h"
#include "profiles/json/writer.h"
#include "profiles/model/parts.h"
#include "profiles/reading/profile_reader.h"
#include "profiles/records/index.h"
#include "profiles/records/keys.h"
#include "profiles/records/records.h"
#include "profiles/upkeep/ingest.h"
#include "profiles/upkeep/lock.h"
#include "profiles/upkeep/open_db.h"
#include "profiles/upkeep/verify.h"

namespace sonde {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kCompleteName = "/COMPLETE";  // LevelDB ignores this file

std::string NewDb(const ArchivePaths& paths) { return paths.root + "/db.repair"; }

// In the new database, from when it is complete until the damaged one has its name.
std::string Mark(const std::string& db) { return db + std::string(kCompleteName); }

// A profile of the damaged database, as far as it is known.
struct Salvage {
  uint64_t dropped = 0;
  std::optional<uint64_t> blocks_stored;
  bool named = false;  // an index or a record names it
};

class Repair {
 public:
  Repair(const ArchivePaths& paths, std::shared_ptr<Fence> fence, const ArchiveProgress& progress)
      : paths_(paths), fence_(std::move(fence)), progress_(progress) {}

  Result<RepairReport> Run();

 private:
  Status OpenNew();
  void Take(std::string_view key, std::string_view value);
  void TakeIndex(std::string_view key);
  Status TakeAll(leveldb::DB& db);
  Status Tell() const;
  Status Write(bool sync);
  Status Rebuild(const std::string& key, const Salvage& salvage);
  Status Enter(const std::string& key, const Profile& profile);
  Result<Profile> Remake(const std::string& key) const;
  void Lost(const std::string& key, std::string what);
  Status PutInPlace();

  const ArchivePaths& paths_;
  const std::shared_ptr<Fence> fence_;
  const ArchiveProgress& progress_;
  RepairReport report_;
  std::unique_ptr<leveldb::DB> db_;
  std::optional<IndexWriter> index_;
  leveldb::WriteBatch batch_;
  Status status_;      // of the first failed write
  uint64_t read_ = 0;  // bytes
  std::map<std::string, Salvage, std::less<>> profiles_;
};

// Looks at the claim last, for this process may have been suspended, and what is there be another
// host's.
Status Delete(Fence* fence, const std::string& path) {
  if (fence != nullptr) SONDE_RETURN_IF_ERROR(fence->Check());
  std::error_code error;
  fs::remove_all(path, error);
  return error ? ArchiveError("delete " + path, error.value()) : Status();
}

Status Repair::OpenNew() {
  SONDE_RETURN_IF_ERROR(Delete(fence_.get(), NewDb(paths_)));
  if (::mkdir(NewDb(paths_).c_str(), 0700) != 0) {
    return ArchiveError("make directory " + NewDb(paths_), errno);
  }
  auto db = CreateDb(NewDb(paths_), fence_);
  if (!db.ok()) return db.status();
  db_ = *std::move(db);
  index_.emplace(*db_, true);
  return {};
}

Status Repair::Write(bool sync) {
  leveldb::WriteOptions options;
  options.sync = sync;
  const leveldb::Status status = db_->Write(options, &batch_);
  batch_.Clear();
  return FromLevelDb(status, "write to " + NewDb(paths_));
}

void Repair::TakeIndex(std::string_view key) {
  if (!key.starts_with(keys::kByTime)) return;
  const std::string_view profile = keys::ProfileOfTimeIndex(key);
  if (keys::DescribeKey(profile)) profiles_[std::string(profile)].named = true;
}

void Repair::Take(std::string_view key, std::string_view value) {
  const Record record = ParseRecord(key);
  // The new database has nothing of deleted profiles.
  if (record.kind >= RecordKind::kCard) return TakeIndex(key);
  if (record.kind == RecordKind::kOther) {
    batch_.Put(AsSlice(key), AsSlice(value));
    if (batch_.ApproximateSize() >= kBatchBytes && status_.ok()) status_ = Write(false);
    return;
  }
  const auto content = CheckRecord(key, value);
  Salvage* salvage = nullptr;
  if (!record.profile.empty()) {
    salvage = &profiles_[std::string(record.profile)];
    salvage->named = true;
  }
  if (!content.ok() && content.status().code() != Code::kUnsupported) {
    ++report_.dropped;
    if (salvage != nullptr) ++salvage->dropped;
    return;
  }
  // The number of blocks is counted anew.
  if (record.kind == RecordKind::kBlockCount) {
    salvage->blocks_stored = content->blocks;
    return;
  }
  batch_.Put({key.data(), key.size()}, {value.data(), value.size()});
  if (batch_.ApproximateSize() >= kBatchBytes && status_.ok()) status_ = Write(false);
}

// As ForEachRecord, until an error of our own comes or the work is stopped.
Status Repair::TakeAll(leveldb::DB& db) {
  const leveldb::ReadOptions options = CheckedScan();
  const std::unique_ptr<leveldb::Iterator> it(db.NewIterator(options));
  for (it->SeekToFirst(); it->Valid() && status_.ok(); it->Next()) {
    const uint64_t before = read_ / kBatchBytes;
    read_ += it->key().size() + it->value().size();
    Take(View(it->key()), View(it->value()));
    if (read_ / kBatchBytes != before && status_.ok()) status_ = Tell();
  }
  return FromLevelDb(it->status(), "read the database");
}

Status Repair::Tell() const { return progress_ && !progress_(read_, 0) ? StoppedWork() : Status(); }

void Repair::Lost(const std::string& key, std::string what) {
  report_.losses.push_back({key, std::move(what)});
}

// A profile whose own record is gone.
Result<Profile> Repair::Remake(const std::string& key) const {
  std::vector<Part> parts;
  const std::string prefix = keys::Parts(key);
  SONDE_RETURN_IF_ERROR(
      ForEachRecord(*db_, prefix, [&](std::string_view at, std::string_view value) {
        auto profile = ProfileFromJson(value);
        if (!profile.ok()) return;
        parts.push_back({PartId::Parse(at.substr(prefix.size())), *std::move(profile)});
      }));
  if (!parts.empty()) return WholeProfile(*db_, key, std::move(parts));
  const ProfileReader reader(*db_, key);
  auto job = ReadDescription(*db_, key);
  if (!job.ok()) job = *keys::DescribeKey(key);
  ReadTally tally;
  Profile profile = reader.Assemble(*job, &tally);
  const bool ended = HasEnded(profile.job);
  if (profile.job.end == 0) profile.job.end = std::max(profile.job.start, tally.last);
  if (!ended) profile.job.state = EndState::kLost;
  return profile;
}

// A profile without a loss stays byte for byte.
Status Repair::Enter(const std::string& key, const Profile& profile) {
  std::string json;
  const leveldb::Status read = db_->Get(CheckedRead(), keys::Profile(key), &json);
  if (!read.ok()) return FromLevelDb(read, "read from " + NewDb(paths_));
  if (!ReadDescription(*db_, key).ok()) {
    batch_.Put(keys::Description(key), DescriptionToJson(profile.job));
  }
  return index_->Enter(profile, json.size(), batch_);
}

// Its records are in the new database; missing ones are made or reported.
Status Repair::Rebuild(const std::string& key, const Salvage& salvage) {
  const auto blocks = CountBlocks(*db_, key);
  if (!blocks.ok()) return blocks.status();
  const ProfileReader reader(*db_, key);
  auto profile = reader.StoredProfile();
  const bool known = profile.ok() || reader.Description().ok() || *blocks > 0;
  if (!known) {
    Lost(key, "nothing of it could be read");
    return {};
  }
  std::vector<std::string> told;
  if (!profile.ok()) {
    profile = Remake(key);
    if (!profile.ok()) return profile.status();
    told.emplace_back("its summary could not be read and was made anew from what is left");
  }
  if (salvage.blocks_stored && *salvage.blocks_stored > *blocks) {
    told.push_back(fmt::format("{} of {} blocks are lost", *salvage.blocks_stored - *blocks,
                               *salvage.blocks_stored));
  } else if (salvage.dropped > 0 || (!salvage.blocks_stored && !report_.damage.empty())) {
    told.emplace_back("some of its records may be lost");
  }
  for (const std::string& what : told) {
    Lost(key, what);
    profile->job.notes.push_back("The archive was damaged and repaired at " +
                                 FormatTime(Clock::System().Now()) + ": " + what + ".");
  }
  if (told.empty()) {
    SONDE_RETURN_IF_ERROR(Enter(key, *profile));
  } else {
    SONDE_RETURN_IF_ERROR(index_->Put(*profile, batch_));
  }
  batch_.Put(keys::BlockCount(key), std::to_string(*blocks));
  ++report_.profiles;
  report_.blocks += *blocks;
  return batch_.ApproximateSize() < kBatchBytes ? Status() : Write(false);
}

Status FreeName(const ArchivePaths& paths, std::string& name) {
  constexpr int kMost = 1000;
  for (int i = 1; i <= kMost; ++i) {
    name = fmt::format("{}/{}{}", paths.root, kDamagedPrefix, i);
    const auto there = Exists(name);
    if (!there.ok()) return there.status();
    if (!*there) return {};
  }
  return {Code::kLimit,
          "keep the damaged database: there are too many already; see "
          "'sonde archive repair --discard'"};
}

// Looks at the claim last, for this process may have been suspended.
Status Rename(Fence* fence, const std::string& from, const std::string& to) {
  if (fence != nullptr) SONDE_RETURN_IF_ERROR(fence->Check());
  if (std::rename(from.c_str(), to.c_str()) == 0) return {};
  return ArchiveError("rename " + from + " to " + to, errno);
}

Status Repair::PutInPlace() {
  index_.reset();
  db_.reset();
  SONDE_RETURN_IF_ERROR(fence_->Check());
  SONDE_RETURN_IF_ERROR(WriteFileAtomically(Mark(NewDb(paths_)), "\n"));
  SONDE_RETURN_IF_ERROR(SyncDirectory(NewDb(paths_)));
  SONDE_RETURN_IF_ERROR(FreeName(paths_, report_.kept));
  SONDE_RETURN_IF_ERROR(Delete(fence_.get(), Mark(paths_.db())));
  SONDE_RETURN_IF_ERROR(fence_->Check());
  const int exchanged =
      ::renameat2(AT_FDCWD, NewDb(paths_).c_str(), AT_FDCWD, paths_.db().c_str(), RENAME_EXCHANGE);
  if (exchanged == 0) {
    SONDE_RETURN_IF_ERROR(Rename(fence_.get(), NewDb(paths_), report_.kept));
  } else {
    SONDE_RETURN_IF_ERROR(Rename(fence_.get(), paths_.db(), report_.kept));
    SONDE_RETURN_IF_ERROR(Rename(fence_.get(), NewDb(paths_), paths_.db()));
  }
  SONDE_RETURN_IF_ERROR(SyncPath(paths_.root));
  return Delete(fence_.get(), Mark(paths_.db()));
}

// A read that failed is no damage: the record may be whole.
Status Unread(const Status& why) {
  return {why.code(), "repair: nothing was changed, for not all could be read (" +
                          std::string(why.message()) +
                          "); try again, and if the disk cannot read that file any more, move "
                          "the file away first"};
}

Result<RepairReport> Repair::Run() {
  const auto damaged = ReadOnlyDb::Open(paths_.db());
  const bool none = !damaged.ok() && damaged.status().code() == Code::kNotFound;
  if (none) {
    const auto names = ListNames(paths_.db());
    if (!names.ok()) return names.status();
    if (names->empty()) {
      return Status(Code::kNotFound, "there is nothing to repair in " + paths_.root);
    }
  } else if (!damaged.ok() && damaged.status().code() != Code::kCorrupt) {
    return Unread(damaged.status());
  }
  if (!damaged.ok()) {
    // If even LevelDB's repair finds nothing, an empty database takes its place.
    report_.damage = damaged.status().message();
  } else {
    report_.damage = damaged->damage;
  }
  SONDE_RETURN_IF_ERROR(OpenNew());
  batch_.Put(AsSlice(keys::kFormatKey), AsSlice(keys::kFormat));
  if (damaged.ok()) {
    const Status read = TakeAll(*damaged->db);
    if (!read.ok() && report_.damage.empty()) report_.damage = read.message();
    if (const Status unread = damaged->ReadFailure(); !unread.ok()) return Unread(unread);
  }
  SONDE_RETURN_IF_ERROR(status_);
  SONDE_RETURN_IF_ERROR(Write(false));
  for (const auto& [key, salvage] : profiles_) {
    SONDE_RETURN_IF_ERROR(Tell());
    SONDE_RETURN_IF_ERROR(Rebuild(key, salvage));
  }
  SONDE_RETURN_IF_ERROR(Tell());
  index_->Finish(batch_);
  batch_.Put(AsSlice(keys::kIndexedKey), AsSlice(keys::kIndexed));
  SONDE_RETURN_IF_ERROR(Write(true));
  SONDE_RETURN_IF_ERROR(PutInPlace());
  return std::move(report_);
}

}  // namespace

Result<RepairReport> RepairArchive(const std::string& root, Nanos wait,
                                   const ArchiveProgress& progress) {
  const ArchivePaths paths(root);
  const auto read_only = IsReadOnly(paths);
  if (!read_only.ok()) return read_only.status();
  if (*read_only) {
    return Status(Code::kPermission, "repair " + root + ": it is another user's or read-only");
  }
  SONDE_RETURN_IF_ERROR(CheckArchiveFormat(paths));
  const auto lock = ArchiveLock::Acquire(paths, wait);
  if (lock.status().code() == Code::kBusy) return WhoHolds(paths, lock.status());
  if (!lock.ok()) return lock.status();
  return RepairHeld(paths, lock->claim(), progress);
}

Result<RepairReport> RepairHeld(const ArchivePaths& paths, const std::shared_ptr<Fence>& fence,
                                const ArchiveProgress& progress) {
  SONDE_RETURN_IF_ERROR(FinishRepair(paths, fence.get()));
  auto report = Repair(paths, fence, progress).Run();
  // The new database of a stopped repair is useless.
  if (report.status().code() == Code::kUnavailable) {
    static_cast<void>(Delete(fence.get(), NewDb(paths)));
  }
  return report;
}

Result<bool> IsRepairCutOff(const ArchivePaths& paths) {
  const auto there = Exists(paths.db());
  if (!there.ok() || *there) return there.ok() ? Result<bool>(false) : there;
  return Exists(Mark(NewDb(paths)));
}

Status FinishRepair(const ArchivePaths& paths, Fence* fence) {
  const auto cut_off = IsRepairCutOff(paths);
  if (!cut_off.ok()) return cut_off.status();
  const auto made = Exists(NewDb(paths));
  if (!made.ok()) return made.status();
  const auto exchanged = Exists(Mark(paths.db()));
  if (!exchanged.ok()) return exchanged.status();
  if (*cut_off) {
    SONDE_RETURN_IF_ERROR(Rename(fence, NewDb(paths), paths.db()));
  } else if (!*made) {
    return {};
  } else if (*exchanged) {
    std::string kept;
    SONDE_RETURN_IF_ERROR(FreeName(paths, kept));
    SONDE_RETURN_IF_ERROR(Rename(fence, NewDb(paths), kept));
  } else {
    SONDE_RETURN_IF_ERROR(Delete(fence, NewDb(paths)));
  }
  SONDE_RETURN_IF_ERROR(SyncPath(paths.root));
  return Delete(fence, Mark(paths.db()));
}

Result<std::vector<std::string>> DiscardDamage(const std::string& root) {
  std::vector<std::string> kept = KeptDamage(root);
  for (const std::string& name : kept) {
    std::error_code error;
    fs::remove_all(root + "/" + name, error);
    if (error) return SystemError("delete " + root + "/" + name, error.value());
  }
  return kept;
}

std::string RepairToJson(const RepairReport& report) {
  std::string out;
  JsonWriter w(out);
  w.BeginObject().Field("profiles", report.profiles).Field("blocks", report.blocks);
  w.Field("damage", report.damage).Field("dropped", report.dropped);
  w.Key("losses").BeginArray();
  for (const RepairReport::Loss& loss : report.losses) {
    w.BeginObject().Field("profile", loss.profile).Field("what", loss.what).EndObject();
  }
  w.EndArray().Field("kept", report.kept).EndObject();
  return out;
}

Result<RepairReport> RepairFromJson(std::string_view json) {
  const auto value = ParseJson(json, "report of a repair");
  if (!value.ok()) return value.status();
  RepairReport report;
  std::string error;
  JsonFields fields(*value, error, "report of a repair");
  fields.Read("profiles", report.profiles);
  fields.Read("blocks", report.blocks);
  fields.Read("damage", report.damage);
  fields.Read("dropped", report.dropped);
  fields.Read("kept", report.kept);
  if (const auto* losses = fields.Array("losses", SIZE_MAX)) {
    for (const auto& one : *losses) {
      JsonFields loss(one, error, "a loss");
      loss.Read("profile", report.losses.emplace_back().profile);
      loss.Read("what", report.losses.back().what);
    }
  }
  if (!error.empty()) return Status(Code::kCorrupt, "read the report of a repair: " + error);
  return report;
}

}  // namespace sonde
