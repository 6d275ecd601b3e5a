#include "profiles/upkeep/import.h"

#include <fcntl.h>
#include <leveldb/db.h>
#include <leveldb/write_batch.h>
#include <sys/stat.h>

#include <cstdio>
#include <memory>
#include <utility>

#include "core/unique_fd.h"
#include "profiles/disk/archive_dir.h"
#include "profiles/disk/leveldb_env.h"
#include "profiles/disk/leveldb_read.h"
#include "profiles/live/live_steps.h"
#include "profiles/records/index.h"
#include "profiles/records/keys.h"
#include "profiles/records/profile_file.h"
#include "profiles/upkeep/ingest.h"
#include "profiles/upkeep/lock.h"
#include "profiles/upkeep/open_db.h"

namespace sonde {
namespace {

struct CloseFile {
  void operator()(std::FILE* file) const { std::fclose(file); }
};

// One file that is being taken into db/.
class Import {
 public:
  Import(std::string path, const ArchiveProgress& progress)
      : path_(std::move(path)), progress_(progress) {}

  Status Open();
  Status Take(int file);
  Status Check();
  // Call it after both.
  Result<Imported> Finish(leveldb::DB& db, const ArchivePaths& paths);

 private:
  Status Into(leveldb::DB& db);
  Status LookAtFile();
  // Calls `f` for every record of the file, from the first on.
  Status ForEach(const std::function<Status(const FileRecord&)>& f);
  std::string KeyOf(const FileRecord& record) const;
  Status Put(const FileRecord& record);
  Status Another() const;
  Status Flush();

  const std::string path_;
  const ArchiveProgress& progress_;
  std::unique_ptr<std::FILE, CloseFile> file_;
  uint64_t size_ = 0;
  uint64_t passed_ = 0;  // bytes of earlier passes
  uint32_t chain_ = 0;   // of the file that was checked
  ProfileFileCheck checked_;
  leveldb::DB* db_ = nullptr;
  leveldb::WriteBatch batch_;
  size_t batched_ = 0;
  size_t profile_bytes_ = 0;
  bool there_ = false;  // its description is
};

Status Import::Open() {
  // Not blocking: it may be a FIFO.
  UniqueFd own(::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (own) file_.reset(::fdopen(own.get(), "rb"));
  if (file_) own.Release();
  return file_ ? LookAtFile() : SystemError("open " + path_);
}

Status Import::Take(int file) {
  const int own = ::fcntl(file, F_DUPFD_CLOEXEC, 0);
  if (own < 0) return SystemError("read " + path_);
  file_.reset(::fdopen(own, "rb"));
  return LookAtFile();
}

Status Import::LookAtFile() {
  struct stat info {};
  if (::fstat(::fileno(file_.get()), &info) != 0) return SystemError("read " + path_);
  if (!S_ISREG(info.st_mode)) return {Code::kInvalid, path_ + " is no file"};
  size_ = static_cast<uint64_t>(info.st_size);
  return {};
}

Status Import::ForEach(const std::function<Status(const FileRecord&)>& f) {
  std::rewind(file_.get());
  ProfileFileReader reader([this](char* buffer, size_t size) -> Result<size_t> {
    const size_t got = std::fread(buffer, 1, size, file_.get());
    if (got == 0 && std::ferror(file_.get()) != 0) return SystemError("read " + path_);
    return got;
  });
  for (;;) {
    const Result<std::optional<FileRecord>> record = reader.Next();
    if (!record.ok()) return record.status();
    if (!*record) break;
    SONDE_RETURN_IF_ERROR(f(**record));
    if (progress_ && !progress_(passed_ + reader.position(), 2 * size_)) return StoppedWork();
  }
  if (passed_ > 0 && reader.chain() != chain_) {
    return {Code::kIo, "it was changed while it was read"};
  }
  chain_ = reader.chain();
  passed_ += size_;
  return {};
}

Status Import::Check() {
  SONDE_RETURN_IF_ERROR(ForEach([&](const FileRecord& record) { return checked_.Add(record); }));
  return checked_.Finish();
}

std::string Import::KeyOf(const FileRecord& record) const {
  const std::string& profile = checked_.key();
  switch (record.kind) {
    case FileRecordKind::kDescription:
      return keys::Description(profile);
    case FileRecordKind::kProfile:
      return keys::Profile(profile);
    case FileRecordKind::kPart:
      return keys::Part(profile, record.part);
    case FileRecordKind::kOther:
      return keys::Other(record.other, profile, record.part);
    case FileRecordKind::kBlock:
      return keys::Block(profile, record.block);
    default:
      return "";
  }
}

Status Import::Put(const FileRecord& record) {
  if (record.kind == FileRecordKind::kKey) return {};
  std::string at = KeyOf(record);
  if (record.kind == FileRecordKind::kSchema) {
    const auto schema = Schema::Decode(record.bytes);
    if (!schema.ok()) return schema.status();
    at = keys::Schema((*schema)->id());
  }
  std::string present;
  const leveldb::ReadOptions options = CheckedRead();
  const leveldb::Status read = db_->Get(options, at, &present);
  if (!read.ok() && !read.IsNotFound()) return FromLevelDb(read, "read from the archive");
  if (read.ok() && present == record.bytes) return {};
  if (there_ || read.ok()) {
    return Another();
  }
  // The records that make it a profile are written last.
  const bool last = record.kind == FileRecordKind::kDescription;
  if (!last) batch_.Put(at, record.bytes);
  batched_ += last ? 0 : at.size() + record.bytes.size();
  return batched_ < kBatchBytes ? Status() : Flush();
}

Status Import::Another() const {
  return {Code::kInvalid, "the archive has another record of " + checked_.job().id.ToString() +
                              " with the same start, which is left as it is"};
}

// Synced each time: LevelDB may begin a new log in between, and a sync of that is none of the old
// one.
Status Import::Flush() {
  leveldb::WriteOptions options;
  options.sync = true;
  const leveldb::Status status = db_->Write(options, &batch_);
  batch_.Clear();
  batched_ = 0;
  return FromLevelDb(status, "write to the archive");
}

Status Import::Into(leveldb::DB& db) {
  db_ = &db;
  std::string present;
  there_ = db.Get(CheckedRead(), keys::Description(checked_.key()), &present).ok();
  std::string description;
  SONDE_RETURN_IF_ERROR(ForEach([&](const FileRecord& record) {
    if (record.kind == FileRecordKind::kDescription) description = record.bytes;
    if (record.kind == FileRecordKind::kProfile) profile_bytes_ = record.bytes.size();
    return Put(record);
  }));
  if (there_) return {};
  SONDE_RETURN_IF_ERROR(Flush());
  const auto blocks = CountBlocks(db, checked_.key());
  if (!blocks.ok()) return blocks.status();
  if (*blocks != checked_.blocks()) return Another();
  batch_.Put(AsSlice(keys::kFormatKey), AsSlice(keys::kFormat));
  batch_.Put(keys::Description(checked_.key()), description);
  batch_.Put(keys::BlockCount(checked_.key()), std::to_string(checked_.blocks()));
  IndexWriter index(db);
  SONDE_RETURN_IF_ERROR(index.Enter(*checked_.profile(), profile_bytes_, batch_));
  index.Finish(batch_);
  return Flush();
}

Status RefuseLive(const ArchivePaths& paths, const ProfileFileCheck& checked) {
  const auto steps = ScanLive(paths, {.key = checked.key(), .described = false});
  if (!steps.ok()) return steps.status();
  if (steps->empty()) return {};
  return {Code::kBusy,
          checked.job().id.ToString() + " is in live/ of this archive, running or not taken in"};
}

Result<Imported> Import::Finish(leveldb::DB& db, const ArchivePaths& paths) {
  SONDE_RETURN_IF_ERROR(RefuseLive(paths, checked_).Within(path_));
  SONDE_RETURN_IF_ERROR(Into(db).Within("import " + path_));
  return Imported{checked_.job(), checked_.blocks(), there_};
}

}  // namespace

Result<Imported> ImportProfile(const std::string& archive, const std::string& path, Nanos wait,
                               const ArchiveProgress& progress) {
  Import import(path, progress);
  SONDE_RETURN_IF_ERROR(import.Open());
  SONDE_RETURN_IF_ERROR(import.Check().Within(path));
  const ArchivePaths paths(archive);
  SONDE_RETURN_IF_ERROR(PrepareArchive(paths));
  const auto lock = ArchiveLock::Acquire(paths, wait);
  if (lock.status().code() == Code::kBusy) {
    return WhoHolds(paths, lock.status()).Within("import " + path);
  }
  if (!lock.ok()) return lock.status().Within("import " + path);
  const auto db = OpenDb(paths, lock->claim());
  if (!db.ok()) return db.status();
  return import.Finish(**db, paths);
}

Result<Imported> ImportInto(leveldb::DB& db, const ArchivePaths& paths, int file,
                            const std::string& name, const ArchiveProgress& progress) {
  Import import(name, progress);
  SONDE_RETURN_IF_ERROR(import.Take(file));
  SONDE_RETURN_IF_ERROR(import.Check().Within(name));
  return import.Finish(db, paths);
}

std::string ImportedToText(const Imported& imported) {
  return (imported.was_there ? "there " : "new ") + imported.job.id.ToString();
}

Result<Imported> ImportedFromText(uint64_t blocks, std::string_view text) {
  const size_t blank = text.find(' ');
  const std::string_view what = text.substr(0, blank);
  if (blank == std::string_view::npos || (what != "there" && what != "new")) {
    return Status(Code::kCorrupt, "expected \"new STEP\" or \"there STEP\"");
  }
  Imported imported;
  imported.job.id = JobStep::Parse(text.substr(blank + 1));
  imported.blocks = blocks;
  imported.was_there = what == "there";
  return imported;
}

}  // namespace sonde
