// /api/v1/profile: everything that is known of a step, in its stored form.
#include "web/api/routes.h"
#include "web/proxy/snapshot.h"
#include "web/route/gather.h"
#include "web/route/waiting.h"

namespace sonde::web {
namespace {

Task<Response> GetProfile(const Context& context, const Request& request) {
  const std::string* job = request.Param("job");
  if (job == nullptr) {
    co_return ErrorResponse(
        {Code::kInvalid, "parameter job is missing: the job and step, such as 4711.0"});
  }
  const Result<Profile> profile =
      co_await Ask(*context.history, &StepHistory::GetProfile, JobStep::Parse(*job));
  if (!profile.ok()) co_return ErrorResponse(profile.status());
  Response response;
  response.body = ProfileToJson(*profile);
  MarkFinal(profile->job, response);
  co_return response;
}

constexpr Route kProfileRoutes[] = {
    {"/api/v1/profile",
     Waits<GetProfile>,
     nullptr,
     {.about = "Everything that is known of a step, as it is stored",
      .params = {{"job", "the step, such as 4711.0", kText, true}},
      .answer = "#Profile",
      .example = "?job=4711.0"}}};

}  // namespace

std::span<const Route> ProfileRoutes() { return kProfileRoutes; }

}  // namespace sonde::web
