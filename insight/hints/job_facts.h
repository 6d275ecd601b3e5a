// Facts of the whole job of a step: what it asked for is the job's, and another step of it may need
// it. step_facts.h says when they are known.
//
// Thread safety: a function without state.
#pragma once

#include "core/status.h"
#include "core/time.h"
#include "insight/hints/facts.h"
#include "profiles/archive/archive.h"
#include "profiles/model/profile.h"

namespace sonde::insight {

Status AddJobFacts(const Archive& archive, const Profile& profile, Nanos now, Facts& facts);

}  // namespace sonde::insight
