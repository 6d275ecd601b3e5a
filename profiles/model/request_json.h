// What the job asked for, and how its tasks ended, in the JSON of its description.
//
// Thread safety: functions without state.
#pragma once

#include <string>

#include "core/job.h"
#include "profiles/json/fields.h"
#include "profiles/json/writer.h"

namespace sonde {

// Members of the description's object; what is not known has none.
void WriteExits(JsonWriter& w, const JobDescription& job);
void WriteRequest(JsonWriter& w, const JobDescription& job);

void ReadExits(JsonFields& fields, std::string& error, JobDescription& job);
void ReadRequest(JsonFields& fields, std::string& error, JobDescription& job);

}  // namespace sonde
