// What metric-proxies say to each other: /is_admire_proxy.html, /pivot, /period, /leave, /remove.
//
// Proxies form a tree by themselves. Who joins asks the root at /pivot whom to join, has that one
// scrape it by /join, and says /leave to the root when it goes; who cannot reach a child any more
// says /remove. A step is a root without a tree below it: its nodes scrape all proxies that join.
#include <fmt/core.h>

#include <string>

#include "web/http/credentials.h"
#include "web/proxy/operation.h"
#include "web/proxy/routes.h"
#include "web/proxy/unjoin.h"
#include "web/route/waiting.h"
#include "web/source/running_step.h"

namespace sonde::web {
namespace {

// A metric-proxy looks for the tag <html>.
void GetPage(const Context&, const Request&, Reply reply) {
  Response response;
  response.content_type = "text/html; charset=utf-8";
  response.body =
      "<!doctype html>\n<html>\n<title>Sonde</title>\n"
      "<p>By this page metric-proxies know that they can take their numbers from /job.</p>\n"
      "</html>\n";
  reply(std::move(response));
}

// metric-proxy sends an address on as it is, and has no token: who has told us its token finds it
// in the address that it gets, as the password, and goes on with it.
std::string OurAddress(const Request& request) {
  const std::string_view token = BearerToken(request.authorization);
  const std::string pair = BasicPair(request.authorization);
  if (!token.empty()) return fmt::format("sonde:{}@{}", token, request.host);
  return pair.empty() ? request.host : fmt::format("{}@{}", pair, request.host);
}

Result<std::string> Needed(const Request& request, std::string_view name) {
  const std::string* text = request.Param(name);
  if (text != nullptr && !text->empty()) return *text;
  return Status(Code::kInvalid, fmt::format("the parameter {}=HOST:PORT is needed", name));
}

Task<Response> GetPivot(const Context&, const Request& request) {
  const Result<std::string> from = Needed(request, "from");
  if (!from.ok()) co_return ErrorResponse(from.status());
  co_return Success(OurAddress(request));
}

Task<Response> GetPeriod(const Context& context, const Request&) {
  const Result<std::vector<JobDescription>> running = co_await RunningSteps(*context.history);
  const Nanos period = running.ok() && !running->empty() ? running->front().period : kDefaultPeriod;
  co_return Success(std::to_string(period / kMillisecond));
}

// A proxy that is not scraped here goes in peace.
Task<Response> GetLeave(const Context& context, const Request& request) {
  const Result<std::string> from = Needed(request, "from");
  if (!from.ok()) co_return ErrorResponse(from.status());
  const Status status = co_await Unjoin(context, request, *from);
  if (status.code() == Code::kNotFound) {
    co_return Success(fmt::format("{} was not scraped", *from));
  }
  if (!status.ok()) co_return ErrorResponse(status);
  co_return Success(fmt::format("{} is not scraped any more", *from));
}

Task<Response> GetRemove(const Context& context, const Request& request) {
  for (const char* name : {"from", "target"}) {
    const Result<std::string> given = Needed(request, name);
    if (!given.ok()) co_return ErrorResponse(given.status());
  }
  const std::string& target = *request.Param("target");
  const Status status = co_await Unjoin(context, request, target);
  if (!status.ok() && status.code() != Code::kNotFound) co_return ErrorResponse(status);
  co_return Success(fmt::format("{} is removed", target));
}

constexpr Route kTreeRoutes[] = {
    {"/is_admire_proxy.html",
     GetPage,
     nullptr,
     {.about = "The page by which a metric-proxy knows another", .answer = "text/html"}},
    {"/pivot",
     Waits<GetPivot>,
     nullptr,
     {.about = "Whom a metric-proxy should join: this server. The answer's operation is its "
               "address, with the caller's token as the password",
      .params = {{"from", "HOST:PORT of the one that asks", kText, true}},
      .answer = "#Operation",
      .example = "?from=n9:1337"}},
    {"/period",
     Waits<GetPeriod>,
     nullptr,
     {.about = "Every how many ms there are new values: the answer's operation",
      .answer = "#Operation"}},
    {"/leave",
     Waits<GetLeave>,
     nullptr,
     {.about = "A metric-proxy goes, and is not scraped any more",
      .params = {{"from", "its HOST:PORT", kText, true}, kWhereSeveralRun},
      .answer = "#Operation",
      .example = "?from=n9:1337&job=4712.0",
      .changes = true}},
    {"/remove",
     Waits<GetRemove>,
     nullptr,
     {.about = "A metric-proxy is gone, as its parent says, and is not scraped any more",
      .params = {{"from", "HOST:PORT of the parent", kText, true},
                 {"target", "and of the one that is gone", kText, true},
                 kWhereSeveralRun},
      .answer = "#Operation",
      .example = "?from=n9:1337&target=n8:1337&job=4712.0",
      .changes = true}}};

}  // namespace

std::span<const Route> TreeRoutes() { return kTreeRoutes; }

}  // namespace sonde::web
