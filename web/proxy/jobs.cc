// /job/list and /job: the steps and their present numbers, in the shapes of metric-proxy; with the
// jobs that it has besides, "main" and those of the nodes.
#include <memory>

#include "web/proxy/all_steps.h"
#include "web/proxy/snapshot.h"
#include "web/router.h"
#include "web/running_step.h"

namespace sonde::web {
namespace {

constexpr uint64_t kDefaultList = 1000;
constexpr uint64_t kMaxList = 100'000;
constexpr uint64_t kDefaultSnapshots = 20;  // each is read from the archive as a whole
constexpr uint64_t kMaxSnapshots = 1000;
constexpr size_t kMaxListedNodes = 1000;
constexpr size_t kMaxNodeSnapshots = 64;  // each is asked for

// By what the steps' heads say: the list itself may be some seconds old.
std::vector<std::string> ListedNodes(const DataSource& source) {
  const Result<std::vector<Profile>> running = RunningProfiles(source);
  if (!running.ok()) return {};
  std::vector<std::string> nodes = NodesOf(*running);
  if (nodes.size() > kMaxListedNodes) nodes.resize(kMaxListedNodes);
  return nodes;
}

void GetJobList(const Context& context, const Request& request, Reply reply) {
  const Result<uint64_t> limit = NumberParam(request, "limit", kDefaultList, 1, kMaxList);
  if (!limit.ok()) return reply(ProxyError(limit.status()));
  const Result<std::vector<JobDescription>> jobs = context.source->Jobs(*limit);
  if (!jobs.ok()) return reply(ProxyError(jobs.status()));
  Response response;
  JsonWriter json(response.body);
  json.BeginArray();
  WriteDescription(MainDescription(), json);
  for (const std::string& host : ListedNodes(*context.source)) {
    WriteDescription(NodeDescription(host), json);
  }
  for (const JobDescription& job : *jobs) WriteDescription(job, json);
  json.EndArray();
  reply(std::move(response));
}

// What is written when the nodes have answered.
using Write = std::function<void(const NodeValues&, const Answers&, JsonWriter&)>;

void WithNodeValues(const Context& context, std::vector<Profile> steps, const std::string& host,
                    Reply reply, Write write) {
  Result<NodeValues> asked = NodeValues::Make(std::move(steps), host, context.clock->Now());
  if (!asked.ok()) return reply(ProxyError(asked.status()));
  const auto values = std::make_shared<const NodeValues>(*std::move(asked));
  const auto make = [values, write = std::move(write)](const Answers& answers) {
    Response response;
    JsonWriter json(response.body);
    write(*values, answers, json);
    return response;
  };
  if (values->specs().empty()) return reply(make({}));
  GatherAndReply(context, values->specs(), std::move(reply), make);
}

// "main", the nodes, then the steps.
void GetSnapshots(const Context& context, const Request& request, const Reply& reply) {
  const Result<uint64_t> limit = NumberParam(request, "limit", kDefaultSnapshots, 1, kMaxSnapshots);
  if (!limit.ok()) return reply(ProxyError(limit.status()));
  const Result<std::vector<JobDescription>> jobs = context.source->Jobs(*limit);
  if (!jobs.ok()) return reply(ProxyError(jobs.status()));
  Result<std::vector<Profile>> running = RunningProfiles(*context.source);
  if (!running.ok()) return reply(ProxyError(running.status()));
  const auto profiles = std::make_shared<std::vector<Profile>>();
  for (const JobDescription& job : *jobs) {
    // One that went since, or does not read, must not hide the others.
    Result<Profile> profile = context.source->GetProfile(job.id);
    if (profile.ok()) profiles->push_back(*std::move(profile));
  }
  const std::vector<std::string> nodes = NodesOf(*running);
  const Profile main = SumOf(*running);
  const bool ask = nodes.size() <= kMaxNodeSnapshots;
  WithNodeValues(context, ask ? *std::move(running) : std::vector<Profile>(), "", reply,
                 [=](const NodeValues& asked, const Answers& answers, JsonWriter& json) {
                   const std::vector<NodeValues::Value> values = asked.Read(answers);
                   json.BeginArray();
                   WriteSnapshot(main, json);
                   for (size_t i = 0; ask && i < nodes.size(); ++i) {
                     WriteSnapshot(NodeProfile(nodes[i], values), json);
                   }
                   for (const Profile& profile : *profiles) WriteSnapshot(profile, json);
                   json.EndArray();
                 });
}

void GetNode(const Context& context, const std::string& host, const Reply& reply) {
  Result<std::vector<Profile>> running = RunningProfiles(*context.source);
  if (!running.ok()) return reply(ProxyError(running.status()));
  const std::vector<std::string> nodes = NodesOf(*running);
  if (std::find(nodes.begin(), nodes.end(), host) == nodes.end()) {
    return reply(ProxyError({Code::kNotFound, "no step runs on a node '" + host + "'"}));
  }
  WithNodeValues(context, *std::move(running), host, reply,
                 [host](const NodeValues& asked, const Answers& answers, JsonWriter& json) {
                   WriteSnapshot(NodeProfile(host, asked.Read(answers)), json);
                 });
}

void GetJob(const Context& context, const Request& request, Reply reply) {
  const std::string* job = request.Param("job");
  if (job == nullptr) return GetSnapshots(context, request, reply);
  if (const auto node = NodeOfJob(*job)) return GetNode(context, *node, reply);
  Result<Profile> profile = Status();
  if (*job == kMainJob) {
    const Result<std::vector<Profile>> running = RunningProfiles(*context.source);
    profile = running.ok() ? Result<Profile>(SumOf(*running)) : running.status();
  } else {
    profile = context.source->GetProfile(JobStep::Parse(*job));
  }
  if (!profile.ok()) return reply(ProxyError(profile.status()));
  Response response;
  JsonWriter json(response.body);
  WriteSnapshot(*profile, json);
  MarkFinal(profile->job, response);
  reply(std::move(response));
}

constexpr RouteDoc kJob = {
    .about = "The snapshot of a step, of main or of a node, or without `job` a list of all",
    .params = {{"job", "the step, such as 4711.0; main, or Node: NAME"},
               {"limit", "how many snapshots at most, 1 to 1000; 20 if absent", kCount}},
    .answer = R"({"oneOf":[{"$ref":"#/components/schemas/Snapshot"},)"
              R"({"type":"array","items":{"$ref":"#/components/schemas/Snapshot"}}]})",
    .example = "?job=4711.0"};

constexpr RouteDoc kList = {
    .about = "Descriptions of main, of the nodes that are used and of steps, newest first",
    .params = {{"limit", "how many steps at most, 1 to 100000; 1000 if absent", kCount}},
    .answer = "[#Description]",
    .example = "?limit=5"};

constexpr Route kRoutes[] = {{"/job/list", GetJobList, nullptr, kList},
                             {"/job/list/", GetJobList, nullptr, kList},
                             {"/job", GetJob, nullptr, kJob},
                             {"/job/", GetJob, nullptr, kJob}};

}  // namespace

std::span<const Route> JobRoutes() { return kRoutes; }

}  // namespace sonde::web
