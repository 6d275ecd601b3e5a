#include "web/proxy/unjoin.h"

#include <optional>

#include "web/source/running_step.h"
#include "web/source/scrape_target.h"

namespace sonde::web {

Task<Status> Unjoin(const Context& context, const Request& request, std::string target) {
  const Result<ScrapeTarget> parsed = ParseScrapeTarget(target);
  if (!parsed.ok()) co_return parsed.status();
  const std::string* job = request.Param("job");
  const std::string name = job == nullptr ? std::string() : *job;
  const Result<JobStep> id = co_await RunningStep(*context.history, name);
  if (!id.ok()) co_return id.status();
  const std::optional<Response> forwarded =
      co_await Ask(*context.control, &StepControl::Forward, *id, request);
  if (forwarded) {
    if (forwarded->status == 200) co_return Status();
    co_return Status(forwarded->status == 404 ? Code::kNotFound : Code::kUnavailable,
                     "the step's head refuses it");
  }
  co_return co_await Ask(*context.control, &StepControl::Unjoin, *id, parsed->Instance());
}

}  // namespace sonde::web
