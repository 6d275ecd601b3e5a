// Runs several queries for one answer.
//
// Thread safety: from any thread.
#pragma once

#include <vector>

#include "core/task.h"
#include "web/route/route.h"

namespace sonde::web {

using Answers = std::vector<Answer>;

// The function that merges several series of a metric, as its declaration says.
Aggregator AggregatorOf(Reduction reduction);

inline constexpr size_t kMaxGathered = 16u << 20;  // points of all answers: 256 MiB

// Starts all queries and gives their answers in the order of the specs. If a query failed, the
// result is that failure; kLimit if all answers have more points together; then none is kept.
Task<Result<Answers>> Gather(const Context& context, std::vector<QuerySpec> specs,
                             size_t max_points = kMaxGathered);

}  // namespace sonde::web
