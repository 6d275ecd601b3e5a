// /join, /join/multiple: make a running step scrape exporters, or metric-proxies; /join/list: lists
// these; /disconnect: ends one.
#include <fmt/core.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <set>

#include "core/text/split.h"
#include "profiles/json/writer.h"
#include "web/proxy/each_step.h"
#include "web/proxy/operation.h"
#include "web/proxy/routes.h"
#include "web/proxy/unjoin.h"
#include "web/route/waiting.h"
#include "web/source/running_step.h"
#include "web/source/scrape_target.h"

namespace sonde::web {
namespace {

constexpr size_t kMaxTargets = 16;  // of one request
constexpr Nanos kEvery = kSecond;   // between scrapes, if the request names none
constexpr std::string_view kPeriod = "join_period_seconds", kInstance = "instance";

// The targets of a request, each with its period: between &. metric-proxy does not escape that
// sign, so that all targets but the first come as parameters without a value, and so do periods.
Result<std::vector<ScrapeTarget>> TargetsOf(const Request& request) {
  std::vector<std::string> targets, periods;
  std::vector<std::string>* last = nullptr;
  for (const auto& [key, value] : request.params) {
    if (key == "to" || key == "period") {
      last = key == "to" ? &targets : &periods;
      for (const std::string_view part : Split(value, '&')) last->emplace_back(part);
    } else if (last != nullptr && value.empty() && key != "job" && key != "node") {
      last->push_back(key);
    } else {
      last = nullptr;
    }
  }
  if (targets.empty()) {
    return Status(Code::kInvalid, "the parameter to=HOST:PORT[/path] is needed");
  }
  if (targets.size() > kMaxTargets) {
    return Status(Code::kLimit,
                  fmt::format("{} targets, more than {}", targets.size(), kMaxTargets));
  }
  std::vector<ScrapeTarget> all;
  for (size_t i = 0; i < targets.size(); ++i) {
    Result<ScrapeTarget> target = ParseScrapeTarget(targets[i]);
    if (!target.ok()) return target.status();
    target->every = kEvery;
    if (!periods.empty()) {
      const Result<Nanos> every = ParseScrapePeriod(periods[std::min(i, periods.size() - 1)]);
      if (!every.ok()) return every.status();
      target->every = *every;
    }
    all.push_back(*std::move(target));
  }
  return all;
}

Task<Response> JoinAll(const Context& context, const Request& request, bool one) {
  const Result<std::vector<ScrapeTarget>> targets = TargetsOf(request);
  if (!targets.ok()) co_return ErrorResponse(targets.status());
  if (one && targets->size() > 1) {
    co_return ErrorResponse({Code::kInvalid, "several targets: /join/multiple takes them"});
  }
  const std::string* job = request.Param("job");
  const std::string name = job == nullptr ? std::string() : *job;
  const Result<JobStep> id = co_await RunningStep(*context.history, name);
  if (!id.ok()) co_return ErrorResponse(id.status());
  Request passed_on = request;
  passed_on.waits_for_others = true;
  std::optional<Response> forwarded =
      co_await Ask(*context.control, &StepControl::Forward, *id, passed_on);
  if (forwarded) co_return *std::move(forwarded);
  const std::string* node = request.Param("node");
  const std::string wanted = node == nullptr ? "" : *node;
  std::vector<Result<JoinedNodes>> joined = co_await AskEach<Result<JoinedNodes>>(
      targets->size(), [&](size_t i, StepControl::JoinCallback callback) {
        context.control->Join(*id, (*targets)[i], wanted, std::move(callback));
      });
  for (size_t i = 0; i < joined.size(); ++i) {
    if (joined[i].ok()) continue;
    const Status& status = joined[i].status();
    co_return ErrorResponse({status.code(), fmt::format("{} is not scraped: {}",
                                                        (*targets)[i].Url(), status.message())});
  }
  const std::string* to = request.Param("to");
  Response response;
  JsonWriter json(response.body);
  json.BeginObject()
      .Field("operation", fmt::format("Added {} for scraping", to == nullptr ? "" : *to))
      .Field("success", true);
  json.Field("job", id->ToString()).Field("target_url", targets->front().Url());
  json.Field("period", targets->front().every / kMillisecond);
  json.Field("nodes", joined.front()->scraping);
  json.Field("failed", joined.front()->failed).EndObject();
  co_return response;
}

Task<Response> Join(const Context& context, const Request& request) {
  return JoinAll(context, request, true);
}
Task<Response> JoinMultiple(const Context& context, const Request& request) {
  return JoinAll(context, request, false);
}

// --- /join/list ---

Nanos PeriodOf(const Profile& profile, const std::string& instance) {
  for (const FootprintEntry& entry : profile.footprint) {
    const std::string* other = entry.series.tags.Find(kInstance);
    const bool known = entry.series.metric.name == kPeriod && entry.last > 0;
    if (known && other != nullptr && *other == instance) {
      return static_cast<Nanos>(entry.last * kSecond);
    }
  }
  return kEvery;
}

struct Listed {
  std::string url;
  std::string kind;
  Nanos every = 0;
  Nanos last_scrape = 0;
  std::string_view state;
  std::string node;  // "": a program of the step scrapes it
  std::string why;
};

void WriteListed(const std::string& job, const Listed& one, JsonWriter& json) {
  json.BeginObject().Field("target_url", one.url).Field("ttype", one.kind);
  json.Field("period", one.every / kMillisecond).Field("last_scrape", one.last_scrape / kSecond);
  json.Field("job", job).Field("node", one.node).Field("state", one.state);
  json.Field("up", one.state == ToString(Exporter::State::kUp) ? 1 : 0);
  json.Field("error", one.why).EndObject();
}

Listed ListedOf(const Exporter& exporter) {
  Listed one;
  one.url = exporter.url.empty() ? exporter.target.Url() : exporter.url;
  one.kind = exporter.kind.empty() ? "Prometheus" : exporter.kind;
  one.every = exporter.target.every;
  one.last_scrape = exporter.last_scrape;
  one.state = ToString(exporter.state);
  one.node = exporter.host;
  one.why = exporter.why;
  return one;
}

// Those that programs of the step scrape are known by their metrics alone. The last values of a
// program that has ended stay as they are, so it scrapes as long as it counts its scrapes.
class Scraped {
 public:
  // What it has to know: whether they answered, and how often they were asked.
  static constexpr std::string_view kMetrics[] = {"join_up", "join_scrapes_total"};

  Scraped(Profile profile, const std::set<std::string>& known, Nanos now)
      : profile_(std::move(profile)), now_(now) {
    if (profile_.job.end != 0) return;  // nothing is scraped any more
    for (const FootprintEntry& entry : profile_.footprint) {
      const std::string* instance = entry.series.tags.Find(kInstance);
      if (entry.series.metric.name != kMetrics[1] || instance == nullptr) continue;
      if (!known.contains(*instance)) every_[*instance] = PeriodOf(profile_, *instance);
    }
  }
  bool empty() const { return every_.empty(); }

  QuerySpec SpecOf(std::string_view metric) const {
    QuerySpec spec;
    spec.metric = metric;
    spec.aggregator = metric == kMetrics[0] ? Aggregator::kMax : Aggregator::kSum;
    using Type = TagFilter::Type;
    spec.filters.push_back({Type::kLiteralOr, "job", profile_.job.id.ToString(), false});
    spec.filters.push_back({Type::kWildcard, std::string(kInstance), "*", true});
    Nanos back = kLookBack;
    for (const auto& [instance, every] : every_) back = std::max(back, PatienceOf(every));
    spec.start = std::max<Nanos>(now_ - back, 0);
    spec.end = now_ + kSecond;
    return spec;
  }

  std::vector<Listed> Read(const Answer& ups, const Answer& tries) const {
    std::map<std::string, Listed> found;
    for (const QueryResult& result : tries.results) {
      const std::string* instance = result.tags.Find(kInstance);
      const auto every = instance == nullptr ? every_.end() : every_.find(*instance);
      if (every == every_.end()) continue;
      const Nanos tried = LastRise(result.points);
      if (tried < now_ - PatienceOf(every->second)) continue;
      found[*instance] = {.url = "http://" + *instance,
                          .kind = "Prometheus",
                          .every = every->second,
                          .last_scrape = tried,
                          .state = ToString(Exporter::State::kUp),
                          .node = "",
                          .why = ""};
    }
    for (const QueryResult& result : ups.results) {
      const std::string* instance = result.tags.Find(kInstance);
      const auto one = instance == nullptr ? found.end() : found.find(*instance);
      if (one == found.end() || result.points.empty() || result.points.back().value > 0) continue;
      one->second.state = ToString(Exporter::State::kDown);
      one->second.last_scrape = LastAbove0(result.points);
    }
    std::vector<Listed> all;
    all.reserve(found.size());
    for (auto& [instance, one] : found) all.push_back(std::move(one));
    return all;
  }

 private:
  // In which it last answered, if it does not now.
  static constexpr Nanos kLookBack = 3600 * kSecond;
  static constexpr Nanos kSlack = 5 * kSecond;

  // A scrape takes as long as the time between two at most, and the next tick records it.
  Nanos PatienceOf(Nanos every) const { return 2 * (every + profile_.job.period) + kSlack; }
  static Nanos LastRise(const std::vector<Point>& points) {
    for (size_t i = points.size(); i-- > 1;) {
      if (points[i].value > points[i - 1].value) return points[i].time;
    }
    return points.empty() ? 0 : points.front().time;
  }
  static Nanos LastAbove0(const std::vector<Point>& points) {
    const auto last = std::find_if(points.rbegin(), points.rend(),
                                   [](const Point& point) { return point.value > 0; });
    return last == points.rend() ? 0 : last->time;
  }

  const Profile profile_;
  const Nanos now_;
  std::map<std::string, Nanos> every_;  // by instance
};

Task<std::vector<Listed>> ScrapedByPrograms(const Context& context, const Result<Profile>& profile,
                                            const std::set<std::string>& known) {
  if (!profile.ok()) co_return std::vector<Listed>();
  const Scraped scraped(*profile, known, context.clock->Now());
  if (scraped.empty()) co_return std::vector<Listed>();
  const std::vector<Result<Answer>> answers = co_await AskEach<Result<Answer>>(
      std::size(Scraped::kMetrics), [&](size_t i, StepSeries::Callback callback) {
        context.series->Query(scraped.SpecOf(Scraped::kMetrics[i]), std::move(callback));
      });
  if (!answers[0].ok() || !answers[1].ok()) co_return std::vector<Listed>();
  co_return scraped.Read(*answers[0], *answers[1]);
}

// The exporters of a step whose server this is.
Task<Response> ListOf(const Context& context, JobStep id) {
  const Result<std::vector<Exporter>> exporters =
      co_await Ask(*context.control, &StepControl::Exporters, id);
  const Result<Profile> profile = co_await Ask(*context.history, &StepHistory::GetProfile, id);
  Response response;
  JsonWriter json(response.body);
  json.BeginArray();
  std::set<std::string> known;
  if (exporters.ok()) {
    for (const Exporter& exporter : *exporters) {
      WriteListed(id.ToString(), ListedOf(exporter), json);
      known.insert(exporter.target.Instance());
    }
  }
  for (const Listed& one : co_await ScrapedByPrograms(context, profile, known)) {
    WriteListed(id.ToString(), one, json);
  }
  json.EndArray();
  co_return response;
}

Task<Response> ListJoined(const Context& context, const Request& request) {
  std::vector<JobStep> ids;
  if (const std::string* only = request.Param("job"); only != nullptr && *only != kMainJob) {
    ids.push_back(JobStep::Parse(*only));
  } else {
    const Result<std::vector<JobDescription>> running = co_await RunningSteps(*context.history);
    if (!running.ok()) co_return ErrorResponse(running.status());
    for (const JobDescription& job : *running) ids.push_back(job.id);
  }
  std::vector<std::optional<Response>> answers = co_await ForwardToEach(context, request.path, ids);
  for (size_t i = 0; i < ids.size(); ++i) {
    if (!answers[i]) answers[i] = co_await ListOf(context, ids[i]);
  }
  co_return Together(answers, "[]");
}

// --- /disconnect ---

Task<Response> Disconnect(const Context& context, const Request& request) {
  const std::string* target = request.Param("target");
  if (target == nullptr) {
    co_return ErrorResponse({Code::kInvalid, "the parameter target=HOST:PORT is needed"});
  }
  const Status status = co_await Unjoin(context, request, *target);
  if (!status.ok()) co_return ErrorResponse(status);
  co_return Success(fmt::format("Removed {} from scraping", *target));
}

constexpr std::string_view kJoined =
    R"({"type":"object","required":["operation","success","job",)"
    R"("target_url","period","nodes","failed"],"properties":{"operation":{"type":"string"},)"
    R"("success":{"type":"boolean"},"job":{"type":"string"},"target_url":{"type":"string"},)"
    R"("period":{"type":"integer","description":"ms"},"nodes":{"type":"string"},)"
    R"("failed":{"type":"string"}},"additionalProperties":false})";
constexpr RouteParam kBetween = {"period", "between scrapes, in ms or such as 5s; 1000 if absent"};
constexpr RouteParam kNode = {"node", "which node scrapes; * for all"};

constexpr Route kJoinRoutes[] = {
    {"/join",
     Waits<Join>,
     Waits<Join>,
     {.about = "Has nodes of a running step scrape an exporter until the step ends",
      .params = {{"to", "HOST:PORT[/path] of the exporter or metric-proxy", kText, true},
                 kBetween,
                 kWhereSeveralRun,
                 kNode},
      .answer = kJoined,
      .body = "{}",
      .example = "?to=localhost:9100&job=4712.0",
      .changes = true}},
    {"/join/multiple",
     Waits<JoinMultiple>,
     Waits<JoinMultiple>,
     {.about = "The same for several exporters; the answer's nodes are those of the first",
      .params = {{"to", "HOST:PORT of each, with & between them", kText, true},
                 {"period", "one for all, or one for each with & between them"},
                 kWhereSeveralRun,
                 kNode},
      .answer = kJoined,
      .body = "{}",
      .example = "?to=localhost:9100%26localhost:9101&job=4712.0",
      .changes = true}},
    {"/join/list",
     Waits<ListJoined>,
     nullptr,
     {.about = "The exporters that running steps scrape, or could not scrape",
      .params = {{"job", "only those of this step"}},
      .answer = "[#Exporter]"}},
    {"/disconnect",
     Waits<Disconnect>,
     Waits<Disconnect>,
     {.about = "An exporter is not scraped any more",
      .params = {{"target", "its HOST:PORT", kText, true}, kWhereSeveralRun},
      .answer = "#Operation",
      .body = "{}",
      .example = "?target=localhost:9100&job=4712.0",
      .changes = true}}};

}  // namespace

std::span<const Route> JoinRoutes() { return kJoinRoutes; }

}  // namespace sonde::web
