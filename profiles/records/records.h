// The records of db/ one by one: the kind of each record, and whether its value is as its key says.
// upkeep/verify.h and upkeep/repair.h are built on these.
//
// Thread safety: functions without state.
#pragma once

#include <leveldb/db.h>

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "core/job.h"
#include "core/status.h"
#include "profiles/model/profile.h"

namespace sonde {

enum class RecordKind : unsigned char {
  kFormat,
  kBlock,
  kDescription,
  kProfile,
  kPart,
  kBlockCount,
  kSchema,
  kMoments,  // of a live step
  kOther,    // of a later version of Sonde, of a profile or of none
  kCard,     // of the index by time
  kTotals,   // of a user's profiles
  kIndexed,  // that the indexes are complete
  kOwed,     // says that a deleted profile's room is not given back yet; value: bytes
  kIndex,    // all other records
};
struct Record {
  RecordKind kind = RecordKind::kIndex;
  std::string_view profile;  // the profile it belongs to; "": none
};
Record ParseRecord(std::string_view key);

// The parts of a record with which other records have to agree.
struct RecordContent {
  uint64_t schema = 0;   // of a block: the schema's id; of a schema, its own
  uint64_t columns = 0;  // of a block: its columns; of a schema, its series
  uint64_t blocks = 0;   // of a block count
};
// Decodes everything in the record. kUnsupported: only another version of Sonde can check it.
Result<RecordContent> CheckRecord(std::string_view key, std::string_view value);

// kNotFound: there is no such record.
Result<JobDescription> ReadDescription(leveldb::DB& db, std::string_view profile);
Result<Profile> ReadProfile(leveldb::DB& db, std::string_view profile);

// The kinds of records of later versions that `db` has, in order. It costs a few seeks.
Result<std::string> OtherKinds(leveldb::DB& db);
// Calls `f` for every record of these kinds that belongs to the profile.
Status ForEachOther(leveldb::DB& db, std::string_view kinds, std::string_view profile,
                    const std::function<void(std::string_view key, std::string_view value)>& f);

// The keys of all profiles of which LevelDB can read any record but blocks and indexes, sorted. It
// reads all of these, for an archive that is damaged.
std::vector<std::string> DescribedProfiles(leveldb::DB& db);

// Calls `f` for every record that starts with `prefix` and that LevelDB can read; leaves out the
// others and returns the first reason for that.
Status ForEachRecord(leveldb::DB& db, std::string_view prefix,
                     const std::function<void(std::string_view key, std::string_view value)>& f);

}  // namespace sonde
