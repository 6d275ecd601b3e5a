// The hints of a finished step in an archive, with the facts that they are made from.
//
// Thread safety: a function without state.
#pragma once

#include <string>
#include <vector>

#include "core/status.h"
#include "core/time.h"
#include "insight/hints/facts.h"
#include "insight/hints/hints.h"
#include "profiles/archive/archive.h"
#include "profiles/model/profile.h"
#include "profiles/model/summary.h"

namespace sonde::insight {

struct StepHints {
  Facts facts;
  std::vector<Hint> hints;
};
// `site_rules`: the directory of the site's rules; "": there is none. `nodes`: the rows of the
// profile's nodes, which the second one reads.
Result<StepHints> HintsOfStep(const Archive& archive, const std::string& key,
                              const Profile& profile, const std::vector<NodeRow>& nodes,
                              const std::string& site_rules, Nanos now);
Result<StepHints> HintsOfStep(const Archive& archive, const std::string& key,
                              const Profile& profile, const std::string& site_rules, Nanos now);

std::string HintsToJson(const StepHints& all, const Profile& profile);

}  // namespace sonde::insight
