// POST /api/v1/counters: makes a running step leave the processors' counters to other programs, or
// count again.
#include "profiles/json/writer.h"
#include "web/api/routes.h"
#include "web/http/json_input.h"
#include "web/route/waiting.h"

namespace sonde::web {
namespace {

struct AskedCounters {
  std::string job;
  bool paused = false;
};

Result<AskedCounters> ParseAskedCounters(std::string_view body) {
  return WithObject<AskedCounters>(
      body, [](const boost::json::object& object) -> Result<AskedCounters> {
        const boost::json::value* job = object.if_contains("job");
        const boost::json::value* paused = object.if_contains("paused");
        if (job == nullptr || !job->is_string() || paused == nullptr || !paused->is_bool() ||
            object.size() != 2) {
          return Status(Code::kInvalid, R"(expected {"job": "JOB.STEP", "paused": true or false})");
        }
        return AskedCounters{std::string(job->get_string()), paused->get_bool()};
      });
}

Task<Response> PostCounters(const Context& context, const Request& request) {
  const Result<AskedCounters> asked = ParseAskedCounters(request.body);
  if (!asked.ok()) co_return ErrorResponse(asked.status());
  const JobStep id = JobStep::Parse(asked->job);
  std::optional<Response> forwarded =
      co_await Ask(*context.control, &StepControl::Forward, id, request);
  if (forwarded) co_return *std::move(forwarded);
  if (const Status status = context.control->PauseCounters(id, asked->paused); !status.ok()) {
    co_return ErrorResponse(status);
  }
  Response response;
  JsonWriter json(response.body);
  json.BeginObject().Field("job", asked->job).Field("paused", asked->paused).EndObject();
  co_return response;
}

constexpr Route kCountersRoutes[] = {
    {"/api/v1/counters",
     nullptr,
     Waits<PostCounters>,
     {.about =
          "Leaves the processors' counters of a running step to other programs, or counts again",
      .answer = "#Counters",
      .body = "#Counters",
      .example_body = R"({"job": "4712.0", "paused": true})"}}};

}  // namespace

std::span<const Route> CounterRoutes() { return kCountersRoutes; }

}  // namespace sonde::web
