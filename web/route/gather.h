// Several queries, one answer.
//
// Thread safety: from any thread.
#pragma once

#include <vector>

#include "core/task.h"
#include "web/route/route.h"

namespace sonde::web {

using Answers = std::vector<Answer>;

// What puts several series of a metric together as its declaration does.
Aggregator AggregatorOf(Reduction reduction);

inline constexpr size_t kMaxGathered = 16u << 20;  // points of all answers: 256 MiB

// Starts all queries and gives their answers in the order of the specs. If a query failed, that is
// the result; kLimit if all have more points together, of which none are kept then.
Task<Result<Answers>> Gather(const Context& context, std::vector<QuerySpec> specs,
                             size_t max_points = kMaxGathered);

}  // namespace sonde::web
