#include "profiles/disk/overlay_env.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "profiles/disk/archive_dir.h"
#include "profiles/disk/leveldb_env.h"
#include "profiles/disk/leveldb_log.h"

namespace sonde {
namespace {

using leveldb::Slice;

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
  if (leveldb::Status regular = CheckRegular(Real(name), name); !regular.ok()) return regular;
  leveldb::Status opened = reads_.Hear(Told(target()->NewSequentialFile(Real(name), f), name));
  if (opened.ok()) *f = reads_.Heard(*f);
  return opened;
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
  leveldb::Status opened = reads_.Hear(OpenTable(Real(name), name, f));
  if (opened.ok()) *f = reads_.Heard(*f);
  return opened;
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
  if (Find(name) != nullptr) return true;
  if (Hidden(name)) return false;
  const auto there = Exists(Real(name));
  if (there.ok()) return *there;
  // LevelDB then finds out when it opens the file.
  static_cast<void>(reads_.Hear(leveldb::Status::IOError(std::string(there.status().message()))));
  return true;
}

leveldb::Status OverlayEnv::GetChildren(const std::string& dir, std::vector<std::string>* names) {
  std::vector<std::string> on_disk;
  const leveldb::Status status = reads_.Hear(target()->GetChildren(Real(dir), &on_disk));
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
  return reads_.Hear(Told(target()->GetFileSize(Real(name), size), name));
}

leveldb::Status OverlayEnv::RenameFile(const std::string& from, const std::string& to) {
  Content content = Find(from);
  if (!content) {
    if (Hidden(from)) return leveldb::Status::NotFound(from);
    content = std::make_shared<std::string>();
    leveldb::Status status = CheckRegular(Real(from), from);
    if (status.ok()) {
      status = reads_.Hear(leveldb::ReadFileToString(target(), Real(from), content.get()));
    }
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
  *logger = NewNullLogger();
  return leveldb::Status::OK();
}

}  // namespace sonde
