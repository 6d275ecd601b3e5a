#include "profiles/disk/writable_db.h"

#include <fmt/core.h>

#include <algorithm>
#include <functional>
#include <utility>

#include "profiles/disk/leveldb_read.h"

namespace sonde {
namespace {

uint64_t HashOf(std::string_view value) { return std::hash<std::string_view>()(value); }

// Calls `f` with each key of a batch and its value; no value: the key is deleted.
template <typename F>
void ForEach(const leveldb::WriteBatch& batch, const F& f) {
  struct Each : public leveldb::WriteBatch::Handler {
    explicit Each(const F& call) : f(call) {}
    void Put(const leveldb::Slice& key, const leveldb::Slice& value) override {
      f(View(key), View(value));
    }
    void Delete(const leveldb::Slice& key) override { f(View(key), std::nullopt); }
    const F& f;
  };
  Each each(f);
  static_cast<void>(batch.Iterate(&each));
}

}  // namespace

bool WrittenRecords::Record::Allows(const Value& value) const {
  // The value before that is not known here.
  if (!acknowledged) return true;
  return value == *acknowledged || std::find(tried.begin(), tried.end(), value) != tried.end();
}

WrittenRecords::Record& WrittenRecords::Of(std::string_view key, size_t bytes) {
  bytes_ += bytes;
  return records_[std::string(key)];
}

void WrittenRecords::Add(const leveldb::WriteBatch& batch) {
  ForEach(batch, [this](std::string_view key, std::optional<std::string_view> value) {
    value ? AddPut(key, *value) : AddDelete(key);
  });
}

void WrittenRecords::AddTried(const leveldb::WriteBatch& batch) {
  WrittenRecords tried;
  tried.Add(batch);
  AddTried(tried);
}

void WrittenRecords::AddTried(const WrittenRecords& tried) {
  for (const auto& [key, record] : tried.records_) {
    std::vector<Value>& values = Of(key, 0).tried;
    if (record.acknowledged) values.push_back(*record.acknowledged);
    values.insert(values.end(), record.tried.begin(), record.tried.end());
  }
  bytes_ += tried.bytes_;
}

void WrittenRecords::AddPut(std::string_view key, std::string_view value) {
  Of(key, key.size() + value.size()).acknowledged = HashOf(value);
}

void WrittenRecords::AddDelete(std::string_view key) { Of(key, key.size()).acknowledged = Value(); }

void WrittenRecords::AddOlder(WrittenRecords older) {
  bytes_ += older.bytes_;
  records_.merge(older.records_);
  // The keys that are in both.
  for (auto& [key, before] : older.records_) {
    Record& record = records_[key];
    if (record.acknowledged) continue;
    record.acknowledged = before.acknowledged;
    record.tried.insert(record.tried.end(), before.tried.begin(), before.tried.end());
  }
}

Status WrittenRecords::FindIn(leveldb::DB& db) const {
  const leveldb::ReadOptions options = CheckedScan();
  std::string value;
  uint64_t missing = 0;
  for (const auto& [key, record] : records_) {
    const leveldb::Status read = db.Get(options, key, &value);
    const bool damaged = read.IsCorruption();
    if (!read.ok() && !read.IsNotFound() && !damaged) {
      return FromLevelDb(read, "read back what was written");
    }
    const Value found = read.ok() ? Value(HashOf(value)) : std::nullopt;
    if (damaged || !record.Allows(found)) ++missing;
  }
  if (missing == 0) return {};
  return {Code::kCorrupt,
          fmt::format("{} of {} records that were written read back differently, or not at all",
                      missing, records_.size())};
}

Result<std::unique_ptr<WritableDb>> WritableDb::Open(leveldb::Options options,
                                                     const std::string& path,
                                                     std::unique_ptr<WriterEnv> env) {
  std::unique_ptr<WritableDb> db(new WritableDb(path, options.write_buffer_size, std::move(env)));
  options.env = db->env_.get();
  leveldb::DB* opened = nullptr;
  const leveldb::Status status = leveldb::DB::Open(options, path, &opened);
  db->db_.reset(opened);
  db->env_->EndOpening(status.ok());
  db->BeginChange();
  if (!status.ok()) return FromLevelDb(status, "open " + path);
  return db;
}

Status WritableDb::failure() const { return FromLevelDb(env_->failure(), "write to " + path_); }

Status WritableDb::CheckClaim() { return FromLevelDb(env_->CheckFence(), "write to " + path_); }

void WritableDb::Stop(const Status& why) {
  env_->Stop(leveldb::Status::IOError(leveldb::Slice(why.message().data(), why.message().size())));
}

Status WritableDb::Close() {
  db_.reset();
  env_->EndWriting();
  return failure();
}

WrittenRecords WritableDb::TakeWritten() {
  const std::lock_guard lock(mutex_);
  WrittenRecords written = std::exchange(newer_, {});
  written.AddOlder(std::exchange(older_, {}));
  return written;
}

leveldb::Status WritableDb::Put(const leveldb::WriteOptions& options, const leveldb::Slice& key,
                                const leveldb::Slice& value) {
  return DB::Put(options, key, value);
}

leveldb::Status WritableDb::Delete(const leveldb::WriteOptions& options,
                                   const leveldb::Slice& key) {
  return DB::Delete(options, key);
}

leveldb::Status WritableDb::Write(const leveldb::WriteOptions& options,
                                  leveldb::WriteBatch* batch) {
  leveldb::Status status = env_->failure();
  if (!status.ok()) return status;
  if (env_->reads().count() != reads_before_) return env_->reads().newest();
  status = db_->Write(options, batch);
  // Whoever takes the database from us after this look finds the batch.
  if (status.ok() && options.sync) status = env_->CheckFence();
  // A batch that LevelDB itself refuses leaves nothing behind, but LevelDB may go on refusing.
  if (!status.ok()) env_->Stop(status);
  if (batch == nullptr) return status;
  const std::lock_guard lock(mutex_);
  if (!status.ok()) {
    newer_.AddTried(*batch);
    return status;
  }
  newer_.Add(*batch);
  largest_ = std::max<uint64_t>(largest_, batch->ApproximateSize());
  // A full log becomes a table while the next one fills; each log is one batch longer.
  if (newer_.bytes() > 2 * (full_log_ + largest_)) older_ = std::exchange(newer_, {});
  return status;
}

leveldb::Status WritableDb::Get(const leveldb::ReadOptions& options, const leveldb::Slice& key,
                                std::string* value) {
  return db_->Get(options, key, value);
}

leveldb::Iterator* WritableDb::NewIterator(const leveldb::ReadOptions& options) {
  return db_->NewIterator(options);
}

const leveldb::Snapshot* WritableDb::GetSnapshot() { return db_->GetSnapshot(); }

void WritableDb::ReleaseSnapshot(const leveldb::Snapshot* snapshot) {
  db_->ReleaseSnapshot(snapshot);
}

bool WritableDb::GetProperty(const leveldb::Slice& property, std::string* value) {
  return db_->GetProperty(property, value);
}

void WritableDb::GetApproximateSizes(const leveldb::Range* range, int n, uint64_t* sizes) {
  db_->GetApproximateSizes(range, n, sizes);
}

void WritableDb::CompactRange(const leveldb::Slice* begin, const leveldb::Slice* end) {
  if (env_->failure().ok()) db_->CompactRange(begin, end);
}

}  // namespace sonde
