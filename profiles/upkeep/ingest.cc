#include "profiles/upkeep/ingest.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <utility>

#include "profiles/disk/file_lock.h"
#include "profiles/disk/leveldb_env.h"
#include "profiles/disk/leveldb_read.h"
#include "profiles/disk/read_only_db.h"
#include "profiles/disk/room.h"
#include "profiles/model/parts.h"
#include "profiles/model/profile.h"
#include "profiles/reading/profile_reader.h"
#include "profiles/records/index.h"
#include "profiles/records/keys.h"
#include "profiles/records/records.h"
#include "profiles/upkeep/open_db.h"

namespace sonde {
namespace {

constexpr size_t kSettleSteps = 64;
constexpr uint64_t kSettleBytes = 16u << 20;
constexpr uint64_t kMaxParts = 1024;

// Checks for room for the step in a log, and for opening db/ anew.
uint64_t RoomFor(const ArchivePaths& archive, const LiveStep& step) {
  return 2 * BytesIn(step.paths.blocks()) + RoomToOpen(archive);
}

// One live directory that is being copied into db/.
class Ingest {
 public:
  // `written` receives every record of the step that db/ must have.
  Ingest(leveldb::DB& db, const ArchivePaths& archive, const LiveStep& step,
         WrittenRecords& written)
      : db_(db), archive_(archive), step_(step), written_(written) {}

  Result<CopiedStep> Run();

 private:
  Status OpenLive();
  Status CopySchemas();
  Status CopyBlocks();
  Status CopyOthers();
  Status CopyBlock(const BlockKey& key, std::string_view bytes);
  Status FlushIfFull(size_t added);
  Status WriteBatch();
  Status Write();
  Status Commit(const Part& part, const Profile& profile);
  Part Incoming();
  Result<std::vector<Part>> KnownParts() const;
  Profile Whole(const Part& incoming, std::vector<Part> others);
  Profile Killed(const Profile& profile) const;
  std::vector<std::string> Notes() const;

  leveldb::DB& db_;
  const ArchivePaths& archive_;
  const LiveStep& step_;
  std::optional<ReadOnlyDb> live_;
  std::string damage_;  // "" or why something of it could not be read
  uint64_t lost_blocks_ = 0;
  std::string foreign_;  // "" or why another version of Sonde is needed to read some of it
  uint64_t foreign_blocks_ = 0;
  leveldb::WriteBatch batch_;
  size_t batched_ = 0;
  WrittenRecords& written_;
};

Status Ingest::OpenLive() {
  auto opened = ReadOnlyDb::Open(step_.paths.blocks());
  if (opened.ok()) {
    live_ = *std::move(opened);
    damage_ = live_->damage;
  } else if (opened.status().code() == Code::kCorrupt) {
    damage_ = opened.status().message();
  } else if (opened.status().code() != Code::kNotFound) {
    return opened.status();
  }
  return live_ ? CheckDbFormat(*live_->db, step_.paths.blocks()) : Status();
}

Status Ingest::FlushIfFull(size_t added) {
  batched_ += added;
  if (batched_ < kBatchBytes) return {};
  return WriteBatch();
}

// Synced each time: LevelDB may begin a new log in between, and a sync of that is none of the old
// one.
Status Ingest::WriteBatch() {
  written_.Add(batch_);
  return Write();
}

Status Ingest::Write() {
  leveldb::WriteOptions options;
  options.sync = true;
  const leveldb::Status status = db_.Write(options, &batch_);
  batch_.Clear();
  batched_ = 0;
  return FromLevelDb(status, "write to " + archive_.db());
}

Status Ingest::CopySchemas() {
  const std::unique_ptr<leveldb::Iterator> it(live_->db->NewIterator(CheckedScan()));
  const std::string prefix(1, keys::kSchemaKind);
  for (it->Seek(prefix); it->Valid() && it->key().starts_with(prefix); it->Next()) {
    const auto id = keys::ParseSchema(View(it->key()));
    const auto schema = Schema::Decode(View(it->value()));
    if (schema.status().code() == Code::kUnsupported) {
      if (foreign_.empty()) foreign_ = schema.status().message();
    } else if (!id || !schema.ok() || (*schema)->id() != *id) {
      if (damage_.empty()) damage_ = "a schema fails its checks";
      continue;
    }
    batch_.Put(it->key(), it->value());
    SONDE_RETURN_IF_ERROR(FlushIfFull(it->key().size() + it->value().size()));
  }
  if (!it->status().ok() && damage_.empty()) damage_ = it->status().ToString();
  return {};
}

Status Ingest::CopyBlock(const BlockKey& key, std::string_view bytes) {
  BlockKey to = key;
  for (uint64_t part = 0; part < kMaxParts; ++part) {
    to.sequence = key.sequence | part << keys::kPartShift;
    const std::string at = keys::Block(step_.key, to);
    std::string there;
    const leveldb::Status status = db_.Get(CheckedScan(), at, &there);
    if (status.ok() && there != bytes) continue;
    if (!status.ok() && !status.IsNotFound()) {
      return FromLevelDb(status, "read from " + archive_.db());
    }
    if (status.ok()) {
      written_.AddPut(at, bytes);
      return {};
    }
    batch_.Put(at, {bytes.data(), bytes.size()});
    return FlushIfFull(at.size() + bytes.size());
  }
  return {Code::kLimit, "ingest " + step_.name + ": too many writers used the same blocks"};
}

Status Ingest::CopyBlocks() {
  const std::unique_ptr<leveldb::Iterator> it(live_->db->NewIterator(CheckedScan()));
  const std::string prefix = keys::Blocks(step_.key);
  for (it->Seek(prefix); it->Valid() && it->key().starts_with(prefix); it->Next()) {
    const auto key = keys::ParseBlock(step_.key, View(it->key()));
    const auto block = key ? DecodeBlock(View(it->value())) : Status(Code::kCorrupt, "a bad key");
    if (block.status().code() == Code::kUnsupported) {
      ++foreign_blocks_;
      if (foreign_.empty()) foreign_ = block.status().message();
    } else if (!block.ok()) {
      ++lost_blocks_;
      if (damage_.empty()) damage_ = block.status().message();
      continue;
    }
    SONDE_RETURN_IF_ERROR(CopyBlock(*key, View(it->value())));
  }
  if (!it->status().ok() && damage_.empty()) damage_ = it->status().ToString();
  return {};
}

// Records of a later version. If two parts have one of the same name, the greater one stays,
// whichever comes first.
Status Ingest::CopyOthers() {
  const auto kinds = OtherKinds(*live_->db);
  if (!kinds.ok()) {
    if (damage_.empty()) damage_ = kinds.status().message();
    return {};
  }
  Status status;
  const Status read =
      ForEachOther(*live_->db, *kinds, step_.key, [&](std::string_view at, std::string_view value) {
        std::string there;
        if (!status.ok()) return;
        const leveldb::Status known = db_.Get(CheckedRead(), AsSlice(at), &there);
        if (!known.ok() && !known.IsNotFound()) {
          status = FromLevelDb(known, "read from " + archive_.db());
        } else if (known.ok() && there >= value) {
          written_.AddPut(at, there);
        } else {
          batch_.Put(AsSlice(at), AsSlice(value));
          status = FlushIfFull(at.size() + value.size());
        }
      });
  if (!read.ok() && damage_.empty()) damage_ = read.message();
  return status;
}

// A note that tells readers what was found here.
std::vector<std::string> Ingest::Notes() const {
  const auto count = [](uint64_t blocks) {
    if (blocks == 0) return std::string("Some of the record");
    return fmt::format("{} block{}", blocks, blocks == 1 ? "" : "s");
  };
  std::vector<std::string> notes;
  if (!damage_.empty()) {
    notes.push_back(fmt::format(
        "{} could not be read ({}); the rest is here, the damaged files are kept in {}{}.",
        count(lost_blocks_), damage_, step_.paths.dir, kCorruptSuffix));
  }
  if (!foreign_.empty()) {
    notes.push_back(fmt::format("{} of another version of Sonde, kept as it was written ({}).",
                                count(foreign_blocks_) + (foreign_blocks_ > 1 ? " are" : " is"),
                                foreign_));
  }
  return notes;
}

// The part as its writer left it or, if that was killed, as the blocks show it.
Part Ingest::Incoming() {
  Part part;
  part.id = PartId::Parse(step_.name);
  JobDescription job = step_.job;
  std::optional<OwnCost> cost;
  if (live_) {
    const ProfileReader reader(*live_->db, step_.key);
    if (const auto id = reader.Writer(); id.ok()) part.id = PartId::Parse(*id);
    if (auto stored = reader.StoredProfile(); stored.ok()) {
      if (HasEnded(stored->job)) {
        part.profile = *std::move(stored);
        if (const auto described = ReadDescription(*live_->db, step_.key); described.ok()) {
          part.profile.job.kept.Merge(described->kept);
        }
        return part;
      }
      cost = stored->cost;
    } else if (stored.status().code() != Code::kNotFound && damage_.empty()) {
      damage_ = stored.status().message();
    }
    if (auto described = ReadDescription(*live_->db, step_.key); described.ok()) {
      job = *std::move(described);
    }
  }
  if (keys::ProfileKey(job) != step_.key) job = *keys::DescribeKey(step_.key);
  ReadTally tally;
  part.profile.job = job;
  if (live_) part.profile = ProfileReader(*live_->db, step_.key).Assemble(job, &tally);
  if (cost) {
    cost->stored_bytes = part.profile.cost.stored_bytes;
    part.profile.cost = *cost;
  }
  if (!HasEnded(job)) {
    part.profile.job.state = EndState::kRunning;
    part.profile.job.end = std::max({job.start, tally.last, job.end});
  } else {
    // The end is known, but the profile is not: the writer was killed in between, or the profile is
    // lost.
    part.profile.job.notes.emplace_back(
        "The summary of the step was not stored; this is what its stored blocks tell.");
  }
  return part;
}

// The profile of a step whose only writer was killed.
Profile Ingest::Killed(const Profile& profile) const {
  Profile killed = profile;
  killed.job.state = EndState::kLost;
  const std::string why = step_.failure.empty()
                              ? "The head was killed"
                              : "The record could not be written (" + step_.failure + ")";
  killed.job.notes.push_back(
      profile.job.end <= profile.job.start
          ? why + " before its first block was stored: nothing was measured."
          : fmt::format("{}: the record stops at {} with its last stored block; the end of the "
                        "step is not known.",
                        why, FormatTime(profile.job.end)));
  return killed;
}

Result<std::vector<Part>> Ingest::KnownParts() const {
  std::vector<Part> parts;
  const std::string prefix = keys::Parts(step_.key);
  const std::unique_ptr<leveldb::Iterator> it(db_.NewIterator(CheckedScan()));
  for (it->Seek(prefix); it->Valid() && it->key().starts_with(prefix); it->Next()) {
    auto profile = ProfileFromJson(View(it->value()));
    if (!profile.ok()) return profile.status();
    Part part;
    part.id = PartId::Parse(View(it->key()).substr(prefix.size()));
    part.profile = *std::move(profile);
    parts.push_back(std::move(part));
  }
  if (!it->status().ok()) return FromLevelDb(it->status(), "read from " + archive_.db());
  return parts;
}

// The archive's profile, now that it has this part as well. All blocks are in db.
Profile Ingest::Whole(const Part& incoming, std::vector<Part> others) {
  std::erase_if(others, [&](const Part& part) { return part.id.text == incoming.id.text; });
  if (others.empty()) {
    return incoming.finished() ? incoming.profile : Killed(incoming.profile);
  }
  others.push_back(incoming);
  Profile whole = WholeProfile(db_, step_.key, std::move(others));
  // The user's changes since the other parts came.
  const auto known = ProfileReader(db_, step_.key).StoredProfile();
  if (known.ok()) whole.job.tags = known->job.tags;
  return whole;
}

Status Ingest::Commit(const Part& part, const Profile& profile) {
  batch_.Put(AsSlice(keys::kFormatKey), AsSlice(keys::kFormat));
  IndexWriter index(db_);
  SONDE_RETURN_IF_ERROR(index.Put(profile, batch_));
  batch_.Put(keys::Part(step_.key, part.id.text), ProfileToJson(part.profile));
  const auto blocks = CountBlocks(db_, step_.key);
  if (!blocks.ok()) return blocks.status();
  batch_.Put(keys::BlockCount(step_.key), std::to_string(*blocks));
  // Totals are of all profiles: the next profile changes them again.
  written_.Add(batch_);
  index.Finish(batch_);
  return Write();
}

Result<CopiedStep> Ingest::Run() {
  UniqueFd directory(::open(step_.paths.dir.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (directory.get() < 0) return SystemError("open " + step_.paths.dir);
  if (FileLock::IsLocked(step_.paths.lock())) {
    return Status(Code::kBusy, step_.paths.lock() + " is held by another process");
  }
  SONDE_RETURN_IF_ERROR(CheckRoom(archive_, RoomFor(archive_, step_)));
  SONDE_RETURN_IF_ERROR(OpenLive());
  if (live_) {
    SONDE_RETURN_IF_ERROR(CopySchemas());
    SONDE_RETURN_IF_ERROR(CopyBlocks());
    SONDE_RETURN_IF_ERROR(CopyOthers());
  }
  // Assembling a merged profile needs all blocks in db.
  SONDE_RETURN_IF_ERROR(FlushIfFull(kBatchBytes));
  Part part = Incoming();
  auto others = KnownParts();
  if (!others.ok()) return others.status();
  Profile profile = Whole(part, *std::move(others));
  for (const std::string& note : Notes()) {
    part.profile.job.notes.push_back(note);
    if (std::find(profile.job.notes.begin(), profile.job.notes.end(), note) ==
        profile.job.notes.end()) {
      profile.job.notes.push_back(note);
    }
  }
  // What could not be read may be there, and the live directory goes.
  if (live_) SONDE_RETURN_IF_ERROR(live_->ReadFailure());
  SONDE_RETURN_IF_ERROR(Commit(part, profile));
  return CopiedStep{step_.name, step_.paths, step_.taken_from, std::move(directory),
                    !damage_.empty()};
}

// A name for a directory of which a part could not be copied.
Result<std::string> NameForDamaged(const CopiedStep& step) {
  constexpr int kMost = 1000;
  std::string name = step.paths.dir + std::string(kCorruptSuffix);
  for (int i = 2; i <= kMost; ++i) {
    const auto there = Exists(name);
    if (!there.ok()) return there.status();
    if (!*there) return name;
    name = fmt::format("{}-{}{}", step.paths.dir, i, kCorruptSuffix);
  }
  return Status(Code::kLimit, "keep " + step.paths.dir + ": there are too many damaged ones");
}

// Deletes the live directory, or keeps it aside if a part of it could not be copied.
Status PutAway(const ArchivePaths& archive, WritableDb& db, const CopiedStep& step) {
  const auto target = step.damaged ? NameForDamaged(step) : UnusedName(archive, "gone", step.name);
  if (!target.ok()) return target.status();
  // Last of all: if this process was suspended, another one has copied and deleted the step, and
  // another writer's may have its name.
  SONDE_RETURN_IF_ERROR(db.CheckClaim());
  const auto here = IsAt(step.directory.get(), step.paths.dir);
  if (!here.ok()) return here.status();
  if (!*here) return {Code::kNotFound, step.paths.dir + " was taken in by another process"};
  if (std::rename(step.paths.dir.c_str(), target->c_str()) != 0) {
    return SystemError("put away " + step.paths.dir);
  }
  std::error_code ignored;
  if (!step.damaged) std::filesystem::remove_all(*target, ignored);
  ForgetWaiting(archive, step.name);
  if (!step.taken_from.empty()) ForgetWaiting(archive, step.taken_from);
  return {};
}

}  // namespace

Status Intake::Add(const LiveStep& step) try {
  if (step.foreign) {
    // From here on its writer, if it lives, writes somewhere else.
    const auto taken = TakeAbandoned(archive_, step);
    return taken.ok() ? Add(*taken) : taken.status().Within("ingest " + step.name);
  }
  WrittenRecords written;
  db_.BeginChange();
  auto copied = Ingest(db_, archive_, step, written).Run();
  if (!copied.ok()) {
    // Some of its records may be there, in place of those of another part of the step.
    records_.AddTried(written);
    return copied.status().Within("ingest " + step.name);
  }
  // If another part of the same step was added before, this one has the newer profile.
  written.AddOlder(std::exchange(records_, {}));
  records_ = std::move(written);
  copied_.push_back(*std::move(copied));
  return {};
} catch (const std::exception& e) {
  return {Code::kInternal, "ingest " + step.name + ": " + e.what()};
}

bool Intake::full() const {
  return copied_.size() >= kSettleSteps || records_.bytes() >= kSettleBytes;
}

Status Intake::Settle() {
  const std::vector<CopiedStep> steps = std::exchange(copied_, {});
  const WrittenRecords records = std::exchange(records_, {});
  if (steps.empty()) return {};
  if (const Status found = ReadBack(records); !found.ok()) {
    // Another failure says nothing about the records: the steps wait, to be ingested again.
    if (found.code() == Code::kCorrupt) db_.Stop(found);
    return found;
  }
  Status first;
  for (const CopiedStep& step : steps) {
    const Status status = PutAway(archive_, db_, step);
    if (status.ok()) ++settled_;
    if (first.ok()) first = status.Within("ingest " + step.name);
  }
  return first;
}

// Opens db/ as the next process does.
Status Intake::ReadBack(const WrittenRecords& records) const {
  const std::string what = "read back from " + archive_.db();
  const auto fresh = ReadOnlyDb::Open(archive_.db(), archive_.db_lock());
  if (!fresh.ok()) return fresh.status().Within(what);
  if (!fresh->damage.empty()) return {Code::kCorrupt, what + ": " + fresh->damage};
  return records.FindIn(*fresh->db).Within(what);
}

Profile WholeProfile(leveldb::DB& db, const std::string& key, std::vector<Part> parts) {
  return ProfileReader(db, key).Whole(std::move(parts));
}

Result<uint64_t> CountBlocks(leveldb::DB& db, const std::string& key) {
  const std::string prefix = keys::Blocks(key);
  const std::unique_ptr<leveldb::Iterator> it(db.NewIterator(CheckedScan()));
  uint64_t count = 0;
  for (it->Seek(prefix); it->Valid() && it->key().starts_with(prefix); it->Next()) ++count;
  if (!it->status().ok()) return FromLevelDb(it->status(), "count the blocks of " + key);
  return count;
}

}  // namespace sonde
