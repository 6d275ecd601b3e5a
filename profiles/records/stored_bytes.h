// How much room a profile takes in the archive: its blocks, and its schemas, records and index
// entries as LevelDB compresses them in db/. This is the profile's stored_bytes, which reports,
// lists and endpoints show, and by which old profiles are deleted when an archive grows too large.
//
// A schema that several profiles have counts with each of them: db/ writes it with each, and drops
// the copies when it merges its files.
//
// Thread safety: functions without state.
#pragma once

#include <cstdint>
#include <string_view>

#include "profiles/model/profile.h"

namespace sonde {

// Bytes that db/ has for a value: compressed, where that saves enough.
uint64_t BytesInDb(std::string_view value);

// `content`: bytes of the profile's blocks and, in db/, of its schemas. `parts`: how many it was
// made of; each has a record of its own.
double StoredBytes(uint64_t content, const Profile& profile, size_t parts = 1);

}  // namespace sonde
