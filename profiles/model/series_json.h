// Series and owners as members of JSON objects, both in footprints and in distributions.
//
// Thread safety: functions without state.
#pragma once

#include <boost/json/value.hpp>
#include <string>
#include <string_view>

#include "core/job.h"
#include "core/metric.h"
#include "profiles/json/fields.h"
#include "profiles/json/writer.h"
#include "series/store/reduced.h"

namespace sonde {

// metric, tags, unit, help, type, level, reduction.
void WriteSeriesFields(JsonWriter& w, const Series& series);
void ReadSeriesFields(JsonFields& fields, Series& series);

// {"node", "host", "rank"}; an absent owner has none of them.
void WriteOwner(JsonWriter& w, std::string_view key, const Owner& owner, const JobDescription& job);
// nullptr: no owner.
Owner ReadOwner(const boost::json::value* value, std::string& error);

}  // namespace sonde
