// /job/list and /job: the steps and their present numbers, in the shapes of metric-proxy.
#include "web/router.h"
#include "web/snapshot.h"

namespace sonde::web {
namespace {

constexpr uint64_t kDefaultList = 1000;
constexpr uint64_t kMaxList = 100'000;
constexpr uint64_t kDefaultSnapshots = 20;  // each is read from the archive as a whole
constexpr uint64_t kMaxSnapshots = 1000;

void GetJobList(const Context& context, const Request& request, Reply reply) {
  const Result<uint64_t> limit = NumberParam(request, "limit", kDefaultList, 1, kMaxList);
  if (!limit.ok()) return reply(ErrorResponse(limit.status()));
  const Result<std::vector<JobDescription>> jobs = context.source->Jobs(*limit);
  if (!jobs.ok()) return reply(ErrorResponse(jobs.status()));
  Response response;
  JsonWriter json(response.body);
  json.BeginArray();
  for (const JobDescription& job : *jobs) WriteDescription(job, json);
  json.EndArray();
  reply(std::move(response));
}

void GetSnapshots(const Context& context, const Request& request, const Reply& reply) {
  const Result<uint64_t> limit = NumberParam(request, "limit", kDefaultSnapshots, 1, kMaxSnapshots);
  if (!limit.ok()) return reply(ErrorResponse(limit.status()));
  const Result<std::vector<JobDescription>> jobs = context.source->Jobs(*limit);
  if (!jobs.ok()) return reply(ErrorResponse(jobs.status()));
  Response response;
  JsonWriter json(response.body);
  json.BeginArray();
  for (const JobDescription& job : *jobs) {
    // One that went since, or does not read, must not hide the others.
    const Result<Profile> profile = context.source->GetProfile(job.id);
    if (profile.ok()) WriteSnapshot(*profile, json);
  }
  json.EndArray();
  reply(std::move(response));
}

void GetJob(const Context& context, const Request& request, Reply reply) {
  const std::string* job = request.Param("job");
  if (job == nullptr) return GetSnapshots(context, request, reply);
  const Result<Profile> profile = context.source->GetProfile(JobStep::Parse(*job));
  if (!profile.ok()) return reply(ErrorResponse(profile.status()));
  Response response;
  JsonWriter json(response.body);
  WriteSnapshot(*profile, json);
  reply(std::move(response));
}

constexpr Route kRoutes[] = {{"/job/list", GetJobList}, {"/job", GetJob}, {"/job/", GetJob}};

}  // namespace

std::span<const Route> JobRoutes() { return kRoutes; }

}  // namespace sonde::web
