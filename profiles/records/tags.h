// Changes the tags of a profile in db/.
//
// Thread safety: functions without state; the caller holds the archive's lock.
#pragma once

#include <leveldb/db.h>

#include <string>
#include <string_view>
#include <vector>

#include "core/job.h"
#include "core/status.h"

namespace sonde {

// The changes to a profile's tags.
struct TagChange {
  UserTags set;
  std::vector<std::string> remove;
};

// Gives the tags that the profile has then. kNotFound; kInvalid for a wrong tag; kLimit.
Result<UserTags> ChangeTags(leveldb::DB& db, const std::string& key, const TagChange& change);

// As they are sent to the archive's keeper: "a=1,b=2" and "c,d", between tabs.
std::string TagChangeToText(const TagChange& change);
Result<TagChange> TagChangeFromText(std::string_view text);

}  // namespace sonde
