// GET /api/v1/heatmap: one metric of all nodes or tasks of a step, or of all cores, GPUs or devices
// of one node, over time, as tiles. The page draws it, and with one column it is the table of
// nodes.
//
// The members are asked some at a time, one question after the other, and each answer is reduced to
// tiles before the next one is asked for: the memory is that of the tiles and of one answer. Each
// question has the archive look at all nodes. So how many members it is about follows from what is
// stored of them: of a large step, whose nodes have thinned their rows, as of a small one. Values
// are as fine as kMostValues allows (`resolution` in the answer). Where these of a gauge are means
// of several samples, the least and the most of the samples are asked for as well: the extremes of
// tiles would else depend on how long the step has run. Counters are rates over the resolution.
#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <utility>

#include "core/text/metric_title.h"
#include "profiles/json/writer.h"
#include "web/api/heat_members.h"
#include "web/api/heat_tiles.h"
#include "web/api/routes.h"
#include "web/api/time_grid.h"
#include "web/opentsdb/request.h"
#include "web/proxy/snapshot.h"
#include "web/route/gather.h"
#include "web/route/waiting.h"
#include "web/source/answers.h"

namespace sonde::web {
namespace {

constexpr std::string_view kHostTag = kHeatHostTag, kJobTag = "job", kTaskTag = kHeatTaskTag;
constexpr GridParam kColumns = {"columns", 240, 1, 4096};
constexpr uint64_t kMostTiles = 1u << 18;
constexpr size_t kMostNamed = 2000;  // in one question to a running step's nodes
// Values that tiles are made of: of a finished step, and of a running one, whose nodes send them.
constexpr size_t kMostValues = 32u << 20, kMostSentValues = 1u << 20;
// Points that one question has read, and values in its answer; from the nodes of a running step.
constexpr double kReadAtOnce = 4u << 20;
constexpr double kAnsweredAtOnce = 1u << 20, kSentAtOnce = 200'000;
// A series that is read takes as much memory as so many points, besides its own.
constexpr double kPointsOfSeries = 32;
// Points that are read in all.
constexpr double kMostRead = 512u << 20;
// Of what a profile takes in the archive. Rows of hundreds of series take four times as much
// (docs/format.md); if they take less here, a question is found to be too large, and made smaller.
constexpr double kFewestBytesOfPoint = 0.1;

// What is asked of a gauge whose samples are more than can be asked for.
constexpr std::pair<Aggregator, HeatTiles::Of> kExtremes[] = {
    {Aggregator::kAvg, HeatTiles::Of::kMeans},
    {Aggregator::kMin, HeatTiles::Of::kMins},
    {Aggregator::kMax, HeatTiles::Of::kMaxs}};

struct AskedMap {
  JobDescription job;
  Metric metric;
  double series = 0;         // of each member, about
  double stored = INFINITY;  // points of each member that the archive has, about
  TimeGrid grid;
  Nanos resolution = 0;
  bool extremes = false;  // are asked for besides the means
  HeatMembers of;
  std::vector<TagFilter> filters;

  size_t Columns() const {
    return static_cast<size_t>((grid.end - grid.start + grid.interval - 1) / grid.interval);
  }
};

// "mode=user|system,device=not_literal_or(lo)"
Status ReadTags(const Request& request, std::string_view by, std::vector<TagFilter>& filters) {
  const std::string* text = request.Param("tags");
  if (text == nullptr || text->empty()) return {};
  std::string_view rest = *text;
  while (!rest.empty()) {
    const size_t comma = rest.find(',');
    const std::string_view one = rest.substr(0, comma);
    const size_t equals = one.find('=');
    const std::string_view key = one.substr(0, equals);
    if (equals == std::string_view::npos || equals == 0 || equals + 1 == one.size()) {
      return {Code::kInvalid,
              "tags: expected key=value, such as mode=user|system, not '" + std::string(one) + "'"};
    }
    if (key == kHostTag || key == kJobTag || key == kTaskTag || key == by) {
      return {Code::kInvalid, "tags: expected others of the metric, not '" + std::string(key) +
                                  "': use first and count"};
    }
    filters.push_back(FilterOfTag(key, one.substr(equals + 1)));
    filters.back().group_by = false;
    rest = comma == std::string_view::npos ? std::string_view() : rest.substr(comma + 1);
  }
  return {};
}

bool IsOfTasks(const FootprintEntry& entry) { return entry.max_owner.rank != Owner::kNobody; }

// Of the metric's series in the step, which are reduced over nodes and tasks.
void Measure(const Profile& profile, AskedMap& asked) {
  const double nodes = std::max<uint32_t>(1, asked.job.expected_nodes);
  const double tasks = std::max(1.0, asked.job.expected_tasks / nodes);  // of a node
  bool of_tasks = false;
  double of_node = 0, all_of_node = 0;  // series
  for (const FootprintEntry& entry : profile.footprint) {
    const double here = IsOfTasks(entry) ? tasks : 1;
    all_of_node += here;
    if (entry.series.metric.name != asked.metric.name) continue;
    of_node += here;
    ++asked.series;
    of_tasks = of_tasks || IsOfTasks(entry);
  }
  if (!asked.of.host.empty()) {
    asked.series /= std::max(1.0, static_cast<double>(asked.of.all));
    return;
  }
  if (of_tasks && !asked.of.ByTask()) asked.series *= tasks;
  if (profile.cost.stored_bytes > 0) {
    asked.stored = profile.cost.stored_bytes / kFewestBytesOfPoint * of_node / all_of_node /
                   static_cast<double>(std::max<uint64_t>(asked.of.all, 1));
  }
}

// Points of a member that are read if it was measured at each tick: a query reads whole hours.
double MeasuredOfOne(const AskedMap& asked) {
  constexpr Nanos kHour = 3600 * kSecond;
  const Nanos period = std::max(asked.job.period, kMinPeriod);
  const Nanos from = std::max(asked.grid.start - asked.grid.start % kHour, asked.job.start);
  Nanos to = asked.grid.end - asked.grid.end % kHour + kHour;
  if (asked.job.end != 0) to = std::min(to, asked.job.end);
  return asked.series * std::max(1.0, static_cast<double>(to - from) / static_cast<double>(period));
}

double ReadOfOne(const AskedMap& asked) { return std::min(MeasuredOfOne(asked), asked.stored); }

// Chooses the resolution, and columns that begin at one of its buckets.
Status Bound(AskedMap& asked) {
  const Nanos period = std::max(asked.job.period, kMinPeriod);
  const auto steps_of = [&](size_t most) {
    return StepsOf(asked.grid.end - asked.grid.start, asked.grid.parts, period,
                   asked.of.here.size(), most);
  };
  const size_t most = asked.job.end != 0 ? kMostValues : kMostSentValues;
  HeatSteps steps = steps_of(most);
  asked.extremes = steps.resolution > period && !IsCounting(asked.metric.type);
  if (asked.extremes) steps = steps_of(most / std::size(kExtremes));
  asked.resolution = steps.resolution;
  asked.grid.Align(asked.resolution);
  asked.grid.interval = steps.interval;
  while (asked.Columns() > asked.grid.parts) {
    steps.Lengthen(period);
    asked.grid.interval = steps.interval;
  }
  if (asked.of.rows * asked.Columns() > kMostTiles) {
    return {Code::kInvalid, fmt::format("rows times columns: expected at most {} tiles, not {}",
                                        kMostTiles, asked.of.rows * asked.Columns())};
  }
  const double read = ReadOfOne(asked) * static_cast<double>(asked.of.here.size());
  if (asked.job.end != 0 && read > kMostRead) {
    return {Code::kLimit,
            fmt::format("the heatmap needs some {:.0f} points, more than {:.0f}: ask for a shorter "
                        "range, for fewer members (first, count) or for some tags",
                        read, kMostRead)};
  }
  return {};
}

// What lies outside of the step is left out: there is nothing.
Status ReadTimes(const Context& context, const Request& request, AskedMap& asked) {
  const Result<TimeGrid> grid = ReadTimeGrid(context, request, asked.job, kColumns);
  if (!grid.ok()) return grid.status();
  asked.grid = *grid;
  asked.grid.start = std::max(grid->start, asked.job.start);
  asked.grid.end = std::min(grid->end, asked.job.end != 0 ? asked.job.end : context.clock->Now());
  if (asked.grid.end <= asked.grid.start) {
    return {Code::kInvalid, "start and end: expected a range within the step"};
  }
  return {};
}

Task<Result<AskedMap>> ParseAskedMap(const Context& context, const Request& request) {
  const std::string* job = request.Param("job");
  const std::string* metric = request.Param("metric");
  if (job == nullptr || metric == nullptr) {
    co_return Status(Code::kInvalid, "parameters job and metric are needed");
  }
  Result<Profile> profile =
      co_await Ask(*context.history, &StepHistory::GetProfile, JobStep::Parse(*job));
  if (!profile.ok()) co_return profile.status();
  const auto entry =
      std::find_if(profile->footprint.begin(), profile->footprint.end(),
                   [&](const auto& one) { return one.series.metric.name == *metric; });
  if (entry == profile->footprint.end()) {
    co_return Status(Code::kNotFound, "step " + *job + " has no metric '" + *metric + "'");
  }
  AskedMap asked;
  asked.metric = entry->series.metric;
  Result<HeatMembers> members = ReadHeatMembers(request, *profile, *metric);
  if (!members.ok()) co_return members.status();
  asked.of = *std::move(members);
  asked.job = std::move(profile->job);
  if (Status bad = ReadTags(request, asked.of.by, asked.filters); !bad.ok()) co_return bad;
  if (Status bad = ReadTimes(context, request, asked); !bad.ok()) co_return bad;
  Measure(*profile, asked);
  if (Status bad = Bound(asked); !bad.ok()) co_return bad;
  co_return asked;
}

// How many members a question can be about, of `members` that there is room for.
size_t Fitting(const AskedMap& asked, double members, size_t most_named) {
  const bool all = asked.of.here.size() == asked.of.all;
  if (all && members >= static_cast<double>(asked.of.all)) return asked.of.all;
  return static_cast<size_t>(std::clamp(members, 1.0, static_cast<double>(most_named)));
}

// Values in the answer for a member.
double AnsweredOfOne(const AskedMap& asked) {
  return std::max(1.0, static_cast<double>(asked.grid.end - asked.grid.start) /
                           static_cast<double>(asked.resolution));
}

// How many members the archive is asked about at once if it has that many points of each. Their
// names have to fit into a filter.
size_t StoredAtOnce(const AskedMap& asked, double points) {
  const auto kinds = static_cast<double>(asked.extremes ? std::size(kExtremes) : 1);
  const double answered = AnsweredOfOne(asked);
  double members = kReadAtOnce / (std::max(points, 1.0) + asked.series * kPointsOfSeries);
  // An answer has no more values than were read.
  if (answered <= points) members = std::min(members, kAnsweredAtOnce / kinds / answered);
  size_t longest = 0;
  for (const HeatMembers::Member& member : asked.of.here) {
    longest = std::max(longest, member.name.size());
  }
  return Fitting(asked, members, kMaxPatternLength / (longest + 1));
}

// The same of a running step's nodes.
size_t SentAtOnce(const AskedMap& asked) {
  const auto kinds = static_cast<double>(asked.extremes ? std::size(kExtremes) : 1);
  return Fitting(asked, kSentAtOnce / kinds / AnsweredOfOne(asked), kMostNamed);
}

// The question about members [from, to). `in_time`: what is made of a gauge's samples in a bucket.
QuerySpec SpecFor(const AskedMap& asked, size_t from, size_t to, Aggregator in_time) {
  QuerySpec spec;
  spec.metric = asked.metric.name;
  spec.start = asked.grid.start;
  spec.end = asked.grid.end - 1;
  spec.rate = IsCounting(asked.metric.type);
  spec.aggregator = AggregatorOf(asked.metric.reduction);
  spec.downsample =
      Downsample{asked.resolution, spec.rate ? Aggregator::kMax : in_time, Downsample::Fill::kNone};
  spec.filters = asked.filters;
  spec.filters.push_back(
      {TagFilter::Type::kLiteralOr, std::string(kJobTag), asked.job.id.ToString(), false});
  const bool all = to - from == asked.of.all;
  TagFilter which{TagFilter::Type::kWildcard, asked.of.by, "*", true};
  if (!all) {
    which.type = TagFilter::Type::kLiteralOr;
    which.pattern.clear();
    for (size_t i = from; i < to; ++i) {
      which.pattern.append(i == from ? "" : "|").append(asked.of.here[i].name);
    }
  }
  spec.filters.push_back(std::move(which));
  if (asked.of.ByTask()) {
    spec.filters.push_back({TagFilter::Type::kWildcard, std::string(kHostTag), "*", true});
  } else if (!asked.of.host.empty()) {
    spec.filters.push_back(
        {TagFilter::Type::kLiteralOr, std::string(kHostTag), asked.of.host, false});
  }
  return spec;
}

// Puts answers into tiles.
class MapMaker {
 public:
  explicit MapMaker(AskedMap& asked)
      : asked_(asked),
        tiles_({asked.of.here.size(), asked.of.rows, asked.Columns(), asked.grid.start,
                asked.grid.interval}) {
    for (size_t i = 0; i < asked.of.here.size(); ++i) index_.emplace(asked.of.here[i].name, i);
  }

  void Add(const Answer& answer, HeatTiles::Of of) {
    KeepWorst(answer, said_);
    for (const QueryResult& result : answer.results) {
      const std::string* name = result.tags.Find(asked_.of.by);
      const auto at = name == nullptr ? index_.end() : index_.find(*name);
      if (at == index_.end()) continue;
      tiles_.Add(at->second, result.points, of);
      const std::string* host = result.tags.Find(kHostTag);
      if (host != nullptr) hosts_[at->second] = *host;
    }
  }

  std::string ToJson() const;

 private:
  template <typename F>
  void WriteTiles(std::string_view name, JsonWriter& json, F&& value) const;
  void WriteMembers(JsonWriter& json) const;

  AskedMap& asked_;
  HeatTiles tiles_;
  std::map<std::string, size_t, std::less<>> index_;  // of members, by name
  std::map<size_t, std::string> hosts_;               // of tasks
  Answer said_;                                       // of the nodes
};

// A list for each row, with null where nothing was measured.
template <typename F>
void MapMaker::WriteTiles(std::string_view name, JsonWriter& json, F&& value) const {
  json.Key(name).BeginArray();
  for (size_t row = 0; row < tiles_.shape().rows; ++row) {
    json.BeginArray();
    for (size_t column = 0; column < tiles_.shape().columns; ++column) {
      const HeatTile& tile = tiles_.At(row, column);
      if (tile.values == 0) {
        json.Null();
      } else {
        value(tile);
      }
    }
    json.EndArray();
  }
  json.EndArray();
}

void MapMaker::WriteMembers(JsonWriter& json) const {
  json.Field("all", asked_.of.all).Field("first", asked_.of.first).Key("names").BeginArray();
  for (const HeatMembers::Member& member : asked_.of.here) json.Value(member.name);
  json.EndArray();
  if (asked_.of.ByTask()) {
    json.Key("task_hosts").BeginArray();
    for (size_t i = 0; i < asked_.of.here.size(); ++i) {
      const auto host = hosts_.find(i);
      json.Value(host == hosts_.end() ? std::string_view() : std::string_view(host->second));
    }
    json.EndArray();
  }
  json.Key("rows").BeginArray();
  for (size_t row = 0; row < tiles_.shape().rows; ++row) {
    json.BeginArray().Value(tiles_.FirstOf(row)).Value(tiles_.CountOf(row)).EndArray();
  }
  json.EndArray();
}

std::string MapMaker::ToJson() const {
  std::string out;
  JsonWriter json(out);
  const Metric& metric = asked_.metric;
  json.BeginObject().Field("job", asked_.job.id.ToString()).Field("metric", metric.name);
  json.Field("title", MetricTitle(metric.name, metric.help)).Field("help", metric.help);
  json.Field("unit", metric.unit).Field("type", ToString(metric.type));
  json.Field("rate", IsCounting(metric.type)).Field("reduction", ToString(metric.reduction));
  json.Field("by", asked_.of.by);
  if (!asked_.of.host.empty()) json.Field("host", asked_.of.host);
  json.Field("start", static_cast<double>(asked_.grid.start) / kSecond);
  json.Field("end", static_cast<double>(asked_.grid.end) / kSecond);
  json.Field("interval", static_cast<double>(asked_.grid.interval) / kSecond);
  json.Field("resolution", static_cast<double>(asked_.resolution) / kSecond);
  json.Field("columns", tiles_.shape().columns);
  json.Field("nodes_answered", said_.nodes_answered);
  json.Field("nodes_expected", said_.nodes_expected);
  if (!said_.rows_only.empty()) json.Field("rows_only", said_.rows_only);
  WriteMembers(json);
  // More digits are not seen in a colour, and the answer would be twice as long.
  const auto number = [&](double value) {
    std::isfinite(value) ? json.Raw(fmt::format("{:.6g}", value)) : json.Null();
  };
  WriteTiles("mean", json, [&](const HeatTile& tile) { number(tile.Mean()); });
  WriteTiles("min", json, [&](const HeatTile& tile) { number(tile.min); });
  WriteTiles("max", json, [&](const HeatTile& tile) { number(tile.max); });
  if (tiles_.shape().rows < asked_.of.here.size()) {
    WriteTiles("members", json, [&](const HeatTile& tile) { json.Value(tile.members); });
    // Nobody: a running step's nodes had left when the extremes were asked for.
    const auto who = [&](uint32_t at) { at == HeatTile::kNobody ? json.Null() : json.Value(at); };
    WriteTiles("min_at", json, [&](const HeatTile& tile) { who(tile.min_at); });
    WriteTiles("max_at", json, [&](const HeatTile& tile) { who(tile.max_at); });
  }
  json.EndObject();
  return out;
}

Task<Response> GetHeatmap(const Context& context, const Request& request) {
  Result<AskedMap> asked = co_await ParseAskedMap(context, request);
  if (!asked.ok()) co_return ErrorResponse(asked.status());
  MapMaker map(*asked);
  const bool stored = asked->job.end != 0;
  size_t at_once = stored ? StoredAtOnce(*asked, ReadOfOne(*asked)) : SentAtOnce(*asked);
  for (size_t from = 0; from < asked->of.here.size();) {
    const size_t to = std::min(from + at_once, asked->of.here.size());
    std::vector<QuerySpec> questions;
    for (const auto& [in_time, of] : kExtremes) {
      questions.push_back(SpecFor(*asked, from, to, in_time));
      if (!asked->extremes) break;
    }
    const Result<Answers> answers = co_await Gather(context, std::move(questions));
    if (!answers.ok()) {
      // More is stored than was thought: no more than is sure to fit.
      const size_t sure = StoredAtOnce(*asked, MeasuredOfOne(*asked));
      if (!stored || answers.status().code() != Code::kLimit || at_once <= sure) {
        co_return ErrorResponse(answers.status());
      }
      at_once = sure;
      continue;
    }
    for (size_t i = 0; i < answers->size(); ++i) {
      map.Add((*answers)[i], asked->extremes ? kExtremes[i].second : HeatTiles::Of::kAll);
    }
    from = to;
  }
  Response response;
  response.body = map.ToJson();
  MarkFinal(asked->job, response);
  co_return response;
}

constexpr Route kHeatmapRoutes[] = {
    {"/api/v1/heatmap",
     Waits<GetHeatmap>,
     nullptr,
     {.about = "A metric of all nodes or tasks of a step over time, as tiles",
      .params = {{"job", "the step, such as 4711.0", kText, true},
                 {"metric", "name of the metric", kText, true},
                 {"start", "a time as /api/query takes it; the step's start if absent"},
                 {"end", "the step's end if absent"},
                 {"columns", "intervals at most; 240 if absent",
                  R"({"type":"integer","minimum":1,"maximum":4096})"},
                 {"rows", "rows at most, 256 if absent; times columns at most 262144",
                  R"({"type":"integer","minimum":1,"maximum":16384})"},
                 {"by",
                  "what a row is of: host (if absent), task or, within the node that host names, a "
                  "tag of the metric, such as cpu, gpu or device"},
                 {"host", "the node, where by is a tag of the metric"},
                 {"first", "the first node, task or value of the tag, counted from 0", kCount},
                 {"count", "how many from there on; all if absent", kCount},
                 {"tags",
                  "the metric's series to be put together, such as mode=user|system; all if "
                  "absent"}},
      .answer = "#Heatmap",
      .example = "?job=4711.0&metric=node_load1&columns=10&rows=2"}}};

}  // namespace

std::span<const Route> HeatmapRoutes() { return kHeatmapRoutes; }

}  // namespace sonde::web
