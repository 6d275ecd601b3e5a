// Handlers that wait for answers of the data source: tasks (core/task.h). None holds up a thread of
// the server while it waits.
//
// Thread safety: functions without state.
#pragma once

#include "core/task.h"
#include "web/route/route.h"

namespace sonde::web {

// Both are alive until the response is there.
using WaitingHandler = Task<Response> (*)(const Context& context, const Request& request);

// Begins the handler. An exception is answered by 500.
void RunHandler(WaitingHandler handler, const Context& context, const Request& request,
                Reply reply);

// The handler as a route names it.
template <WaitingHandler handler>
void Waits(const Context& context, const Request& request, Reply reply) {
  RunHandler(handler, context, request, std::move(reply));
}

}  // namespace sonde::web
