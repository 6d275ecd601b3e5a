// /profiles, /profiles/get, /get, /profiles/percmd, /percmd, /profiles/points: finished steps in
// the shapes of metric-proxy.
#include <map>

#include "web/proxy/routes.h"
#include "web/proxy/runs.h"
#include "web/proxy/snapshot.h"
#include "web/route/waiting.h"

namespace sonde::web {
namespace {

// [description, ...], newest first.
Task<Response> GetProfiles(const Context& context, const Request& request) {
  const Result<std::vector<JobDescription>> jobs = co_await FinishedSteps(context, request);
  if (!jobs.ok()) co_return ErrorResponse(jobs.status());
  Response response;
  JsonWriter json(response.body);
  json.BeginArray();
  for (const JobDescription& job : *jobs) WriteDescription(job, json);
  json.EndArray();
  co_return response;
}

// {command: [description, ...]}, newest first.
Task<Response> GetByCommand(const Context& context, const Request& request) {
  const Result<std::vector<JobDescription>> jobs = co_await FinishedSteps(context, request);
  if (!jobs.ok()) co_return ErrorResponse(jobs.status());
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

Task<Response> GetSnapshot(const Context& context, const Request& request) {
  const Result<Profile> profile = co_await AskedProfile(context, request);
  if (!profile.ok()) co_return ErrorResponse(profile.status());
  Response response;
  JsonWriter json(response.body);
  WriteSnapshot(*profile, context.clock->Now(), json);
  MarkFinal(profile->job, response);
  co_return response;
}

// {metric: [[tasks, value], ...]} of the runs of a profile's command, by their number of tasks.
Task<Response> GetPoints(const Context& context, const Request& request) {
  const Result<Profile> asked = co_await AskedProfile(context, request);
  if (!asked.ok()) co_return ErrorResponse(asked.status());
  const Result<Runs> runs = co_await RunsOf(context, request, asked->job.command, RunEnd::kAny);
  if (!runs.ok()) co_return ErrorResponse(runs.status());
  Response response;
  JsonWriter json(response.body);
  json.BeginObject();
  for (const auto& [name, list] : runs->points) {
    json.Key(name).BeginArray();
    for (const auto& [size, value] : list) json.BeginArray().Value(size).Value(value).EndArray();
    json.EndArray();
  }
  json.EndObject();
  co_return response;
}

constexpr RouteDoc kSnapshot = {.about = "The snapshot of a step",
                                .params = {{"jobid", "the step, such as 4711.0", kText, true}},
                                .answer = "#Snapshot",
                                .example = "?jobid=4711.0"};

constexpr RouteParam kNewest = {
    "limit",
    "how many of the newest steps, 1 to 100000; 10000 if absent; running ones are there besides",
    kCount};
constexpr RouteDoc kProfileList = {.about = "Finished steps, newest first",
                                   .params = {kNewest},
                                   .answer = "[#Description]",
                                   .example = "?limit=10"};
constexpr RouteDoc kByCommand = {
    .about = "Finished steps by their command",
    .params = {kNewest},
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
      .params = {kStepOfCommand, kLookedThrough, kRunsRead},
      .answer = R"({"type":"object","additionalProperties":{"type":"array",)"
                R"("items":{"$ref":"#/components/schemas/Pair"}}})",
      .example = "?jobid=4711.0"}},
    {"/profiles/get", Waits<GetSnapshot>, nullptr, kSnapshot},
    {"/get", Waits<GetSnapshot>, nullptr, kSnapshot}};

}  // namespace

std::span<const Route> RunRoutes() { return kProfilesRoutes; }

}  // namespace sonde::web
