// What a profile has of the series that a query asks for.
//
// Thread safety: a function without state.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/status.h"
#include "profiles/archive/archive.h"
#include "series/query/query.h"

namespace sonde {

// Reads the points of `range` of the profile's series of the query's metric whose tags `wanted`
// accepts, as they are stored. Of thinned rows a query for the largest or the smallest gets the
// extremes.
Result<std::vector<SeriesData>> ReadAsked(const Archive& archive, const std::string& key,
                                          SeriesScope scope, const QuerySpec& spec,
                                          const std::function<bool(const Tags&)>& wanted,
                                          const TimeRange& range, Earlier earlier);

}  // namespace sonde
