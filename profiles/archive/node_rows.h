// The totals of each node of a step, read from its archived or running profile.
//
// Thread safety: a function without state.
#pragma once

#include <string>
#include <vector>

#include "profiles/archive/archive.h"
#include "profiles/model/summary.h"

namespace sonde {

// In the order of the description's nodes.
Result<std::vector<NodeRow>> ReadNodeRows(const Archive& archive, const std::string& key,
                                          const JobDescription& job);

}  // namespace sonde
