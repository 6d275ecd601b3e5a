#include "profiles/disk/read_failures.h"

#include <cerrno>
#include <cstring>
#include <memory>

namespace sonde {
namespace {

class HeardSequential : public leveldb::SequentialFile {
 public:
  HeardSequential(leveldb::SequentialFile* file, ReadFailures& failures)
      : file_(file), failures_(failures) {}
  leveldb::Status Read(size_t n, leveldb::Slice* result, char* scratch) override {
    return failures_.Hear(file_->Read(n, result, scratch));
  }
  leveldb::Status Skip(uint64_t n) override { return failures_.Hear(file_->Skip(n)); }

 private:
  const std::unique_ptr<leveldb::SequentialFile> file_;
  ReadFailures& failures_;
};

class HeardRandomAccess : public leveldb::RandomAccessFile {
 public:
  HeardRandomAccess(leveldb::RandomAccessFile* file, ReadFailures& failures)
      : file_(file), failures_(failures) {}
  leveldb::Status Read(uint64_t offset, size_t n, leveldb::Slice* result,
                       char* scratch) const override {
    return failures_.Hear(file_->Read(offset, n, result, scratch));
  }

 private:
  const std::unique_ptr<leveldb::RandomAccessFile> file_;
  ReadFailures& failures_;
};

}  // namespace

leveldb::Status ReadFailures::Hear(leveldb::Status status) {
  if (!status.IsIOError() || status.ToString().ends_with(std::strerror(ENOENT))) return status;
  const std::lock_guard lock(mutex_);
  newest_ = status;
  ++count_;
  return status;
}

leveldb::Status ReadFailures::newest() const {
  const std::lock_guard lock(mutex_);
  return newest_;
}

leveldb::SequentialFile* ReadFailures::Heard(leveldb::SequentialFile* file) {
  return std::make_unique<HeardSequential>(file, *this).release();
}

leveldb::RandomAccessFile* ReadFailures::Heard(leveldb::RandomAccessFile* file) {
  return std::make_unique<HeardRandomAccess>(file, *this).release();
}

}  // namespace sonde
