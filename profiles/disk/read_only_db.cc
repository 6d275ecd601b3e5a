#include "profiles/disk/read_only_db.h"

#include <sys/stat.h>

#include <cerrno>
#include <cstring>

#include "profiles/disk/archive_dir.h"
#include "profiles/disk/leveldb_env.h"
#include "profiles/disk/leveldb_log.h"

namespace sonde {
namespace {

// How strictly a database is checked before it is read. Lenient: LevelDB drops what fails its
// checksums; a repair also finds tables that no manifest names, but takes records unchecked.
enum class Strictness { kStrict, kLenient, kRepair };

leveldb::Status TryOpen(const std::string& path, Strictness how, ReadOnlyDb& out) {
  out.db.reset();
  out.env = std::make_unique<OverlayEnv>(path);
  if (how != Strictness::kStrict) out.env->CheckTables();
  leveldb::Options options;
  options.env = out.env.get();
  options.info_log = NullLogger();
  options.paranoid_checks = how == Strictness::kStrict;
  options.max_open_files = 128;
  options.write_buffer_size = 16u << 20;  // the log's records, in one piece
  // The log's records stay in memory as they are, and the manifest is continued.
  options.reuse_logs = how == Strictness::kStrict;
  if (how == Strictness::kRepair) {
    const leveldb::Status repaired = leveldb::RepairDB(path, options);
    if (!repaired.ok()) return repaired;
  }
  leveldb::DB* db = nullptr;
  const leveldb::Status status = leveldb::DB::Open(options, path, &db);
  out.db.reset(db);
  out.env->Seal();
  return status;
}

// Opens with a manifest that was the same before and after, if one try in so many finds that.
leveldb::Status OpenWhole(const std::string& path, ReadOnlyDb& out) {
  constexpr int kTries = 10;
  constexpr int kFailures = 3;  // a writer may replace files while they are being looked up
  leveldb::Status status;
  for (int tries = 0, failures = 0; tries < kTries && failures < kFailures; ++tries) {
    out.state = DbState::Of(path);
    status = TryOpen(path, Strictness::kStrict, out);
    if (!status.ok()) {
      ++failures;
    } else if (out.state.HasSameTables(DbState::OfTables(path))) {
      break;
    }
  }
  return status;
}

// Whether a read failed for what is wrong with the disk, rather than with this process.
bool IsOfTheDisk(const leveldb::Status& failure) {
  return failure.ToString().ends_with(std::strerror(EIO));
}

// What LevelDB's repair finds; kCorrupt if that is nothing.
Result<ReadOnlyDb> OpenRepaired(const std::string& path, ReadOnlyDb out) {
  const leveldb::Status repaired = TryOpen(path, Strictness::kRepair, out);
  const leveldb::Status failure = out.env->reads().newest();
  const bool shows_the_rest = repaired.ok() && IsOfTheDisk(failure);
  if (!failure.ok() && !shows_the_rest) return FromLevelDb(failure, "read " + path);
  if (repaired.ok()) return out;
  if (!out.unread.ok()) return out.unread;
  return Status(Code::kCorrupt, "read " + path + ": " + repaired.ToString());
}

}  // namespace

DbState DbState::OfTables(const std::string& path) {
  constexpr size_t kMaxName = 256;
  DbState state;
  const auto current = ReadSmallFile(path + "/CURRENT", kMaxName);
  if (!current.ok()) return state;
  state.manifest = current->substr(0, current->find('\n'));
  struct stat info;
  if (::stat((path + "/" + state.manifest).c_str(), &info) != 0) return state;
  state.manifest_size = static_cast<uint64_t>(info.st_size);
  state.manifest_inode = info.st_ino;
  return state;
}

DbState DbState::Of(const std::string& path) {
  DbState state = OfTables(path);
  struct stat info;
  for (const std::string& name : NamesIn(path)) {
    if (!name.ends_with(".log") || ::stat((path + "/" + name).c_str(), &info) != 0) continue;
    state.logs[name] = static_cast<uint64_t>(info.st_size);
  }
  return state;
}

bool DbState::HasSameTables(const DbState& other) const {
  return manifest == other.manifest && manifest_size == other.manifest_size &&
         manifest_inode == other.manifest_inode;
}

Status ReadOnlyDb::ReadFailure() const {
  if (!unread.ok() || !env) return unread;
  return FromLevelDb(env->reads().newest(), "read the database");
}

Result<ReadOnlyDb> ReadOnlyDb::Open(const std::string& path, const std::string& lock) {
  const std::string what = "read " + path;
  ReadOnlyDb out;
  if (!lock.empty()) out.share = FileShare::Take(lock);
  const auto current = Exists(path + "/CURRENT");
  if (!current.ok()) return current.status().Within(what);
  if (!*current) {
    const auto lacks = LacksCurrent(path);
    if (!lacks.ok()) return lacks.status().Within(what);
    if (!*lacks) return Status(Code::kNotFound, path + " holds no database");
    out.damage = "its file CURRENT is gone";
    return OpenRepaired(path, std::move(out));
  }
  const leveldb::Status whole = OpenWhole(path, out);
  out.unread = FromLevelDb(out.env->reads().newest(), what);
  if (!out.unread.ok() && !IsOfTheDisk(out.env->reads().newest())) return out.unread;
  if (whole.ok()) {
    const Status logs = CheckLogs(path);
    if (!logs.ok() && logs.code() != Code::kCorrupt) return logs;
    out.damage = logs.message();
    return out;
  }
  out.damage = whole.ToString();
  if (TryOpen(path, Strictness::kLenient, out).ok()) return out;
  return OpenRepaired(path, std::move(out));
}

}  // namespace sonde
