// Into which pieces the time of a finished step is cut, so that the points that are read of one
// piece fit into memory.
//
// The number of pieces follows from what the profile has stored and not from how many nodes the
// step had: a profile takes as much room of many nodes as of few, as nodes leave out rows
// (docs/transport.md#blocks), and each piece that is read costs a look at every block that reaches
// into it.
//
// Thread safety: functions without state.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "core/metric.h"
#include "core/status.h"
#include "core/time.h"
#include "insight/steps/tick_grid.h"
#include "profiles/archive/archive.h"

namespace sonde::insight {

// When each piece begins, the first one at 0. A piece has about `most` points at most, or is a tick
// long. `is_node` and `is_series` say what is read: nodes, and series as blocks have them, without
// the tag host. Looks at the blocks' headers, and into one block of each schema.
Result<std::vector<Nanos>> FindPieces(const Archive& archive, const std::string& key,
                                      const TickGrid& grid, size_t most,
                                      const std::function<bool(uint32_t node)>& is_node,
                                      const std::function<bool(const Series&)>& is_series);

}  // namespace sonde::insight
