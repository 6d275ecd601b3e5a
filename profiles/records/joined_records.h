// The joined blocks of a profile (series/block/joined.h): records of many nodes' blocks.
//
// Thread safety: none; the database must outlive it.
#pragma once

#include <leveldb/db.h>
#include <leveldb/write_batch.h>

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/status.h"
#include "series/block/block.h"
#include "series/block/joined.h"
#include "series/block/schema.h"

namespace sonde {

// One record, of which no more is decoded than is asked for.
class JoinedRecord {
 public:
  static Result<JoinedRecord> Read(std::string at, std::string bytes);
  JoinedRecord(JoinedRecord&&) = default;
  JoinedRecord& operator=(JoinedRecord&&) = default;

  const std::string& at() const { return at_; }
  size_t size() const { return bytes_->size(); }
  const BlockInfo& info() const { return joined_.info; }  // its times mean nothing
  const std::vector<JoinedEntry>& entries() const { return joined_.entries; }
  BlockInfo InfoOf(size_t entry) const;
  // Columns in ascending order, each with whatever.
  using ColumnList = std::vector<std::pair<size_t, size_t>>;
  // These columns of the entry's rows. Others are not decoded.
  Result<Block> Columns(size_t entry, const ColumnList& columns);
  // All of the entry's rows.
  Result<Block> Rows(size_t entry);
  // What Rows keeps of the record, bytes.
  size_t decoded_size() const { return joined_.info.rows * joined_.info.columns * sizeof(double); }

 private:
  JoinedRecord() = default;
  Status Decode();

  std::string at_;
  std::unique_ptr<const std::string> bytes_;  // stays where it is
  JoinedBlocks joined_;
  std::optional<Block> all_;
  std::optional<Block> some_;  // the columns that were asked for last
  std::vector<bool> wanted_;   // these
};

// As DecodeColumns takes it, for a block of so many columns.
std::vector<bool> WantedOf(const JoinedRecord::ColumnList& columns, size_t count);

// Calls `f` for each of a profile's, until it says that these are enough (false); `bad` hears of
// each that is damaged.
Status ForEachJoined(leveldb::DB& db, std::string_view profile,
                     const std::function<bool(JoinedRecord& record)>& f,
                     const std::function<void(const Status&)>& bad);

// The records that were read last: who asks for the entries of one record after the other reads and
// decodes it once. To decode it each time takes thirty times as long as to copy a node's rows.
class JoinedCache {
 public:
  static constexpr size_t kMostBytes = 64u << 20;  // of decoded values; one record in any case

  explicit JoinedCache(leveldb::DB& db) : db_(db) {}
  // That block of the record, decoded; `columns`: these alone, nullptr: all.
  Result<Block> Read(std::string_view at, size_t entry,
                     const JoinedRecord::ColumnList* columns = nullptr);
  // How often a record was read and decoded.
  size_t decoded() const { return decoded_; }

 private:
  Result<JoinedRecord*> Find(std::string_view at);

  leveldb::DB& db_;
  std::map<std::string, JoinedRecord, std::less<>> records_;
  std::deque<std::string> order_;  // the oldest first
  size_t bytes_ = 0;
  size_t decoded_ = 0;
};

// The schema of a profile's joined blocks.
Result<Schema::Ptr> ReadJoinedSchema(leveldb::DB& db, std::string_view profile, uint64_t id);

// Adds joined blocks to a batch, and their schema as `db` has it, which must: the profile has one
// of its own, as a release that does not know joined blocks may delete those that no other block
// needs. How many bytes these are.
Result<uint64_t> AddJoined(leveldb::DB& db, std::string_view profile, uint64_t schema_id,
                           bool with_schema, std::string_view bytes, leveldb::WriteBatch& batch);

// Of a record of the kind keys::kJoinedKind, whether it is what it should be.
Status CheckJoinedRecord(std::string_view key, std::string_view value);

}  // namespace sonde
