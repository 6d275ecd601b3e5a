// /profiles, /profiles/get, /get, /profiles/percmd, /percmd, /profiles/points: finished steps in
// the shapes of metric-proxy; /api/v1/profile: everything that is known of a step, in its stored
// form.
#include <algorithm>
#include <cmath>
#include <map>

#include "web/api/routes.h"
#include "web/proxy/snapshot.h"
#include "web/route/waiting.h"
#include "web/source/running_step.h"

namespace sonde::web {
namespace {

constexpr uint64_t kDefaultProfiles = 10'000;
constexpr uint64_t kMaxProfiles = 100'000;
constexpr uint64_t kDefaultRuns = 100;  // profiles, each read as a whole
constexpr uint64_t kMaxPoints = 1000;

Task<Result<std::vector<JobDescription>>> Finished(const Context& context, const Request& request) {
  const Result<uint64_t> limit = NumberParam(request, "limit", kDefaultProfiles, 1, kMaxProfiles);
  if (!limit.ok()) co_return limit.status();
  Result<std::vector<JobDescription>> jobs =
      co_await Ask(*context.history, &StepHistory::Jobs, *limit);
  if (!jobs.ok()) co_return jobs;
  std::erase_if(*jobs, [](const JobDescription& job) { return job.state == EndState::kRunning; });
  co_return jobs;
}

// [description, ...], newest first.
Task<Response> GetProfiles(const Context& context, const Request& request) {
  const Result<std::vector<JobDescription>> jobs = co_await Finished(context, request);
  if (!jobs.ok()) co_return ProxyError(jobs.status());
  Response response;
  JsonWriter json(response.body);
  json.BeginArray();
  for (const JobDescription& job : *jobs) WriteDescription(job, json);
  json.EndArray();
  co_return response;
}

// {command: [description, ...]}, newest first.
Task<Response> GetByCommand(const Context& context, const Request& request) {
  const Result<std::vector<JobDescription>> jobs = co_await Finished(context, request);
  if (!jobs.ok()) co_return ProxyError(jobs.status());
  std::map<std::string_view, std::vector<const JobDescription*>> commands;
  for (const JobDescription& job : *jobs) commands[job.command].push_back(&job);
  Response response;
  JsonWriter json(response.body);
  json.BeginObject();
  for (const auto& [command, runs] : commands) {
    json.Key(command).BeginArray();
    for (const JobDescription* job : runs) WriteDescription(*job, json);
    json.EndArray();
  }
  json.EndObject();
  co_return response;
}

// The profile that the parameter `name` names.
Task<Result<Profile>> AskedProfile(const Context& context, const Request& request,
                                   std::string_view name) {
  const std::string* job = request.Param(name);
  if (job == nullptr) {
    co_return Status(Code::kInvalid, "parameter " + std::string(name) +
                                         " is missing: the job and step, such as 4711.0");
  }
  co_return co_await Ask(*context.history, &StepHistory::GetProfile, JobStep::Parse(*job));
}

Task<Response> GetSnapshot(const Context& context, const Request& request) {
  const Result<Profile> profile = co_await AskedProfile(context, request, "jobid");
  if (!profile.ok()) co_return ProxyError(profile.status());
  Response response;
  JsonWriter json(response.body);
  WriteSnapshot(*profile, json);
  MarkFinal(profile->job, response);
  co_return response;
}

// In metric-proxy's models: a counter's value, a gauge's mean.
double ValueOf(const FootprintEntry& entry) {
  return IsCounting(entry.series.metric.type) ? entry.last : entry.mean;
}

// {metric: [[tasks, value], ...]} of the runs of a profile's command, by their number of tasks.
Task<Response> GetPoints(const Context& context, const Request& request) {
  const Result<uint64_t> runs = NumberParam(request, "runs", kDefaultRuns, 1, kMaxPoints);
  if (!runs.ok()) co_return ProxyError(runs.status());
  const Result<Profile> asked = co_await AskedProfile(context, request, "jobid");
  if (!asked.ok()) co_return ProxyError(asked.status());
  const Result<std::vector<JobDescription>> jobs = co_await Finished(context, request);
  if (!jobs.ok()) co_return ProxyError(jobs.status());
  std::vector<const JobDescription*> alike;
  for (const JobDescription& job : *jobs) {
    if (job.command == asked->job.command && alike.size() < *runs) alike.push_back(&job);
  }
  std::stable_sort(alike.begin(), alike.end(), [](const auto* a, const auto* b) {
    return a->expected_tasks < b->expected_tasks;
  });
  std::map<std::string, std::vector<std::pair<uint32_t, double>>> points;
  for (const JobDescription* job : alike) {
    const Result<Profile> profile =
        co_await Ask(*context.history, &StepHistory::GetProfile, job->id);
    if (!profile.ok()) continue;
    for (const FootprintEntry& entry : profile->footprint) {
      const double value = ValueOf(entry);
      if (!std::isfinite(value)) continue;
      points[SeriesName(entry.series.metric.name, entry.series.tags)].emplace_back(
          job->expected_tasks, value);
    }
  }
  Response response;
  JsonWriter json(response.body);
  json.BeginObject();
  for (const auto& [name, list] : points) {
    json.Key(name).BeginArray();
    for (const auto& [size, value] : list) json.BeginArray().Value(size).Value(value).EndArray();
    json.EndArray();
  }
  json.EndObject();
  co_return response;
}

Task<Response> GetNative(const Context& context, const Request& request) {
  const Result<Profile> profile = co_await AskedProfile(context, request, "job");
  if (!profile.ok()) co_return ErrorResponse(profile.status());
  Response response;
  response.body = ProfileToJson(*profile);
  MarkFinal(profile->job, response);
  co_return response;
}

constexpr RouteDoc kSnapshot = {.about = "The snapshot of a step",
                                .params = {{"jobid", "the step, such as 4711.0", kText, true}},
                                .answer = "#Snapshot",
                                .example = "?jobid=4711.0"};

constexpr RouteDoc kProfileList = {.about = "Finished steps, newest first",
                                   .params = {{"limit",
                                               "how many of the newest steps, 1 to 100000; 10000 "
                                               "if absent; running ones are there besides",
                                               kCount}},
                                   .answer = "[#Description]",
                                   .example = "?limit=10"};
constexpr RouteDoc kByCommand = {
    .about = "Finished steps by their command",
    .params = {{"limit",
                "how many of the newest steps, 1 to 100000; 10000 if absent; running ones are "
                "there besides",
                kCount}},
    .answer = R"({"type":"object","additionalProperties":)"
              R"({"type":"array","items":{"$ref":"#/components/schemas/Description"}}})",
    .example = "?limit=10"};

constexpr Route kProfilesRoutes[] = {
    {"/profiles", Waits<GetProfiles>, nullptr, kProfileList},
    {"/profiles/", Waits<GetProfiles>, nullptr, kProfileList},
    {"/profiles/percmd", Waits<GetByCommand>, nullptr, kByCommand},
    {"/percmd", Waits<GetByCommand>, nullptr, kByCommand},
    {"/profiles/points",
     Waits<GetPoints>,
     nullptr,
     {.about = "The metrics of a step's command over its finished runs: pairs of tasks and value",
      .params = {{"jobid", "a step of the command, such as 4711.0", kText, true},
                 {"limit", "how many steps are looked through, 1 to 100000", kCount},
                 {"runs", "how many of them are read at most, 1 to 1000; 100 if absent", kCount}},
      .answer = R"({"type":"object","additionalProperties":{"type":"array",)"
                R"("items":{"$ref":"#/components/schemas/Pair"}}})",
      .example = "?jobid=4711.0"}},
    {"/profiles/get", Waits<GetSnapshot>, nullptr, kSnapshot},
    {"/get", Waits<GetSnapshot>, nullptr, kSnapshot},
    {"/api/v1/profile",
     Waits<GetNative>,
     nullptr,
     {.about = "Everything that is known of a step, as it is stored",
      .params = {{"job", "the step, such as 4711.0", kText, true}},
      .answer = "#Profile",
      .example = "?job=4711.0"}}};

}  // namespace

std::span<const Route> ProfileRoutes() { return kProfilesRoutes; }

}  // namespace sonde::web
