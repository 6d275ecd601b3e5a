// /job/list and /job: the steps and their present numbers, in the shapes of metric-proxy; with its
// other jobs, "main" and those of the nodes.
//
// metric-proxy's jobs run; what has ended is a profile there. Its clients, and a proxy that takes
// its numbers from here, therefore get the running steps. Who gives a `limit`, which metric-proxy
// does not know, gets finished steps as well.
#include <algorithm>

#include "web/proxy/all_steps.h"
#include "web/proxy/routes.h"
#include "web/proxy/snapshot.h"
#include "web/route/waiting.h"
#include "web/source/running_step.h"

namespace sonde::web {
namespace {

constexpr uint64_t kMaxList = 100'000;
constexpr uint64_t kMaxSnapshots = 1000;  // each is read from the archive as a whole
constexpr size_t kMaxListedNodes = 1000;
constexpr size_t kMaxNodeSnapshots = 64;  // each is asked for

// By the answers of the steps' heads: the list itself may be some seconds old.
std::vector<std::string> ListedNodes(const Result<std::vector<Profile>>& running) {
  if (!running.ok()) return {};
  std::vector<std::string> nodes = NodesOf(*running);
  if (nodes.size() > kMaxListedNodes) nodes.resize(kMaxListedNodes);
  return nodes;
}

// The steps that a request means.
Task<Result<std::vector<JobDescription>>> AskedJobs(const Context& context, const Request& request,
                                                    uint64_t most) {
  if (request.Param("limit") == nullptr) co_return co_await RunningSteps(*context.history);
  const Result<uint64_t> limit = NumberParam(request, "limit", most, 1, most);
  if (!limit.ok()) co_return limit.status();
  co_return co_await Ask(*context.history, &StepHistory::Jobs, *limit);
}

Task<Response> GetJobList(const Context& context, const Request& request) {
  const Result<std::vector<JobDescription>> jobs = co_await AskedJobs(context, request, kMaxList);
  if (!jobs.ok()) co_return ErrorResponse(jobs.status());
  const Result<std::vector<Profile>> running = co_await RunningProfiles(*context.history);
  Response response;
  JsonWriter json(response.body);
  json.BeginArray();
  WriteDescription(MainDescription(), json);
  for (const std::string& host : ListedNodes(running)) {
    WriteDescription(NodeDescription(host), json);
  }
  for (const JobDescription& job : *jobs) WriteDescription(job, json);
  json.EndArray();
  co_return response;
}

// "main", the nodes, then the steps.
Task<Response> GetSnapshots(const Context& context, const Request& request) {
  const Result<std::vector<JobDescription>> jobs =
      co_await AskedJobs(context, request, kMaxSnapshots);
  if (!jobs.ok()) co_return ErrorResponse(jobs.status());
  Result<std::vector<Profile>> running = co_await RunningProfiles(*context.history);
  if (!running.ok()) co_return ErrorResponse(running.status());
  std::vector<Profile> profiles;
  for (const JobDescription& job : *jobs) {
    const auto known = std::find_if(running->begin(), running->end(),
                                    [&](const Profile& one) { return one.job.id == job.id; });
    if (known != running->end()) {
      profiles.push_back(*known);
      continue;
    }
    // A step that is gone since, or unreadable, must not hide the others.
    Result<Profile> profile = co_await Ask(*context.history, &StepHistory::GetProfile, job.id);
    if (profile.ok()) profiles.push_back(*std::move(profile));
  }
  const std::vector<std::string> nodes = NodesOf(*running);
  const Profile main = SumOf(*running);
  const bool ask = nodes.size() <= kMaxNodeSnapshots;
  std::vector<Profile> asked;
  if (ask) asked = *std::move(running);
  const Result<NodeValues> made = NodeValues::Make(std::move(asked), "", context.clock->Now());
  if (!made.ok()) co_return ErrorResponse(made.status());
  const Result<Answers> answers = co_await Gather(context, made->specs());
  if (!answers.ok()) co_return ErrorResponse(answers.status());
  const std::vector<NodeValues::Value> values = made->Read(*answers);
  Response response;
  JsonWriter json(response.body);
  json.BeginArray();
  const Nanos now = context.clock->Now();
  WriteSnapshot(main, now, json);
  for (size_t i = 0; ask && i < nodes.size(); ++i) {
    WriteSnapshot(NodeProfile(nodes[i], values), now, json);
  }
  for (const Profile& profile : profiles) WriteSnapshot(profile, now, json);
  json.EndArray();
  co_return response;
}

Task<Response> GetNode(const Context& context, std::string host) {
  Result<std::vector<Profile>> running = co_await RunningProfiles(*context.history);
  if (!running.ok()) co_return ErrorResponse(running.status());
  const std::vector<std::string> nodes = NodesOf(*running);
  if (std::find(nodes.begin(), nodes.end(), host) == nodes.end()) {
    co_return ErrorResponse({Code::kNotFound, "no step runs on a node '" + host + "'"});
  }
  const Result<NodeValues> asked =
      NodeValues::Make(*std::move(running), host, context.clock->Now());
  if (!asked.ok()) co_return ErrorResponse(asked.status());
  const Result<Answers> answers = co_await Gather(context, asked->specs());
  if (!answers.ok()) co_return ErrorResponse(answers.status());
  Response response;
  JsonWriter json(response.body);
  WriteSnapshot(NodeProfile(host, asked->Read(*answers)), context.clock->Now(), json);
  co_return response;
}

Task<Response> GetJob(const Context& context, const Request& request) {
  const std::string* job = request.Param("job");
  if (job == nullptr) co_return co_await GetSnapshots(context, request);
  if (const auto node = NodeOfJob(*job)) co_return co_await GetNode(context, *node);
  Result<Profile> profile = Status();
  if (*job == kMainJob) {
    const Result<std::vector<Profile>> running = co_await RunningProfiles(*context.history);
    profile = running.ok() ? Result<Profile>(SumOf(*running)) : running.status();
  } else {
    profile = co_await Ask(*context.history, &StepHistory::GetProfile, JobStep::Parse(*job));
  }
  if (!profile.ok()) co_return ErrorResponse(profile.status());
  Response response;
  JsonWriter json(response.body);
  WriteSnapshot(*profile, context.clock->Now(), json);
  MarkFinal(profile->job, response);
  co_return response;
}

constexpr RouteDoc kJob = {
    .about = "The snapshot of a step, of main or of a node, or without `job` a list of all",
    .params = {{"job", "the step, such as 4711.0; main, or Node: NAME"},
               {"limit",
                "also the newest finished steps: how many steps, 1 to 1000; running ones are there "
                "besides",
                kCount}},
    .answer = R"({"oneOf":[{"$ref":"#/components/schemas/Snapshot"},)"
              R"({"type":"array","items":{"$ref":"#/components/schemas/Snapshot"}}]})",
    .example = "?job=4711.0"};

constexpr RouteDoc kList = {
    .about = "Descriptions of main, of the nodes that are used and of running steps, newest first",
    .params = {{"limit",
                "also the newest finished steps: how many steps, 1 to 100000; running ones are "
                "there besides",
                kCount}},
    .answer = "[#Description]",
    .example = "?limit=5"};

constexpr Route kJobsRoutes[] = {{"/job/list", Waits<GetJobList>, nullptr, kList},
                                 {"/job/list/", Waits<GetJobList>, nullptr, kList},
                                 {"/job", Waits<GetJob>, nullptr, kJob},
                                 {"/job/", Waits<GetJob>, nullptr, kJob}};

}  // namespace

std::span<const Route> JobRoutes() { return kJobsRoutes; }

}  // namespace sonde::web
