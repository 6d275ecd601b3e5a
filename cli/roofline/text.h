// What `sonde roofline` prints.
//
// Thread safety: functions without state.
#pragma once

#include <string>

#include "cli/command.h"
#include "insight/steps/step_roofline.h"

namespace sonde::cli {

std::string RooflineToText(const insight::StepRoofline& all, const Profile& profile,
                           const Environment& env);

}  // namespace sonde::cli
