// /join: has a running step scrape an exporter of the application; /join/list: those that it
// scrapes.
#include "profiles/json_writer.h"
#include "web/router.h"
#include "web/scrape_target.h"

namespace sonde::web {
namespace {

constexpr size_t kMaxJobs = 1000;
constexpr std::string_view kUp = "join_up", kInstance = "instance";

// The step that a request means: the one it names, else the only one that runs.
Result<JobStep> StepOf(const Context& context, const Request& request) {
  if (const std::string* job = request.Param("job")) return JobStep::Parse(*job);
  const Result<std::vector<JobDescription>> jobs = context.source->Jobs(kMaxJobs);
  if (!jobs.ok()) return jobs.status();
  const JobDescription* running = nullptr;
  for (const JobDescription& job : *jobs) {
    if (job.end != 0) continue;
    if (running != nullptr) return Status(Code::kInvalid, "several steps run: name one by job=");
    running = &job;
  }
  if (running == nullptr) return Status(Code::kNotFound, "no step runs");
  return running->id;
}

void Join(const Context& context, const Request& request, Reply reply) {
  const std::string* to = request.Param("to");
  if (to == nullptr)
    return reply(ErrorResponse(400, "the parameter to=HOST:PORT[/path] is needed"));
  const Result<ScrapeTarget> target = ParseScrapeTarget(*to);
  if (!target.ok()) return reply(ErrorResponse(target.status()));
  const Result<JobStep> id = StepOf(context, request);
  if (!id.ok()) return reply(ErrorResponse(id.status()));
  const std::string* node = request.Param("node");
  const Result<std::string> joined =
      context.source->Join(*id, *target, node == nullptr ? "" : *node);
  if (!joined.ok()) return reply(ErrorResponse(joined.status()));
  Response response;
  JsonWriter json(response.body);
  json.BeginObject().Field("job", id->ToString()).Field("target_url", target->Url());
  json.Field("nodes", *joined).EndObject();
  reply(std::move(response));
}

void List(const Context& context, const Request& request, Reply reply) {
  const std::string* only = request.Param("job");
  const Result<std::vector<JobDescription>> jobs = context.source->Jobs(kMaxJobs);
  if (!jobs.ok()) return reply(ErrorResponse(jobs.status()));
  Response response;
  JsonWriter json(response.body);
  json.BeginArray();
  for (const JobDescription& job : *jobs) {
    if (only == nullptr ? job.end != 0 : job.id.ToString() != JobStep::Parse(*only).ToString()) {
      continue;
    }
    const Result<Profile> profile = context.source->GetProfile(job.id);
    if (!profile.ok()) continue;
    for (const FootprintEntry& entry : profile->footprint) {
      const std::string* instance = entry.series.tags.Find(kInstance);
      if (entry.series.metric.name != kUp || instance == nullptr) continue;
      json.BeginObject().Field("job", job.id.ToString());
      json.Field("target_url", "http://" + *instance).Field("ttype", "Prometheus");
      json.Field("up", entry.last).EndObject();
    }
  }
  json.EndArray();
  reply(std::move(response));
}

constexpr Route kRoutes[] = {{"/join", Join, Join}, {"/join/list", List}};

}  // namespace

std::span<const Route> JoinRoutes() { return kRoutes; }

}  // namespace sonde::web
