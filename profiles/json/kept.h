// Writes what JsonFields::Keep has kept.
//
// Thread safety: functions without state.
#pragma once

#include <boost/json/value.hpp>
#include <string_view>

#include "core/text/kept_members.h"
#include "profiles/json/writer.h"

namespace sonde {

// A parsed value as JSON: what it was, but for blanks, the order of equal names and the digits of
// numbers that are no 64-bit integers.
void WriteJson(JsonWriter& w, const boost::json::value& value);

// The members kept of the object that is being written; `within`: of which object of the value.
void WriteKept(JsonWriter& w, const KeptMembers& kept, std::string_view within = {});

// A member with a word of a few: `word`, or what a later version wrote if that is not `known`.
void WriteWord(JsonWriter& w, std::string_view name, std::string_view word, bool known,
               const KeptMembers& kept);

}  // namespace sonde
