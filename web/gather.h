// Several queries, one response.
//
// Thread safety: from any thread.
#pragma once

#include <functional>
#include <vector>

#include "web/router.h"

namespace sonde::web {

using Answers = std::vector<Answer>;

// What puts several series of a metric together as its declaration does.
Aggregator AggregatorOf(Reduction reduction);

inline constexpr size_t kMaxGathered = 16u << 20;  // points of all answers: 256 MiB

// Starts all queries. When the last has answered, `make` is called, on a thread of the web server
// and never on the data source's, with the answers in the order of the specs; what it returns is
// the reply. If a query failed, that is the reply, and kLimit if all have more points together, of
// which none are kept then. `make` must not own the data source.
void GatherAndReply(const Context& context, const std::vector<QuerySpec>& specs, Reply reply,
                    std::function<Response(Answers)> make, size_t max_points = kMaxGathered);

}  // namespace sonde::web
