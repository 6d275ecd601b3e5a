// Series and owners as members of JSON objects, both in footprints and in distributions.
//
// Thread safety: functions without state.
#pragma once

#include <string>
#include <string_view>

#include "core/job.h"
#include "core/metric.h"
#include "core/text/kept_members.h"
#include "profiles/json/fields.h"
#include "profiles/json/writer.h"
#include "series/store/reduced.h"

namespace sonde {

// metric, tags, unit, help, type, level, reduction. `kept`: of the object that they are members of.
void WriteSeriesFields(JsonWriter& w, const Series& series, const KeptMembers& kept);
void ReadSeriesFields(JsonFields& fields, Series& series, KeptMembers& kept);

// The member `key`, {"node", "host", "rank"}; an absent owner has none of them.
void WriteOwner(JsonWriter& w, std::string_view key, const Owner& owner, const JobDescription& job,
                const KeptMembers& kept);
// Nobody if it is absent.
Owner ReadOwner(JsonFields& around, std::string_view key, std::string& error, KeptMembers& kept);

}  // namespace sonde
