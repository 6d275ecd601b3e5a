// Several queries, one response.
//
// Thread safety: from any thread.
#pragma once

#include <functional>
#include <vector>

#include "web/router.h"

namespace sonde::web {

using Answers = std::vector<Answer>;

// Starts all queries. When the last has answered, `make` is called, on a thread of the web server
// and never on the data source's, with the answers in the order of the specs; what it returns is
// the reply. If a query failed, that is the reply. `make` must not own the data source.
void GatherAndReply(const Context& context, const std::vector<QuerySpec>& specs, Reply reply,
                    std::function<Response(Answers)> make);

}  // namespace sonde::web
