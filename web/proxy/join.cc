// /join: makes a running step scrape an exporter of the application; /join/list: lists these
// exporters.
#include "profiles/json/writer.h"
#include "web/proxy/routes.h"
#include "web/route/waiting.h"
#include "web/source/running_step.h"
#include "web/source/scrape_target.h"

namespace sonde::web {
namespace {

constexpr size_t kMaxJobs = 1000;
constexpr double kEvery = 1;  // seconds between scrapes, if the request names none
constexpr std::string_view kUp = "join_up", kPeriod = "join_period_seconds", kInstance = "instance";

Result<ScrapeTarget> TargetOf(const Request& request) {
  const std::string* to = request.Param("to");
  if (to == nullptr) {
    return Status(Code::kInvalid, "the parameter to=HOST:PORT[/path] is needed");
  }
  Result<ScrapeTarget> target = ParseScrapeTarget(*to);
  if (!target.ok()) return target;
  if (const std::string* text = request.Param("period"); text != nullptr) {
    const Result<Nanos> every = ParseScrapePeriod(*text);
    if (!every.ok()) return every.status();
    target->every = *every;
  }
  return target;
}

double PeriodOf(const Profile& profile, const std::string& instance) {
  for (const FootprintEntry& entry : profile.footprint) {
    const std::string* other = entry.series.tags.Find(kInstance);
    if (entry.series.metric.name == kPeriod && other != nullptr && *other == instance) {
      return entry.last;
    }
  }
  return kEvery;
}

Task<Response> Join(const Context& context, const Request& request) {
  const Result<ScrapeTarget> target = TargetOf(request);
  if (!target.ok()) co_return ProxyError(target.status());
  const std::string* job = request.Param("job");
  const std::string name = job == nullptr ? std::string() : *job;
  const Result<JobStep> id = co_await RunningStep(*context.history, name);
  if (!id.ok()) co_return ProxyError(id.status());
  std::optional<Response> forwarded =
      co_await Ask(*context.control, &StepControl::Forward, *id, request);
  if (forwarded) co_return *std::move(forwarded);
  const std::string* node = request.Param("node");
  const Result<std::string> joined =
      context.control->Join(*id, *target, node == nullptr ? "" : *node);
  if (!joined.ok()) co_return ProxyError(joined.status());
  Response response;
  JsonWriter json(response.body);
  json.BeginObject()
      .Field("operation", "Added " + *request.Param("to") + " for scraping")
      .Field("success", true);
  json.Field("job", id->ToString()).Field("target_url", target->Url());
  json.Field("period", static_cast<double>(target->every) / kSecond);
  json.Field("nodes", *joined).EndObject();
  co_return response;
}

Task<Response> ListJoined(const Context& context, const Request& request) {
  const std::string* only = request.Param("job");
  const Result<std::vector<JobDescription>> jobs =
      co_await Ask(*context.history, &StepHistory::Jobs, kMaxJobs);
  if (!jobs.ok()) co_return ProxyError(jobs.status());
  std::vector<const JobDescription*> wanted;
  std::vector<JobStep> ids;
  for (const JobDescription& job : *jobs) {
    if (only == nullptr ? job.end != 0 : job.id.ToString() != JobStep::Parse(*only).ToString()) {
      continue;
    }
    wanted.push_back(&job);
    ids.push_back(job.id);
  }
  const std::vector<Result<Profile>> profiles = co_await ProfilesOf(*context.history, ids);
  Response response;
  JsonWriter json(response.body);
  json.BeginArray();
  for (size_t i = 0; i < wanted.size(); ++i) {
    const JobDescription& job = *wanted[i];
    const Result<Profile>& profile = profiles[i];
    if (!profile.ok()) continue;
    for (const FootprintEntry& entry : profile->footprint) {
      const std::string* instance = entry.series.tags.Find(kInstance);
      if (entry.series.metric.name != kUp || instance == nullptr) continue;
      json.BeginObject().Field("job", job.id.ToString());
      json.Field("target_url", "http://" + *instance).Field("ttype", "Prometheus");
      json.Field("period", PeriodOf(*profile, *instance));
      // A step that ended is scraped no more.
      const Nanos last = job.end != 0 ? job.end : context.clock->Now();
      json.Field("last_scrape", last / kSecond).Field("up", entry.last).EndObject();
    }
  }
  json.EndArray();
  co_return response;
}

constexpr Route kJoinRoutes[] = {
    {"/join",
     Waits<Join>,
     Waits<Join>,
     {.about = "Has nodes of a running step scrape an exporter until the step ends",
      .params = {{"to", "HOST:PORT[/path] of the exporter", kText, true},
                 {"period", "between scrapes, such as 5 (seconds) or 500ms; 1 s if absent"},
                 {"job", "the step; needed where several run"},
                 {"node", "which node scrapes; * for all"}},
      .answer =
          R"({"type":"object","required":["operation","success","job",)"
          R"("target_url","period","nodes"],"properties":{"operation":{"type":"string"},)"
          R"("success":{"type":"boolean"},"job":{"type":"string"},"target_url":{"type":"string"},)"
          R"("period":{"type":"number"},)"
          R"("nodes":{"type":"string"}},"additionalProperties":false})",
      .body = "{}",
      .example = "?to=localhost:9100&job=4712.0"}},
    {"/join/list",
     Waits<ListJoined>,
     nullptr,
     {.about = "The exporters that running steps scrape",
      .params = {{"job", "only those of this step"}},
      .answer = "[#Exporter]"}}};

}  // namespace

std::span<const Route> JoinRoutes() { return kJoinRoutes; }

}  // namespace sonde::web
