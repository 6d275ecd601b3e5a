#include "profiles/disk/leveldb_env.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "profiles/disk/archive_dir.h"
#include "profiles/disk/file_lock.h"

namespace sonde {
namespace {

using leveldb::Slice;

constexpr std::string_view kCurrentName = "/CURRENT";
constexpr std::string_view kManifestName = "/MANIFEST-";

class Silence : public leveldb::Logger {
 public:
  void Logv(const char*, std::va_list) override {}
};

// Stops its environment when a change of the file fails.
class WatchedFile : public leveldb::WritableFile {
 public:
  WatchedFile(leveldb::WritableFile* file, WriterEnv& env, bool manifest)
      : file_(file), env_(env), manifest_(manifest) {}
  WatchedFile(const WatchedFile&) = delete;
  WatchedFile& operator=(const WatchedFile&) = delete;
  // LevelDB does not close logs itself. Some file systems report a failed write only at the close.
  ~WatchedFile() override {
    if (!closed_) static_cast<void>(CloseFile());
  }
  leveldb::Status Append(const Slice& data) override {
    if (manifest_) env_.ManifestWritten();
    return env_.Try([&] { return file_->Append(data); });
  }
  leveldb::Status Flush() override {
    return env_.Try([&] { return file_->Flush(); });
  }
  leveldb::Status Sync() override {
    return env_.Try([&] {
      leveldb::Status ours = env_.CheckFence();
      if (!ours.ok()) return ours;
      return env_.quiet() ? file_->Flush() : file_->Sync();
    });
  }
  leveldb::Status Close() override { return CloseFile(); }

 private:
  leveldb::Status CloseFile() {
    closed_ = true;
    const leveldb::Status stopped = env_.failure();
    const leveldb::Status status = file_->Close();
    if (!status.ok()) env_.Stop(status);
    return stopped.ok() ? status : stopped;
  }

  std::unique_ptr<leveldb::WritableFile> file_;
  WriterEnv& env_;
  const bool manifest_;
  bool closed_ = false;
};

class TableFile : public leveldb::RandomAccessFile {
 public:
  TableFile(int fd, std::string name) : fd_(fd), name_(std::move(name)) {}
  TableFile(const TableFile&) = delete;
  TableFile& operator=(const TableFile&) = delete;
  ~TableFile() override { ::close(fd_); }
  leveldb::Status Read(uint64_t offset, size_t n, Slice* result, char* scratch) const override {
    size_t got = 0;
    while (got < n) {
      const ssize_t some = ::pread(fd_, scratch + got, n - got, static_cast<off_t>(offset + got));
      if (some < 0 && errno == EINTR) continue;
      if (some < 0) return leveldb::Status::IOError(name_, std::strerror(errno));
      if (some == 0) break;
      got += static_cast<size_t>(some);
    }
    *result = Slice(scratch, got);
    return leveldb::Status::OK();
  }

 private:
  const int fd_;
  const std::string name_;
};

std::string DirectoryOf(const std::string& path) { return path.substr(0, path.rfind('/')); }

// Whether CURRENT beside the file names it, or may do so. An exchange of CURRENT may have been done
// although it was reported as a failure; LevelDB then deletes the manifest that it had made.
bool IsCurrentManifest(const std::string& path) {
  constexpr size_t kMaxName = 256;
  if (path.find(kManifestName) == std::string::npos) return false;
  const std::string directory = DirectoryOf(path);
  const auto current = ReadSmallFile(directory + std::string(kCurrentName), kMaxName);
  if (!current.ok()) return current.status().code() != Code::kNotFound;
  return *current == path.substr(directory.size() + 1) + "\n";
}

}  // namespace

Status FromLevelDb(const leveldb::Status& status, std::string_view what) {
  if (status.ok()) return {};
  const std::string text = status.ToString();
  Code code = Code::kIo;
  if (status.IsNotFound()) code = Code::kNotFound;
  if (status.IsCorruption()) code = Code::kCorrupt;
  int error = 0;
  for (const int known : {ENOSPC, EDQUOT, EROFS, EACCES, EPERM}) {
    if (text.ends_with(std::strerror(known))) error = known;
  }
  if (error == EACCES || error == EPERM) code = Code::kPermission;
  return {code, std::string(what) + ": " + text + ArchiveAdvice(error)};
}

leveldb::Logger* NullLogger() {
  static Silence silence;
  return &silence;
}

leveldb::Logger* NewNullLogger() { return std::make_unique<Silence>().release(); }

leveldb::Status CheckRegular(const std::string& path, const std::string& name) {
  return IsIrregular(path) ? leveldb::Status::Corruption(name, "is not a regular file")
                           : leveldb::Status::OK();
}

leveldb::Status OpenTable(const std::string& path, const std::string& name,
                          leveldb::RandomAccessFile** file) {
  *file = nullptr;
  if (leveldb::Status regular = CheckRegular(path, name); !regular.ok()) return regular;
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return leveldb::Status::IOError(name, std::strerror(errno));
  *file = std::make_unique<TableFile>(fd, name).release();
  return leveldb::Status::OK();
}

leveldb::Status WriterEnv::NewSequentialFile(const std::string& name, leveldb::SequentialFile** f) {
  *f = nullptr;
  if (leveldb::Status regular = CheckRegular(name, name); !regular.ok()) return regular;
  leveldb::Status opened = reads_.Hear(target()->NewSequentialFile(name, f));
  if (opened.ok()) *f = reads_.Heard(*f);
  return opened;
}

leveldb::Status WriterEnv::NewRandomAccessFile(const std::string& name,
                                               leveldb::RandomAccessFile** f) {
  leveldb::Status opened = reads_.Hear(OpenTable(name, name, f));
  if (opened.ok()) *f = reads_.Heard(*f);
  return opened;
}

// Where there seems to be no CURRENT LevelDB makes a new database.
bool WriterEnv::FileExists(const std::string& name) {
  const auto there = Exists(name);
  if (there.ok()) return *there;
  static_cast<void>(reads_.Hear(leveldb::Status::IOError(std::string(there.status().message()))));
  return true;
}

leveldb::Status WriterEnv::GetChildren(const std::string& directory,
                                       std::vector<std::string>* names) {
  return reads_.Hear(target()->GetChildren(directory, names));
}

void WriterEnv::LookAtReads() {
  if (opening_ && reads_.count() > 0) Stop(reads_.newest());
}

void WriterEnv::Stop(const leveldb::Status& why) {
  const std::lock_guard lock(mutex_);
  if (stopped_) return;
  why_ = why;
  stopped_ = true;
}

leveldb::Status WriterEnv::failure() const {
  if (!stopped_) return leveldb::Status::OK();
  const std::lock_guard lock(mutex_);
  return why_;
}

leveldb::Status WriterEnv::CheckFence() {
  LookAtReads();
  const leveldb::Status stopped = failure();
  if (!stopped.ok() || !fence_) return stopped;
  const Status ours = fence_->Check();
  if (ours.ok()) return stopped;
  Stop(leveldb::Status::IOError(std::string(ours.message())));
  return failure();
}

leveldb::Status WriterEnv::Watched(const std::string& name, leveldb::Status opened,
                                   leveldb::WritableFile** file) {
  if (!opened.ok()) return opened;
  const bool manifest = name.find(kManifestName) != std::string::npos;
  *file = std::make_unique<WatchedFile>(*file, *this, manifest).release();
  return opened;
}

void WriterEnv::ManifestWritten() {
  const std::lock_guard lock(mutex_);
  unnamed_.clear();
}

void WriterEnv::EndWriting() {
  const std::lock_guard lock(mutex_);
  for (const std::string& name : unnamed_) static_cast<void>(Delete(name));
  unnamed_.clear();
  if (stopped_ || put_off_.empty() || FileShare::IsTaken(lock_)) return;
  for (const std::string& name : put_off_) static_cast<void>(Delete(name));
  put_off_.clear();
}

void WriterEnv::EndOpening(bool ok) {
  const std::lock_guard lock(mutex_);
  opening_ = false;
  const std::vector<std::string> made = std::exchange(made_, {});
  // The manifest that is in place needs the others of them.
  if (ok || std::any_of(made.begin(), made.end(), IsCurrentManifest)) return;
  for (const std::string& name : made) static_cast<void>(Delete(name));
}

leveldb::Status WriterEnv::NewWritableFile(const std::string& name, leveldb::WritableFile** file) {
  *file = nullptr;
  if (leveldb::Status ours = CheckFence(); !ours.ok()) return ours;
  {
    const std::lock_guard lock(mutex_);
    if (name.ends_with(".ldb")) unnamed_.insert(name);
    if (opening_) made_.push_back(name);
  }
  return Watched(name, Try([&] {
                   const leveldb::Status regular = CheckRegular(name, name);
                   return regular.ok() ? target()->NewWritableFile(name, file) : regular;
                 }),
                 file);
}

leveldb::Status WriterEnv::NewAppendableFile(const std::string& name,
                                             leveldb::WritableFile** file) {
  *file = nullptr;
  if (leveldb::Status ours = CheckFence(); !ours.ok()) return ours;
  return Watched(name, Try([&] {
                   const leveldb::Status regular = CheckRegular(name, name);
                   return regular.ok() ? target()->NewAppendableFile(name, file) : regular;
                 }),
                 file);
}

leveldb::Status WriterEnv::RenameFile(const std::string& from, const std::string& to) {
  if (leveldb::Status ours = CheckFence(); !ours.ok()) return ours;
  leveldb::Status renamed = Try([&] { return target()->RenameFile(from, to); });
  if (!renamed.ok() || !to.ends_with(kCurrentName)) return renamed;
  {
    const std::lock_guard lock(mutex_);
    made_.clear();
  }
  // LevelDB deletes next what only the manifest before named: after a power cut CURRENT must not
  // name that one again.
  if (quiet()) return renamed;
  return Try([&] {
    const Status synced = SyncPath(DirectoryOf(to));
    return synced.ok() ? renamed : leveldb::Status::IOError(std::string(synced.message()));
  });
}

leveldb::Status WriterEnv::RemoveFile(const std::string& name) {
  if (!FileShare::IsTaken(lock_)) return Delete(name);
  const std::lock_guard lock(mutex_);
  put_off_.insert(name);
  return leveldb::Status::OK();
}

leveldb::Status WriterEnv::Delete(const std::string& name) {
  if (IsCurrentManifest(name)) return leveldb::Status::IOError(name, "CURRENT names it");
  // Last of all, for this process may have been suspended since: what another host's database may
  // need stays.
  const Status ours = fence_ ? fence_->Check() : Status();
  if (!ours.ok()) return leveldb::Status::IOError(name, std::string(ours.message()));
  return target()->RemoveFile(name);
}

leveldb::Status QuietOpenEnv::LockFile(const std::string&, leveldb::FileLock** lock) {
  *lock = std::make_unique<leveldb::FileLock>().release();
  return leveldb::Status::OK();
}

leveldb::Status QuietOpenEnv::UnlockFile(leveldb::FileLock* lock) {
  const std::unique_ptr<leveldb::FileLock> owned(lock);
  return leveldb::Status::OK();
}

leveldb::Status QuietOpenEnv::NewLogger(const std::string&, leveldb::Logger** logger) {
  *logger = NewNullLogger();
  return leveldb::Status::OK();
}

Result<bool> LacksCurrent(const std::string& path) {
  const auto names = ListNames(path);
  if (!names.ok()) return names.status();
  if (std::find(names->begin(), names->end(), "CURRENT") != names->end()) return false;
  // A database whose writer was killed while making it has none of these yet.
  return std::any_of(names->begin(), names->end(), [](const std::string& name) {
    return name.ends_with(".ldb") || name.ends_with(".sst") || name.ends_with(".log");
  });
}

}  // namespace sonde
