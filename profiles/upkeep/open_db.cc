#include "profiles/upkeep/open_db.h"

#include <fmt/core.h>

#include <filesystem>
#include <utility>

#include "profiles/disk/leveldb_env.h"
#include "profiles/disk/leveldb_log.h"
#include "profiles/disk/leveldb_read.h"
#include "profiles/disk/read_only_db.h"
#include "profiles/records/index.h"
#include "profiles/records/keys.h"
#include "profiles/upkeep/repair.h"

namespace sonde {
namespace {

Status OtherFormat(const std::string& path, std::string_view format) {
  return {Code::kUnsupported, fmt::format("open {}: it was written by a newer Sonde ({}); update "
                                          "this one, nothing was changed",
                                          path, format.substr(0, 64))};
}

// A text that is no name of a format is damage.
bool IsNewer(std::string_view format) {
  return format != keys::kFormat && format.starts_with(keys::kFormatStem) &&
         format.size() > keys::kFormatStem.size() &&
         format.find_first_not_of("0123456789", keys::kFormatStem.size()) == std::string::npos;
}

// A later version writes the file first: a database that has our format has been left as it was.
bool HasOurFormat(const ArchivePaths& archive) {
  const auto db = ReadOnlyDb::Open(archive.db());
  std::string format;
  return db.ok() && db->db->Get(CheckedRead(), AsSlice(keys::kFormatKey), &format).ok() &&
         format == keys::kFormat;
}

// A database without profiles has complete indexes.
Status MarkIfEmpty(leveldb::DB& db, const std::string& path) {
  if (IsIndexed(db)) return {};
  const std::unique_ptr<leveldb::Iterator> it(db.NewIterator(CheckedScan()));
  const leveldb::Slice by_time = AsSlice(keys::kByTime);
  it->Seek(by_time);
  if (!it->status().ok()) return FromLevelDb(it->status(), "read " + path);
  if (it->Valid() && it->key().starts_with(by_time)) return {};
  return FromLevelDb(
      db.Put(leveldb::WriteOptions(), AsSlice(keys::kIndexedKey), AsSlice(keys::kIndexed)),
      "write to " + path);
}

}  // namespace

Status CheckDbFormat(leveldb::DB& db, const std::string& path) {
  std::string format;
  const leveldb::ReadOptions checked = CheckedRead();
  const leveldb::Status read = db.Get(checked, AsSlice(keys::kFormatKey), &format);
  if (read.ok() && IsNewer(format)) return OtherFormat(path, format);
  return read.IsNotFound() || read.IsCorruption() ? Status() : FromLevelDb(read, "read " + path);
}

Result<std::unique_ptr<WritableDb>> CreateDb(const std::string& path,
                                             std::shared_ptr<Fence> fence) {
  leveldb::Options options;
  options.create_if_missing = true;
  options.paranoid_checks = true;
  options.info_log = NullLogger();
  // Blocks do not compress again, schemas and descriptions do; Snappy finds that out quickly.
  options.compression = leveldb::kSnappyCompression;
  options.write_buffer_size = 4u << 20;
  // All tables that overlap with one table are rewritten together, up to some ten of them: with
  // large tables that takes more room than there may be when room is to be given back.
  options.max_file_size = 2u << 20;
  options.max_open_files = 256;
  return WritableDb::Open(options, path,
                          std::make_unique<WriterEnv>(path + ".lock", std::move(fence)));
}

Result<std::unique_ptr<WritableDb>> OpenDb(const ArchivePaths& archive,
                                           std::shared_ptr<Fence> fence) {
  if (fence) SONDE_RETURN_IF_ERROR(fence->Check());
  SONDE_RETURN_IF_ERROR(CheckArchiveFormat(archive));
  SONDE_RETURN_IF_ERROR(FinishRepair(archive, fence.get()));
  std::error_code error;
  const bool made = std::filesystem::create_directory(archive.db(), error);
  std::filesystem::permissions(archive.db(), std::filesystem::perms::owner_all, error);
  SONDE_RETURN_IF_ERROR(CheckLogs(archive.db()));
  const auto lacks = LacksCurrent(archive.db());
  if (!lacks.ok()) return lacks.status();
  if (*lacks) {
    return Status(Code::kCorrupt, "open " + archive.db() + ": its file CURRENT is gone; " +
                                      "'sonde archive repair' mends it");
  }
  auto db = CreateDb(archive.db(), std::move(fence));
  if (!db.ok()) return db;
  SONDE_RETURN_IF_ERROR(CheckDbFormat(**db, archive.db()));
  if (const auto said = ReadSmallFile(archive.db_format(), keys::kFormat.size());
      !said.ok() || *said != keys::kFormat) {
    SONDE_RETURN_IF_ERROR(WriteFileAtomically(archive.db_format(), keys::kFormat));
  }
  if (made) SONDE_RETURN_IF_ERROR(SyncPath(archive.root));
  SONDE_RETURN_IF_ERROR(MarkIfEmpty(**db, archive.db()));
  return db;
}

Status CheckArchiveFormat(const ArchivePaths& archive) {
  constexpr size_t kMost = 4096;
  const auto format = ReadSmallFile(archive.db_format(), kMost);
  Status refused;
  if (format.ok() && IsNewer(*format)) refused = OtherFormat(archive.db(), *format);
  if (IsUnread(format.status())) {
    refused = format.status().Within("open " + archive.db() +
                                     ": whether a newer Sonde wrote it cannot be told");
  }
  // If the file and the database disagree, the file is damaged.
  return refused.ok() || HasOurFormat(archive) ? Status() : refused;
}

}  // namespace sonde
