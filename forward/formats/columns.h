// Turns the columns of a stored schema into lines for destinations.
//
// Thread safety: functions without state.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/job.h"
#include "forward/formats/destination.h"
#include "forward/formats/line.h"
#include "profiles/archive/archive.h"
#include "series/block/schema.h"

namespace sonde::forward {

// Bytes written to a destination at a time.
inline constexpr size_t kPiece = size_t{1} << 20;

struct Column {
  Series series;
  std::string suffix;  // behind the metric's name
};

// What is to be read for the destination, which outlives it, as does the job: the hosts and metrics
// that it wants, until its end.
RowsWanted RowsFor(const JobDescription& job, const Destination& destination);

// For rows of a node's group one entry per column; for reduced rows (kReducedNode) one per entry of
// StepNumbers::NumbersOf. nullopt: `destination` does not want it.
std::vector<std::optional<Column>> ColumnsOf(const JobDescription& job, uint32_t node,
                                             std::string_view group, const Schema& schema,
                                             const Destination& destination);
// The same as lines; nullptr: not wanted.
std::vector<std::unique_ptr<Line>> LinesOf(const JobDescription& job, uint32_t node,
                                           std::string_view group, const Schema& schema,
                                           const Destination& destination);

}  // namespace sonde::forward
