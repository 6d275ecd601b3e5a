// /trace/list and /trace/size: which traces there are, and how large they are, in the shapes of
// metric-proxy.
#include <algorithm>
#include <optional>

#include "web/proxy/traces/routes.h"
#include "web/proxy/traces/traced.h"
#include "web/route/waiting.h"
#include "web/source/running_step.h"

namespace sonde::web {
namespace {

constexpr uint64_t kDefaultTraces = 100;  // each is read from the archive as a whole
constexpr uint64_t kMaxTraces = 1000;

// Running steps are all asked at the same time; of the others one profile is held at a time.
Task<Response> GetList(const Context& context, const Request& request) {
  const Result<uint64_t> limit = NumberParam(request, "limit", kDefaultTraces, 1, kMaxTraces);
  if (!limit.ok()) co_return ErrorResponse(limit.status());
  const Result<std::vector<JobDescription>> jobs =
      co_await Ask(*context.history, &StepHistory::Jobs, *limit);
  if (!jobs.ok()) co_return ErrorResponse(jobs.status());
  std::vector<JobStep> ids;
  for (const JobDescription& job : *jobs) {
    if (job.end == 0) ids.push_back(job.id);
  }
  const std::vector<Result<Profile>> running = co_await ProfilesOf(*context.history, ids);
  auto next = running.begin();
  Response response;
  JsonWriter json(response.body);
  json.BeginArray();
  std::vector<Profile> together;
  for (const Result<Profile>& step : running) {
    if (step.ok()) together.push_back(*step);
  }
  if (!together.empty()) WriteTraceInfo(MainOf(together), context.clock->Now(), json);
  for (const JobDescription& job : *jobs) {
    if (job.end == 0) {
      if (next->ok()) WriteTraceInfo(**next, context.clock->Now(), json);
      ++next;
      continue;
    }
    const Result<Profile> profile =
        co_await Ask(*context.history, &StepHistory::GetProfile, job.id);
    if (profile.ok()) WriteTraceInfo(*profile, context.clock->Now(), json);
  }
  json.EndArray();
  co_return response;
}

// [bytes, bytes that it may take]. Of a finished step both are the same: nothing comes to it. The
// second is never 0: clients show the first as a share of it.
Task<Response> GetSize(const Context& context, const Request& request) {
  const std::string* job = request.Param("jobid");
  if (job == nullptr || job->empty()) co_return ErrorResponse(NoTracedJob());
  const Result<Traced> traced = co_await TracedSteps(context, *job);
  if (!traced.ok()) co_return ErrorResponse(traced.status());
  const Profile& profile = traced->profile;
  if (profile.job.end == 0 && profile.job.id.job != kMainJob) {
    std::optional<Response> forwarded =
        co_await Ask(*context.control, &StepControl::Forward, profile.job.id, request);
    if (forwarded) co_return *std::move(forwarded);
  }
  const uint64_t size = TraceSize(profile);
  const uint64_t limit = profile.job.end == 0 ? context.control->ProfileLimit() : 0;
  const uint64_t most = std::max({size, limit, uint64_t{1}});
  Response response;
  JsonWriter(response.body).BeginArray().Value(size).Value(most).EndArray();
  co_return response;
}

constexpr Route kTraceListRoutes[] = {
    {"/trace/list",
     Waits<GetList>,
     nullptr,
     {.about = "The steps, newest first, with the size of their records",
      .params = {{"limit", "how many at most, 1 to 1000; 100 if absent", kCount}},
      .answer = "[#Trace]"}},
    {"/trace/size",
     Waits<GetSize>,
     nullptr,
     {.about = "What a step's record takes, and may take, in bytes",
      .params = {{"jobid", "the step, such as 4711.0, or main", kText, true}},
      .answer = R"({"type":"array","items":{"type":"integer"},"minItems":2,"maxItems":2})",
      .example = "?jobid=4711.0"}}};

}  // namespace

std::span<const Route> TraceListRoutes() { return kTraceListRoutes; }

}  // namespace sonde::web
