// The records of db/ one by one: what each is, and whether it holds what its key says. What
// upkeep/verify.h and upkeep/repair.h are made of.
//
// Thread safety: functions without state.
#pragma once

#include <leveldb/db.h>

#include <cstdint>
#include <functional>
#include <string_view>

#include "core/status.h"

namespace sonde {

enum class RecordKind : unsigned char {
  kFormat,
  kBlock,
  kDescription,
  kProfile,
  kPart,
  kBlockCount,
  kSchema,
  kCard,     // of the index by time
  kTotals,   // of a user's profiles
  kIndexed,  // that the indexes are complete
  kOwed,     // that the room of a deleted profile is not given back yet; value: bytes
  kIndex,    // whatever is none of the others
};
struct Record {
  RecordKind kind = RecordKind::kIndex;
  std::string_view profile;  // whose it is; "": nobody's
};
Record ParseRecord(std::string_view key);

// What a record tells that others have to agree with.
struct RecordContent {
  uint64_t schema = 0;   // of a block: the schema's id; of a schema, its own
  uint64_t columns = 0;  // of a block: its columns; of a schema, its series
  uint64_t blocks = 0;   // of a block count
};
// Everything in it is decoded. kUnsupported: only another version of Sonde can tell.
Result<RecordContent> CheckRecord(std::string_view key, std::string_view value);

// Calls `f` for every record from `prefix` on that starts with it and that LevelDB can read; those
// that it cannot are left out, and the first reason is what is given back.
Status ForEachRecord(leveldb::DB& db, std::string_view prefix,
                     const std::function<void(std::string_view key, std::string_view value)>& f);

}  // namespace sonde
