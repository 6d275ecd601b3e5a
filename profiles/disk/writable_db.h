// A LevelDB that is written, and stops at the first failure.
//
// After a failed write LevelDB 1.23 goes on in the same log. It counts the bytes that should be
// there, not the bytes that are, so records that it acknowledges from then on may be unreadable
// when the log is read: at the next open. After a failed sync the kernel may have dropped the data,
// and the next sync succeeds all the same. So this handle changes no file any more once a change of
// one has failed, in the foreground or in LevelDB's own thread: the files stay as the failure left
// them, LevelDB can recover them, and nothing more is acknowledged. Existing records can still be
// read. The owner closes the handle and opens another: LevelDB then writes the logs' records into a
// table and syncs it, also those that only the kernel's memory holds; the owner checks that all
// acknowledged ones are there.
//
// A batch that was made while a read failed lacks what could not be read: it is refused, and the
// handle goes on.
//
// Thread safety: as leveldb::DB; failure() and Stop from any thread; TakeWritten while nobody
// writes.
#pragma once

#include <leveldb/db.h>
#include <leveldb/write_batch.h>

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/status.h"
#include "profiles/disk/leveldb_env.h"

namespace sonde {

// The records that a database has acknowledged: for each key a hash of its value, or that it is
// deleted. Only for a comparison by the same process.
//
// A failed batch may be there all the same, if its sync failed and not its write. For its keys both
// values count: the one acknowledged before, and the one in the batch.
class WrittenRecords {
 public:
  void Add(const leveldb::WriteBatch& batch);
  // A batch that failed.
  void AddTried(const leveldb::WriteBatch& batch);
  // The records of a work that failed in the end.
  void AddTried(const WrittenRecords& tried);
  void AddPut(std::string_view key, std::string_view value);
  void AddDelete(std::string_view key);
  // Records written before these; where both have a key, these count.
  void AddOlder(WrittenRecords older);
  // Bytes of the keys and values that were added.
  uint64_t bytes() const { return bytes_; }
  bool empty() const { return records_.empty(); }
  // kCorrupt if a record is missing or different, or damage makes it unreadable; another failure
  // says nothing about the records.
  Status FindIn(leveldb::DB& db) const;

 private:
  using Value = std::optional<uint64_t>;  // a hash; nullopt: deleted
  struct Record {
    std::optional<Value> acknowledged;
    std::vector<Value> tried;  // since then
    bool Allows(const Value& value) const;
  };
  Record& Of(std::string_view key, size_t bytes);

  std::map<std::string, Record, std::less<>> records_;
  uint64_t bytes_ = 0;
};

class WritableDb : public leveldb::DB {
 public:
  // Uses `options`, but with `env` as the environment.
  static Result<std::unique_ptr<WritableDb>> Open(leveldb::Options options, const std::string& path,
                                                  std::unique_ptr<WriterEnv> env);
  ~WritableDb() override { static_cast<void>(Close()); }

  // Why this handle has stopped; ok if it has not.
  Status failure() const;
  // A change begins: what it writes was made by what is read from now on.
  void BeginChange() { reads_before_ = env_->reads().count(); }
  // Whether another host may have taken the database; looked at now, and it stays lost.
  Status CheckClaim();
  // Called by the owner who finds that a record it wrote is not there.
  void Stop(const Status& why);
  // Call it before the destructor, and then only TakeWritten. Gives the failure, also one that the
  // file system reports only when a file is closed.
  Status Close();
  // The acknowledged records that may be in logs alone: older ones were synced in tables.
  WrittenRecords TakeWritten();

  leveldb::Status Put(const leveldb::WriteOptions& options, const leveldb::Slice& key,
                      const leveldb::Slice& value) override;
  leveldb::Status Delete(const leveldb::WriteOptions& options, const leveldb::Slice& key) override;
  leveldb::Status Write(const leveldb::WriteOptions& options, leveldb::WriteBatch* batch) override;
  leveldb::Status Get(const leveldb::ReadOptions& options, const leveldb::Slice& key,
                      std::string* value) override;
  leveldb::Iterator* NewIterator(const leveldb::ReadOptions& options) override;
  const leveldb::Snapshot* GetSnapshot() override;
  void ReleaseSnapshot(const leveldb::Snapshot* snapshot) override;
  bool GetProperty(const leveldb::Slice& property, std::string* value) override;
  void GetApproximateSizes(const leveldb::Range* range, int n, uint64_t* sizes) override;
  // failure() says whether the compaction could be done.
  void CompactRange(const leveldb::Slice* begin, const leveldb::Slice* end) override;

 private:
  WritableDb(std::string path, uint64_t full_log, std::unique_ptr<WriterEnv> env)
      : path_(std::move(path)), full_log_(full_log), env_(std::move(env)) {}

  const std::string path_;
  const uint64_t full_log_;  // bytes: LevelDB begins another log with the batch after these
  std::unique_ptr<WriterEnv> env_;
  std::unique_ptr<leveldb::DB> db_;         // destroyed before its environment
  std::atomic<uint64_t> reads_before_ = 0;  // so many had failed when the change began
  std::mutex mutex_;                        // guards the written records
  WrittenRecords older_;
  WrittenRecords newer_;
  uint64_t largest_ = 0;  // bytes of the largest batch
};

}  // namespace sonde
