// Handlers that wait for answers of the data source: tasks (core/task.h). They block no thread of
// the server while they wait.
//
// Thread safety: functions without state.
#pragma once

#include "core/task.h"
#include "web/route/route.h"

namespace sonde::web {

// Both are alive until the response is given.
using WaitingHandler = Task<Response> (*)(const Context& context, const Request& request);

// Starts the handler. An exception gives the answer 500.
void RunHandler(WaitingHandler handler, const Context& context, const Request& request,
                Reply reply);

// The handler in the form that a route needs.
template <WaitingHandler handler>
void Waits(const Context& context, const Request& request, Reply reply) {
  RunHandler(handler, context, request, std::move(reply));
}

}  // namespace sonde::web
