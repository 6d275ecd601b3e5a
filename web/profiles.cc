// /profiles, /profiles/get, /get: finished steps in the shapes of metric-proxy; /api/v1/profile:
// everything that is known of a step, in the form it is stored.
#include <map>

#include "web/router.h"
#include "web/snapshot.h"

namespace sonde::web {
namespace {

constexpr uint64_t kDefaultProfiles = 10'000;
constexpr uint64_t kMaxProfiles = 100'000;

// {command: [description, ...]}, newest first.
void GetProfiles(const Context& context, const Request& request, Reply reply) {
  const Result<uint64_t> limit = NumberParam(request, "limit", kDefaultProfiles, 1, kMaxProfiles);
  if (!limit.ok()) return reply(ErrorResponse(limit.status()));
  const Result<std::vector<JobDescription>> jobs = context.source->Jobs(*limit);
  if (!jobs.ok()) return reply(ErrorResponse(jobs.status()));
  std::map<std::string_view, std::vector<const JobDescription*>> commands;
  for (const JobDescription& job : *jobs) {
    if (job.state != EndState::kRunning) commands[job.command].push_back(&job);
  }
  Response response;
  JsonWriter json(response.body);
  json.BeginObject();
  for (const auto& [command, runs] : commands) {
    json.Key(command).BeginArray();
    for (const JobDescription* job : runs) WriteDescription(*job, json);
    json.EndArray();
  }
  json.EndObject();
  reply(std::move(response));
}

// The profile that the parameter `name` asks for; answers the request if there is none.
Result<Profile> AskedProfile(const Context& context, const Request& request,
                             std::string_view name) {
  const std::string* job = request.Param(name);
  if (job == nullptr) {
    return Status(Code::kInvalid, "parameter " + std::string(name) +
                                      " is missing: the job and step, such as 4711.0");
  }
  return context.source->GetProfile(JobStep::Parse(*job));
}

void GetSnapshot(const Context& context, const Request& request, Reply reply) {
  const Result<Profile> profile = AskedProfile(context, request, "jobid");
  if (!profile.ok()) return reply(ErrorResponse(profile.status()));
  Response response;
  JsonWriter json(response.body);
  WriteSnapshot(*profile, json);
  reply(std::move(response));
}

void GetNative(const Context& context, const Request& request, Reply reply) {
  const Result<Profile> profile = AskedProfile(context, request, "job");
  if (!profile.ok()) return reply(ErrorResponse(profile.status()));
  Response response;
  response.body = ProfileToJson(*profile);
  reply(std::move(response));
}

constexpr Route kRoutes[] = {{"/profiles", GetProfiles},
                             {"/profiles/get", GetSnapshot},
                             {"/get", GetSnapshot},
                             {"/api/v1/profile", GetNative}};

}  // namespace

std::span<const Route> ProfileRoutes() { return kRoutes; }

}  // namespace sonde::web
