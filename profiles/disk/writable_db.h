// A LevelDB that is written, and stops at the first failure.
//
// After a write that failed LevelDB 1.23 goes on in the same log. It counts the bytes that were to
// be there, not those that are, so that what it acknowledges from then on may be unreadable when
// the log is read: at the next open. After a sync that failed the kernel may have dropped what was
// to be written, and the next sync succeeds all the same. So this handle changes no file any more
// once a change of one has failed, in the foreground or in LevelDB's own thread: what is on the
// disk stays as the failure left it, which is what LevelDB can recover, and nothing more is
// acknowledged. What was can still be read. The owner closes the handle and opens another: LevelDB
// writes then what the logs hold into a table and syncs that, also what the kernel has only in
// memory; then the owner checks that everything acknowledged is there.
//
// Thread safety: as leveldb::DB; failure() and Stop from any thread; TakeWritten while nobody
// writes.
#pragma once

#include <leveldb/db.h>
#include <leveldb/write_batch.h>

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

// What a database has acknowledged: of each key what it has, by a hash of it, or that it is
// deleted. Only for a comparison by the same process.
//
// A batch that failed may be there all the same, for its sync failed and not its write. Of its keys
// both counts: what was acknowledged before, and what the batch has.
class WrittenRecords {
 public:
  void Add(const leveldb::WriteBatch& batch);
  // One that failed.
  void AddTried(const leveldb::WriteBatch& batch);
  // What was written for something that failed in the end.
  void AddTried(const WrittenRecords& tried);
  void AddPut(std::string_view key, std::string_view value);
  void AddDelete(std::string_view key);
  // What was there before these; where both have a key, these count.
  void AddOlder(WrittenRecords older);
  // Bytes of the keys and values that were added.
  uint64_t bytes() const { return bytes_; }
  bool empty() const { return records_.empty(); }
  // kCorrupt if one is missing or different, or cannot be read for damage; another failure says
  // nothing of the records.
  Status FindIn(leveldb::DB& db) const;

 private:
  using Value = std::optional<uint64_t>;  // a hash; nullopt: deleted
  struct Record {
    std::optional<Value> acknowledged;
    std::vector<Value> tried;  // since
    bool Allows(const Value& value) const;
  };
  Record& Of(std::string_view key, size_t bytes);

  std::map<std::string, Record, std::less<>> records_;
  uint64_t bytes_ = 0;
};

class WritableDb : public leveldb::DB {
 public:
  // Of the options the environment is `env`.
  static Result<std::unique_ptr<WritableDb>> Open(leveldb::Options options, const std::string& path,
                                                  std::unique_ptr<WriterEnv> env);
  ~WritableDb() override { static_cast<void>(Close()); }

  // Why it has stopped; ok if it has not.
  Status failure() const;
  // By who has found that what it wrote is not there.
  void Stop(const Status& why);
  // Before its end, and then nothing else but TakeWritten: the failure, also one that the file
  // system tells only when a file is closed.
  Status Close();
  // What was acknowledged and may be in logs alone: what is older was synced in tables.
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
  // failure() says whether it could be done.
  void CompactRange(const leveldb::Slice* begin, const leveldb::Slice* end) override;

 private:
  WritableDb(std::string path, uint64_t full_log, std::unique_ptr<WriterEnv> env)
      : path_(std::move(path)), full_log_(full_log), env_(std::move(env)) {}

  const std::string path_;
  const uint64_t full_log_;  // bytes: LevelDB begins another with the batch behind that
  std::unique_ptr<WriterEnv> env_;
  std::unique_ptr<leveldb::DB> db_;  // goes before its environment
  std::mutex mutex_;                 // of what was written
  WrittenRecords older_;
  WrittenRecords newer_;
  uint64_t largest_ = 0;  // bytes of a batch
};

}  // namespace sonde
