// Moments as JSON: as a part of a profile and, while the step runs, on their own.
//
// Thread safety: functions without state.
#pragma once

#include <boost/json/value.hpp>
#include <string>
#include <string_view>

#include "core/job.h"
#include "profiles/json/writer.h"
#include "profiles/model/moments.h"

namespace sonde {

// `job` has the nodes' names. docs/archive.md describes the form.
void WriteMoments(JsonWriter& w, const StepMoments& moments, const JobDescription& job);
// Puts into `error` what is wrong.
StepMoments ReadMoments(const boost::json::value& value, std::string& error);

}  // namespace sonde
