#include "web/route/waiting.h"

#include <exception>
#include <utility>

#include "core/log.h"

namespace sonde::web {
namespace {

// By value, so that they live as long as the task.
Task<void> Run(WaitingHandler handler, Context context, Request request, Reply reply) {
  Response response;
  try {
    response = co_await handler(context, request);
  } catch (const std::exception& e) {
    log::Error("HTTP: answering {}: {}", request.path, e.what());
    response = ErrorResponse(500, "an internal error; the log of the server has its text");
  }
  reply(std::move(response));
}

}  // namespace

void RunHandler(WaitingHandler handler, const Context& context, const Request& request,
                Reply reply) {
  Spawn(context.executor, Run(handler, context, request, std::move(reply)));
}

}  // namespace sonde::web
