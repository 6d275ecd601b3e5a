// A stored profile, record by record, as it goes into a file.
#include <leveldb/db.h>

#include <memory>
#include <set>

#include "profiles/disk/leveldb_env.h"
#include "profiles/disk/leveldb_read.h"
#include "profiles/reading/profile_reader.h"
#include "profiles/records/keys.h"
#include "profiles/records/profile_file.h"
#include "profiles/records/records.h"

namespace sonde {

Status ProfileReader::ForEachRecord(const std::function<Status(const FileRecord&)>& f,
                                    ReadTally& tally) const {
  const leveldb::ReadOptions options = CheckedScan();
  SONDE_RETURN_IF_ERROR(f({FileRecordKind::kKey, "", {}, key_}));
  for (const auto& [kind, at] : {std::pair{FileRecordKind::kDescription, keys::Description(key_)},
                                 std::pair{FileRecordKind::kProfile, keys::Profile(key_)}}) {
    FileRecord record{kind, "", {}, ""};
    SONDE_RETURN_IF_ERROR(FromLevelDb(db_.Get(options, at, &record.bytes), "read profile " + key_));
    SONDE_RETURN_IF_ERROR(f(record));
  }
  const std::string prefix = keys::Parts(key_);
  const std::unique_ptr<leveldb::Iterator> it(db_.NewIterator(options));
  for (it->Seek(prefix); it->Valid() && it->key().starts_with(prefix); it->Next()) {
    const std::string part = it->key().ToString().substr(prefix.size());
    SONDE_RETURN_IF_ERROR(f({FileRecordKind::kPart, part, {}, it->value().ToString()}));
  }
  SONDE_RETURN_IF_ERROR(FromLevelDb(it->status(), "read the parts of " + key_));
  const auto kinds = OtherKinds(db_);
  if (!kinds.ok()) return kinds.status();
  Status status;
  SONDE_RETURN_IF_ERROR(
      ForEachOther(db_, *kinds, key_, [&](std::string_view at, std::string_view value) {
        const auto other = keys::ParseOther(at);
        if (!status.ok() || !other) return;
        FileRecord record{FileRecordKind::kOther, std::string(other->rest), {}, std::string(value)};
        record.other = other->kind;
        status = f(record);
      }));
  SONDE_RETURN_IF_ERROR(status);
  std::set<uint64_t> schemas;
  SONDE_RETURN_IF_ERROR(ForEach(std::nullopt, tally, [&](const Stored& stored) {
    if (stored.joined != nullptr) return true;  // their records have gone as others
    if (schemas.insert(stored.info.schema_id).second) {
      status = f({FileRecordKind::kSchema, "", {}, stored.schema->encoded()});
    }
    if (status.ok()) {
      status = f({FileRecordKind::kBlock, "", stored.key, std::string(stored.bytes)});
    }
    return status.ok();
  }));
  return status.ok() ? tally.unsupported : status;
}

}  // namespace sonde
