#include "profiles/disk/leveldb_env.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <thread>

#include "profiles/disk/archive_dir.h"
#include "profiles/disk/file_lock.h"
#include "profiles/disk/leveldb_log.h"

namespace sonde {
namespace {

using leveldb::Slice;

constexpr std::string_view kCurrentName = "/CURRENT";

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

// LevelDB would wait for ever for the other end of a FIFO, which is damage like any other. `name`
// is for messages.
leveldb::Status CheckRegular(const std::string& path, const std::string& name) {
  return IsIrregular(path) ? leveldb::Status::Corruption(name, "is not a regular file")
                           : leveldb::Status::OK();
}

// `name` is for messages. A missing file is not a missing key, as NotFound would say.
leveldb::Status OpenTable(const std::string& path, const std::string& name,
                          leveldb::RandomAccessFile** file) {
  *file = nullptr;
  if (leveldb::Status regular = CheckRegular(path, name); !regular.ok()) return regular;
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return leveldb::Status::IOError(name, std::strerror(errno));
  *file = std::make_unique<TableFile>(fd, name).release();
  return leveldb::Status::OK();
}

// A failure at the file's real place, reported under the file's name.
leveldb::Status Told(const leveldb::Status& status, const std::string& name) {
  if (status.ok()) return status;
  const std::string text = status.ToString();
  const size_t why = text.rfind(": ");
  const Slice reason = Slice(text.data() + (why == std::string::npos ? 0 : why + 2));
  return status.IsNotFound() ? leveldb::Status::NotFound(name, reason)
                             : leveldb::Status::IOError(name, reason);
}

class MemorySequential : public leveldb::SequentialFile {
 public:
  explicit MemorySequential(OverlayEnv::Content content) : content_(std::move(content)) {}
  leveldb::Status Read(size_t n, Slice* result, char* scratch) override {
    n = std::min(n, content_->size() - at_);
    std::memcpy(scratch, content_->data() + at_, n);
    *result = Slice(scratch, n);
    at_ += n;
    return leveldb::Status::OK();
  }
  leveldb::Status Skip(uint64_t n) override {
    at_ += std::min<uint64_t>(n, content_->size() - at_);
    return leveldb::Status::OK();
  }

 private:
  OverlayEnv::Content content_;
  size_t at_ = 0;
};

// LevelDB reads a table only after it has written and closed it.
class MemoryRandomAccess : public leveldb::RandomAccessFile {
 public:
  explicit MemoryRandomAccess(OverlayEnv::Content content) : content_(std::move(content)) {}
  leveldb::Status Read(uint64_t offset, size_t n, Slice* result, char*) const override {
    if (offset > content_->size()) return leveldb::Status::IOError("read past the end");
    *result = Slice(content_->data() + offset, std::min<size_t>(n, content_->size() - offset));
    return leveldb::Status::OK();
  }

 private:
  OverlayEnv::Content content_;
};

class MemoryWritable : public leveldb::WritableFile {
 public:
  explicit MemoryWritable(OverlayEnv::Content content) : content_(std::move(content)) {}
  leveldb::Status Append(const Slice& data) override {
    content_->append(data.data(), data.size());
    return leveldb::Status::OK();
  }
  leveldb::Status Close() override { return leveldb::Status::OK(); }
  leveldb::Status Flush() override { return leveldb::Status::OK(); }
  leveldb::Status Sync() override { return leveldb::Status::OK(); }

 private:
  OverlayEnv::Content content_;
};

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

leveldb::Status WriterEnv::NewSequentialFile(const std::string& name, leveldb::SequentialFile** f) {
  *f = nullptr;
  const leveldb::Status regular = CheckRegular(name, name);
  return regular.ok() ? target()->NewSequentialFile(name, f) : regular;
}

leveldb::Status WriterEnv::NewRandomAccessFile(const std::string& name,
                                               leveldb::RandomAccessFile** f) {
  return OpenTable(name, name, f);
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
  const bool manifest = name.find("/MANIFEST-") != std::string::npos;
  *file = std::make_unique<WatchedFile>(*file, *this, manifest).release();
  return opened;
}

void WriterEnv::ManifestWritten() {
  const std::lock_guard lock(mutex_);
  unnamed_.clear();
}

void WriterEnv::EndWriting() {
  if (fence_ && !fence_->Check().ok()) return;
  const std::lock_guard lock(mutex_);
  for (const std::string& name : unnamed_) static_cast<void>(target()->RemoveFile(name));
  unnamed_.clear();
  if (stopped_ || put_off_.empty() || FileShare::IsTaken(lock_)) return;
  for (const std::string& name : put_off_) static_cast<void>(target()->RemoveFile(name));
  put_off_.clear();
}

void WriterEnv::EndOpening(const std::string& path, bool ok) {
  const bool ours = !fence_ || fence_->Check().ok();
  const std::lock_guard lock(mutex_);
  opening_ = false;
  const std::vector<std::string> made = std::exchange(made_, {});
  if (ok || !ours) return;
  // The exchange of CURRENT may have been done although it was reported as a failure.
  std::string current;
  const leveldb::Status read =
      leveldb::ReadFileToString(this, path + std::string(kCurrentName), &current);
  const auto is_current = [&](const std::string& name) {
    return current == name.substr(path.size() + 1) + "\n";
  };
  if ((!read.ok() && !read.IsNotFound()) || std::any_of(made.begin(), made.end(), is_current))
    return;
  for (const std::string& name : made) static_cast<void>(target()->RemoveFile(name));
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
  const leveldb::Status renamed = Try([&] { return target()->RenameFile(from, to); });
  if (renamed.ok() && to.ends_with(kCurrentName)) {
    const std::lock_guard lock(mutex_);
    made_.clear();
  }
  return renamed;
}

leveldb::Status WriterEnv::RemoveFile(const std::string& name) {
  if (fence_) {
    // What another host's database may need stays.
    const Status ours = fence_->Check();
    if (!ours.ok()) return leveldb::Status::IOError(name, std::string(ours.message()));
  }
  if (!FileShare::IsTaken(lock_)) return target()->RemoveFile(name);
  const std::lock_guard lock(mutex_);
  put_off_.insert(name);
  return leveldb::Status::OK();
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
  *logger = std::make_unique<Silence>().release();
  return leveldb::Status::OK();
}

OverlayEnv::OverlayEnv(std::string path)
    : EnvWrapper(leveldb::Env::Default()),
      path_(std::move(path)),
      directory_(::open(path_.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC)) {}

OverlayEnv::~OverlayEnv() {
  if (directory_ >= 0) ::close(directory_);
}

std::string OverlayEnv::Real(const std::string& name) const {
  if (directory_ < 0 || !name.starts_with(path_)) return name;
  return "/proc/self/fd/" + std::to_string(directory_) + name.substr(path_.size());
}

void OverlayEnv::Seal() {
  std::vector<std::pair<void (*)(void*), void*>> scheduled;
  {
    const std::lock_guard lock(mutex_);
    sealed_ = true;
    scheduled.swap(scheduled_);
  }
  for (const auto& [function, argument] : scheduled) target()->Schedule(function, argument);
}

OverlayEnv::Content OverlayEnv::Find(const std::string& name) {
  const std::lock_guard lock(mutex_);
  const auto it = files_.find(name);
  return it == files_.end() ? nullptr : it->second;
}

bool OverlayEnv::Hidden(const std::string& name) {
  const std::lock_guard lock(mutex_);
  return removed_.contains(name);
}

leveldb::Status OverlayEnv::NewSequentialFile(const std::string& name,
                                              leveldb::SequentialFile** f) {
  *f = nullptr;
  if (Content content = Find(name)) {
    *f = std::make_unique<MemorySequential>(std::move(content)).release();
    return leveldb::Status::OK();
  }
  if (Hidden(name)) return leveldb::Status::NotFound(name);
  const leveldb::Status regular = CheckRegular(Real(name), name);
  return regular.ok() ? Told(target()->NewSequentialFile(Real(name), f), name) : regular;
}

leveldb::Status OverlayEnv::NewRandomAccessFile(const std::string& name,
                                                leveldb::RandomAccessFile** f) {
  *f = nullptr;
  if (Content content = Find(name)) {
    *f = std::make_unique<MemoryRandomAccess>(std::move(content)).release();
    return leveldb::Status::OK();
  }
  if (Hidden(name)) return leveldb::Status::NotFound(name);
  if (leveldb::Status regular = CheckRegular(Real(name), name); !regular.ok()) return regular;
  if (check_tables_) {
    if (const Status whole = CheckTableIndex(Real(name)); whole.code() == Code::kCorrupt) {
      return leveldb::Status::Corruption(name, std::string(whole.message()));
    }
  }
  return OpenTable(Real(name), name, f);
}

leveldb::Status OverlayEnv::NewWritableFile(const std::string& name, leveldb::WritableFile** f) {
  *f = nullptr;
  const std::lock_guard lock(mutex_);
  if (sealed_) return leveldb::Status::IOError(name, "this view cannot be written");
  auto content = std::make_shared<std::string>();
  files_[name] = content;
  removed_.erase(name);
  *f = std::make_unique<MemoryWritable>(std::move(content)).release();
  return leveldb::Status::OK();
}

// For a log or manifest that LevelDB goes on with: nobody reads what it would append.
leveldb::Status OverlayEnv::NewAppendableFile(const std::string&, leveldb::WritableFile** f) {
  *f = std::make_unique<MemoryWritable>(std::make_shared<std::string>()).release();
  return leveldb::Status::OK();
}

bool OverlayEnv::FileExists(const std::string& name) {
  return Find(name) != nullptr || (!Hidden(name) && target()->FileExists(Real(name)));
}

leveldb::Status OverlayEnv::GetChildren(const std::string& dir, std::vector<std::string>* names) {
  std::vector<std::string> on_disk;
  const leveldb::Status status = target()->GetChildren(Real(dir), &on_disk);
  const std::string prefix = dir + "/";
  const std::lock_guard lock(mutex_);
  std::set<std::string> all;
  for (const std::string& name : on_disk) {
    if (!removed_.contains(prefix + name)) all.insert(name);
  }
  for (const auto& [name, content] : files_) {
    if (name.starts_with(prefix)) all.insert(name.substr(prefix.size()));
  }
  names->assign(all.begin(), all.end());
  return all.empty() ? status : leveldb::Status::OK();
}

leveldb::Status OverlayEnv::RemoveFile(const std::string& name) {
  const std::lock_guard lock(mutex_);
  files_.erase(name);
  removed_.insert(name);
  return leveldb::Status::OK();
}

leveldb::Status OverlayEnv::GetFileSize(const std::string& name, uint64_t* size) {
  if (const Content content = Find(name)) {
    *size = content->size();
    return leveldb::Status::OK();
  }
  if (Hidden(name)) return leveldb::Status::NotFound(name);
  return Told(target()->GetFileSize(Real(name), size), name);
}

leveldb::Status OverlayEnv::RenameFile(const std::string& from, const std::string& to) {
  Content content = Find(from);
  if (!content) {
    if (Hidden(from)) return leveldb::Status::NotFound(from);
    content = std::make_shared<std::string>();
    leveldb::Status status = CheckRegular(Real(from), from);
    if (status.ok()) status = leveldb::ReadFileToString(target(), Real(from), content.get());
    if (!status.ok()) return status;
  }
  const std::lock_guard lock(mutex_);
  files_.erase(from);
  removed_.insert(from);
  removed_.erase(to);
  files_[to] = std::move(content);
  return leveldb::Status::OK();
}

leveldb::Status OverlayEnv::LockFile(const std::string&, leveldb::FileLock** lock) {
  *lock = std::make_unique<leveldb::FileLock>().release();
  return leveldb::Status::OK();
}

leveldb::Status OverlayEnv::UnlockFile(leveldb::FileLock* lock) {
  const std::unique_ptr<leveldb::FileLock> owned(lock);
  return leveldb::Status::OK();
}

void OverlayEnv::Schedule(void (*function)(void*), void* argument) {
  {
    const std::lock_guard lock(mutex_);
    if (!sealed_) {
      scheduled_.emplace_back(function, argument);
      return;
    }
  }
  target()->Schedule(function, argument);
}

leveldb::Status OverlayEnv::NewLogger(const std::string&, leveldb::Logger** logger) {
  *logger = std::make_unique<Silence>().release();
  return leveldb::Status::OK();
}

bool LacksCurrent(const std::string& path) {
  const std::vector<std::string> names = NamesIn(path);
  if (std::find(names.begin(), names.end(), "CURRENT") != names.end()) return false;
  // A database whose writer was killed while making it has none of these yet.
  return std::any_of(names.begin(), names.end(), [](const std::string& name) {
    return name.ends_with(".ldb") || name.ends_with(".sst") || name.ends_with(".log");
  });
}

}  // namespace sonde
