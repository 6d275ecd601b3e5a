#include "profiles/records/joined_records.h"

#include <memory>

#include "core/bytes.h"
#include "profiles/disk/leveldb_env.h"
#include "profiles/disk/leveldb_read.h"
#include "profiles/records/keys.h"
#include "profiles/records/stored_bytes.h"

namespace sonde {

Result<JoinedRecord> JoinedRecord::Read(std::string at, std::string bytes) {
  JoinedRecord record;
  record.at_ = std::move(at);
  record.bytes_ = std::make_unique<const std::string>(std::move(bytes));
  auto joined = ReadJoined(*record.bytes_);
  if (!joined.ok()) return joined.status();
  record.joined_ = *std::move(joined);
  return record;
}

BlockInfo JoinedRecord::InfoOf(size_t entry) const {
  BlockInfo info = joined_.info;
  const std::vector<Nanos>& times = joined_.entries[entry].times;
  info.rows = times.size();
  info.first = times.front();
  info.last = times.back();
  return info;
}

Status JoinedRecord::Decode() {
  if (all_) return {};
  auto all = DecodeJoined(joined_);
  if (!all.ok()) return all.status();
  all_ = *std::move(all);
  return {};
}

// A reader asks for the same columns of one entry after the other.
Result<Block> JoinedRecord::Columns(size_t entry, const ColumnList& columns) {
  const size_t count = joined_.info.columns;
  if (std::ranges::any_of(columns, [&](const auto& one) { return one.first >= count; })) {
    return Status(Code::kCorrupt, "joined blocks have fewer columns");
  }
  std::vector<bool> wanted = WantedOf(columns, count);
  if (!some_ || wanted != wanted_) {
    auto some = DecodeColumns(joined_.block, wanted);
    if (!some.ok()) return some.status();
    some_ = *std::move(some);
    wanted_ = std::move(wanted);
  }
  return RowsOfEntry(joined_, *some_, entry);
}

Result<Block> JoinedRecord::Rows(size_t entry) {
  SONDE_RETURN_IF_ERROR(Decode());
  return RowsOfEntry(joined_, *all_, entry);
}

std::vector<bool> WantedOf(const JoinedRecord::ColumnList& columns, size_t count) {
  std::vector<bool> wanted(count);
  for (const auto& [column, what] : columns) wanted[column] = true;
  return wanted;
}

Status ForEachJoined(leveldb::DB& db, std::string_view profile,
                     const std::function<bool(JoinedRecord& record)>& f,
                     const std::function<void(const Status&)>& bad) {
  const std::unique_ptr<leveldb::Iterator> it(db.NewIterator(CheckedScan()));
  const std::string prefix = keys::Joined(profile);
  for (it->Seek(prefix); it->Valid() && it->key().starts_with(prefix); it->Next()) {
    auto record = JoinedRecord::Read(it->key().ToString(), it->value().ToString());
    if (!record.ok()) {
      bad(record.status());
    } else if (!f(*record)) {
      break;
    }
  }
  const Status status = FromLevelDb(it->status(), "read joined blocks");
  if (status.code() != Code::kCorrupt) return status;
  bad(status);
  return {};
}

Result<JoinedRecord*> JoinedCache::Find(std::string_view at) {
  if (const auto found = records_.find(at); found != records_.end()) return &found->second;
  std::string bytes;
  const leveldb::Status read = db_.Get(CheckedRead(), AsSlice(at), &bytes);
  if (!read.ok()) return FromLevelDb(read, "read joined blocks");
  auto record = JoinedRecord::Read(std::string(at), std::move(bytes));
  if (!record.ok()) return record.status();
  ++decoded_;
  bytes_ += record->decoded_size();
  while (bytes_ > kMostBytes && !order_.empty()) {
    const auto oldest = records_.find(order_.front());
    bytes_ -= oldest->second.decoded_size();
    records_.erase(oldest);
    order_.pop_front();
  }
  order_.emplace_back(at);
  return &records_.emplace(at, *std::move(record)).first->second;
}

Result<Block> JoinedCache::Read(std::string_view at, size_t entry,
                                const JoinedRecord::ColumnList* columns) {
  const auto record = Find(at);
  if (!record.ok()) return record.status();
  if (entry >= (*record)->entries().size()) {
    return Status(Code::kCorrupt, "joined blocks are fewer");
  }
  return columns == nullptr ? (*record)->Rows(entry) : (*record)->Columns(entry, *columns);
}

Result<Schema::Ptr> ReadJoinedSchema(leveldb::DB& db, std::string_view profile, uint64_t id) {
  std::string bytes;
  const leveldb::Status read = db.Get(CheckedRead(), keys::JoinedSchema(profile, id), &bytes);
  if (!read.ok()) return FromLevelDb(read, "read a schema of joined blocks");
  auto schema = Schema::Decode(bytes);
  if (schema.ok() && (*schema)->id() != id) return Status(Code::kCorrupt, "wrong schema");
  return schema;
}

Result<uint64_t> AddJoined(leveldb::DB& db, std::string_view profile, uint64_t schema_id,
                           bool with_schema, std::string_view bytes, leveldb::WriteBatch& batch) {
  uint64_t added = bytes.size();
  if (with_schema) {
    std::string schema;
    const leveldb::Status read = db.Get(CheckedRead(), keys::Schema(schema_id), &schema);
    if (!read.ok()) return FromLevelDb(read, "read the schema of joined blocks");
    batch.Put(keys::JoinedSchema(profile, schema_id), schema);
    added += BytesInDb(schema);
  }
  batch.Put(keys::Joined(profile, bytes), AsSlice(bytes));
  return added;
}

Status CheckJoinedRecord(std::string_view key, std::string_view value) {
  const auto other = keys::ParseOther(key);
  if (!other || other->rest.empty())
    return {Code::kCorrupt, "a record of joined blocks has no name"};
  if (other->rest[0] == 's') {
    const auto schema = Schema::Decode(value);
    if (!schema.ok()) return schema.status();
    if (keys::JoinedSchema(other->profile, (*schema)->id()) == key) return {};
    return {Code::kCorrupt, "a schema of joined blocks has another's name"};
  }
  const auto joined = ReadJoined(value);
  if (!joined.ok()) return joined.status();
  if (keys::Joined(other->profile, value) != key) {
    return {Code::kCorrupt, "joined blocks have others' name"};
  }
  return DecodeJoined(*joined).status();
}

}  // namespace sonde
