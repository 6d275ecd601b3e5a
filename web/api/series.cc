// GET /api/v1/series: one metric of one step over time, reduced over its nodes, with the names of
// the nodes that hold the extremes. The page draws it.
//
// Counters come as rates per second. Up to kMaxDetail series, those of all nodes and tasks are read
// and reduced here, which gives the extremes their owners; above that the tree reduces, and the
// extremes have no owners. Only hosts of owners are named. A metric that declares its spread has
// percentiles as well.
#include <algorithm>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "profiles/json/writer.h"
#include "profiles/model/presence.h"
#include "series/query/percentile_set.h"
#include "web/api/routes.h"
#include "web/api/time_grid.h"
#include "web/opentsdb/request.h"
#include "web/proxy/snapshot.h"
#include "web/route/gather.h"
#include "web/route/waiting.h"
#include "web/source/answers.h"

namespace sonde::web {
namespace {

constexpr size_t kMaxDetail = 4096;
constexpr GridParam kPoints = {"points", 300, 2, 5000};
constexpr std::string_view kHost = "host", kJob = "job", kTask = "task";

struct Asked {
  JobDescription job;
  Metric metric;
  size_t width = 0;                // how many reduced series the metric has
  std::set<std::string> tag_keys;  // of the metric's own tags
  TimeGrid grid;
  bool by_host = false;
  std::string host;  // of this node alone; "": of all
  std::string task;  // of this task alone

  bool OfOne() const { return !host.empty() || !task.empty(); }
  bool Detailed() const {
    return OfOne() || width * std::max<size_t>(job.nodes.size(), job.expected_tasks) <= kMaxDetail;
  }
};

Status AskedOne(const Request& request, Asked& asked) {
  if (const std::string* host = request.Param(kHost)) {
    const auto is_it = [&](const NodeInfo& node) { return node.host == *host; };
    if (std::none_of(asked.job.nodes.begin(), asked.job.nodes.end(), is_it)) {
      return {Code::kNotFound, "step " + asked.job.id.ToString() + " has no node '" + *host + "'"};
    }
    asked.host = *host;
  }
  const Result<uint64_t> task = NumberParam(request, kTask, 0, 0, 999'999'999);
  if (!task.ok()) return task.status();
  if (request.Param(kTask) != nullptr) asked.task = std::to_string(*task);
  return {};
}

Task<Result<Asked>> ParseAsked(const Context& context, const Request& request) {
  const std::string* job = request.Param("job");
  const std::string* metric = request.Param("metric");
  if (job == nullptr || metric == nullptr) {
    co_return Status(Code::kInvalid, "parameters job and metric are needed");
  }
  Result<Profile> profile =
      co_await Ask(*context.history, &StepHistory::GetProfile, JobStep::Parse(*job));
  if (!profile.ok()) co_return profile.status();
  Asked asked;
  for (const FootprintEntry& entry : profile->footprint) {
    if (entry.series.metric.name != *metric) continue;
    asked.metric = entry.series.metric;
    ++asked.width;
    for (const auto& [key, value] : entry.series.tags.pairs()) asked.tag_keys.insert(key);
  }
  if (asked.metric.name.empty()) {
    co_return Status(Code::kNotFound, "step " + *job + " has no metric '" + *metric + "'");
  }
  asked.job = std::move(profile->job);
  const std::string* by = request.Param("by");
  if (by != nullptr && *by != kHost) co_return Status(Code::kInvalid, "by: expected host");
  asked.by_host = by != nullptr;
  Result<TimeGrid> grid = ReadTimeGrid(context, request, asked.job, kPoints);
  if (!grid.ok()) co_return grid.status();
  asked.grid = *grid;
  asked.grid.Align(asked.grid.interval);
  if (const Status one = AskedOne(request, asked); !one.ok()) co_return one;
  if (asked.by_host && !asked.Detailed()) {
    co_return Status(Code::kLimit, "by=host: the metric has more than 4096 series in this step");
  }
  co_return asked;
}

// One reduced point, as it is written.
struct Column {
  double value = 0, min = 0, max = 0, count = 0;
  double p5 = 0, p50 = 0, p95 = 0;
  Owner min_owner, max_owner;
};
using Lines = std::map<Tags, std::map<Nanos, Column>>;

// The name of each part of a point, and how the tree reduces it; the parts of the spread come last.
struct Part {
  std::string_view name;
  double Column::*value;
  Aggregator aggregator;
  bool spread;
};
constexpr Part kParts[] = {
    {"value", &Column::value, Aggregator::kAvg, false},
    {"min", &Column::min, Aggregator::kMin, false},
    {"max", &Column::max, Aggregator::kMax, false},
    {"count", &Column::count, Aggregator::kCount, false},
    {"p5", &Column::p5, Aggregator::kP5, true},
    {"p50", &Column::p50, Aggregator::kP50, true},
    {"p95", &Column::p95, Aggregator::kP95, true},
};

std::vector<QuerySpec> Specs(const Asked& asked) {
  QuerySpec spec;
  spec.metric = asked.metric.name;
  spec.start = asked.grid.start;
  spec.end = asked.grid.end;
  spec.rate = IsCounting(asked.metric.type);
  // A counter's value at the end of a bucket is its largest.
  spec.downsample = Downsample{asked.grid.interval, spec.rate ? Aggregator::kMax : Aggregator::kAvg,
                               Downsample::Fill::kNone};
  spec.filters.push_back(
      {TagFilter::Type::kLiteralOr, std::string(kJob), asked.job.id.ToString(), false});
  for (const auto& [key, value] : {std::pair(kHost, &asked.host), std::pair(kTask, &asked.task)}) {
    if (value->empty()) continue;
    spec.filters.push_back({TagFilter::Type::kLiteralOr, std::string(key), *value, false});
  }
  if (asked.Detailed()) {
    spec.aggregator = Aggregator::kNone;
    return {spec};
  }
  for (const std::string& key : asked.tag_keys) {
    spec.filters.push_back({TagFilter::Type::kWildcard, key, "*", true});
  }
  std::vector<QuerySpec> specs;
  for (const Part& part : kParts) {
    if (part.spread && !asked.metric.spread) break;
    spec.aggregator = part.aggregator;
    specs.push_back(spec);
  }
  return specs;
}

uint32_t ParseRank(const Tags& tags) {
  const std::string* text = tags.Find(kTask);
  if (text == nullptr || text->empty() || text->size() > 9) return Owner::kNobody;
  uint32_t rank = 0;
  for (const char c : *text) {
    if (c < '0' || c > '9') return Owner::kNobody;
    rank = rank * 10 + static_cast<uint32_t>(c - '0');
  }
  return rank;
}

// Where the hosts of an answer are in the description; a host on which a daemon was started anew is
// at the first of its two places.
using Places = std::map<std::string_view, uint32_t>;
Places PlacesOf(const JobDescription& job, const Answer& answer) {
  Places places;
  for (const QueryResult& result : answer.results) {
    const std::string* host = result.tags.Find(kHost);
    if (host != nullptr) places.emplace(*host, Owner::kNobody);
  }
  for (uint32_t i = 0; i < job.nodes.size(); ++i) {
    const auto at = places.find(job.nodes[i].host);
    if (at != places.end()) at->second = std::min(at->second, i);
  }
  return places;
}

Lines ReduceDetail(const Asked& asked, const Answer& answer) {
  const Places places = PlacesOf(asked.job, answer);
  struct Point {
    Reduced reduced;
    PercentileSet values;
  };
  std::map<Tags, std::map<Nanos, Point>> groups;
  for (const QueryResult& result : answer.results) {
    Owner owner;
    if (const std::string* host = result.tags.Find(kHost)) {
      owner.node = places.at(*host);
    }
    owner.rank = ParseRank(result.tags);
    Tags tags = result.tags;
    tags.Erase(kJob);
    tags.Erase(kTask);
    if (!asked.by_host) tags.Erase(kHost);
    std::map<Nanos, Point>& group = groups[tags];
    for (const auto& [time, value] : result.points) {
      Point& point = group[time];
      point.reduced.Add(value, owner);
      if (asked.metric.spread) point.values.Add(value);
    }
  }
  Lines lines;
  for (const auto& [tags, group] : groups) {
    for (const auto& [time, point] : group) {
      const Reduced& r = point.reduced;
      if (r.count == 0) continue;
      lines[tags][time] = {asked.by_host ? r.Value(asked.metric.reduction) : r.Mean(),
                           r.min,
                           r.max,
                           r.count,
                           point.values.Get(PercentileOf(Aggregator::kP5)),
                           point.values.Get(PercentileOf(Aggregator::kP50)),
                           point.values.Get(PercentileOf(Aggregator::kP95)),
                           r.min_owner,
                           r.max_owner};
    }
  }
  return lines;
}

Lines JoinAggregates(const Asked& asked, const Answers& answers) {
  Lines lines;
  for (size_t part = 0; part < answers.size(); ++part) {
    for (const QueryResult& result : answers[part].results) {
      Tags tags;
      for (const std::string& key : asked.tag_keys) {
        if (const std::string* value = result.tags.Find(key)) tags.Set(key, *value);
      }
      std::map<Nanos, Column>& line = lines[tags];
      for (const Point& point : result.points) line[point.time].*kParts[part].value = point.value;
    }
  }
  return lines;
}

template <typename F>
void WriteColumn(std::string_view name, const std::map<Nanos, Column>& line, JsonWriter& json,
                 F&& value) {
  json.Key(name).BeginArray();
  for (const auto& [time, column] : line) value(time, column);
  json.EndArray();
}

// The hosts of the nodes that hold extremes, in the order of the description.
class OwnersHosts {
 public:
  OwnersHosts(const Lines& lines, const JobDescription& job) {
    for (const auto& [tags, line] : lines) {
      for (const auto& [time, column] : line) {
        for (const Owner& owner : {column.min_owner, column.max_owner}) {
          if (owner.node < job.nodes.size()) places_.emplace(owner.node, 0);
        }
      }
    }
    for (auto& [node, place] : places_) {
      place = static_cast<int64_t>(hosts_.size());
      hosts_.push_back(job.nodes[node].host);
    }
  }
  const std::vector<std::string_view>& hosts() const { return hosts_; }
  // -1: nobody.
  int64_t PlaceOf(const Owner& owner) const {
    const auto at = places_.find(owner.node);
    return at == places_.end() ? -1 : at->second;
  }

 private:
  std::map<uint32_t, int64_t> places_;  // by node
  std::vector<std::string_view> hosts_;
};

void WriteOwners(std::string_view name, const std::map<Nanos, Column>& line, Owner Column::*owner,
                 const OwnersHosts& hosts, JsonWriter& json) {
  WriteColumn(std::string(name) + "_host", line, json,
              [&](Nanos, const Column& column) { json.Value(hosts.PlaceOf(column.*owner)); });
  const bool ranked = std::any_of(line.begin(), line.end(), [&](const auto& entry) {
    return (entry.second.*owner).rank != Owner::kNobody;
  });
  if (!ranked) return;
  WriteColumn(std::string(name) + "_rank", line, json, [&](Nanos, const Column& column) {
    const uint32_t rank = (column.*owner).rank;
    json.Value(rank == Owner::kNobody ? int64_t{-1} : int64_t{rank});
  });
}

void WriteLine(const Tags& tags, const std::map<Nanos, Column>& line, bool spread,
               const OwnersHosts& hosts, JsonWriter& json) {
  json.BeginObject().Key("tags").BeginObject();
  for (const auto& [key, value] : tags.pairs()) json.Field(key, value);
  json.EndObject();
  WriteColumn("time", line, json,
              [&](Nanos time, const Column&) { json.Value(static_cast<double>(time) / kSecond); });
  for (const Part& part : kParts) {
    if (part.spread && !spread) break;
    WriteColumn(part.name, line, json,
                [&](Nanos, const Column& column) { json.Value(column.*part.value); });
  }
  WriteOwners("min", line, &Column::min_owner, hosts, json);
  WriteOwners("max", line, &Column::max_owner, hosts, json);
  json.EndObject();
}

// Of how many nodes each point is at least, where that changes: as many as rows have. Of a host's
// own line it says nothing.
void WriteNodes(const Asked& asked, JsonWriter& json) {
  if (asked.by_host || asked.OfOne() || asked.job.presence.empty()) return;
  json.Key("nodes").BeginArray();
  for (const auto& [time, nodes] :
       NodesOver(asked.job, asked.grid.start, asked.grid.end, asked.grid.interval)) {
    json.BeginArray().Value(static_cast<double>(time) / kSecond).Value(nodes).EndArray();
  }
  json.EndArray();
}

Response SeriesResponse(const Asked& asked, const Answers& answers) {
  const Lines lines =
      asked.Detailed() ? ReduceDetail(asked, answers[0]) : JoinAggregates(asked, answers);
  const Metric& metric = asked.metric;
  Response response;
  JsonWriter json(response.body);
  json.BeginObject().Field("job", asked.job.id.ToString()).Field("metric", metric.name);
  json.Field("unit", metric.unit).Field("type", ToString(metric.type));
  json.Field("rate", IsCounting(metric.type));
  json.Field("reduction", ToString(metric.reduction)).Field("help", metric.help);
  json.Field("start", static_cast<double>(asked.grid.start) / kSecond);
  json.Field("end", static_cast<double>(asked.grid.end) / kSecond);
  json.Field("interval", static_cast<double>(asked.grid.interval) / kSecond);
  Answer all;
  for (const Answer& answer : answers) KeepWorst(answer, all);
  json.Field("nodes_answered", all.nodes_answered);
  json.Field("nodes_expected", all.nodes_expected);
  if (!all.rows_only.empty()) json.Field("rows_only", all.rows_only);
  WriteNodes(asked, json);
  const OwnersHosts hosts(lines, asked.job);
  json.Key("hosts").BeginArray();
  for (const std::string_view host : hosts.hosts()) json.Value(host);
  json.EndArray().Key("series").BeginArray();
  for (const auto& [tags, line] : lines) WriteLine(tags, line, metric.spread, hosts, json);
  json.EndArray().EndObject();
  MarkFinal(asked.job, response);
  return response;
}

Task<Response> GetSeries(const Context& context, const Request& request) {
  const Result<Asked> asked = co_await ParseAsked(context, request);
  if (!asked.ok()) co_return ErrorResponse(asked.status());
  const Result<Answers> answers = co_await Gather(context, Specs(*asked));
  if (!answers.ok()) co_return ErrorResponse(answers.status());
  co_return SeriesResponse(*asked, *answers);
}

constexpr Route kSeriesRoutes[] = {
    {"/api/v1/series",
     Waits<GetSeries>,
     nullptr,
     {.about = "A metric of a step over time, reduced over its nodes and tasks",
      .params = {{"job", "the step, such as 4711.0", kText, true},
                 {"metric", "name of the metric", kText, true},
                 {"start", "a time as /api/query takes it; the step's start if absent"},
                 {"end", "the step's end if absent"},
                 {"points", "how many at most; 300 if absent",
                  R"({"type":"integer","minimum":2,"maximum":5000})"},
                 {"by", "one line for each host", R"({"type":"string","enum":["host"]})"},
                 {"host", "of this node alone"},
                 {"task", "of the task with this rank alone", kCount}},
      .answer = "#Series",
      .example = "?job=4711.0&metric=node_load1&points=10"}}};

}  // namespace

std::span<const Route> SeriesRoutes() { return kSeriesRoutes; }

}  // namespace sonde::web
