// What the head answers to a process of the step, as bytes: the bodies of libclient/ask/layout.h.
//
// Thread safety: functions without state.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/metric.h"
#include "core/status.h"
#include "web/source/step_series.h"

namespace sonde::head {

// kAnswer and kPoints. `late`: a part came after its tick.
std::string EncodeAnswer(const web::Answer& answer, bool late);
// kListing.
std::string EncodeListing(const std::vector<Series>& series);
// kFailed.
std::string EncodeFailure(const Status& why);

}  // namespace sonde::head
