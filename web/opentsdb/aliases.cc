#include "web/opentsdb/aliases.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <string>
#include <utility>

namespace sonde::web {

// value = scale * metric, scale * metric / over, or scale * (1 - metric / over).
struct OpenTsdbAlias {
  std::string_view name;
  std::string_view metric;
  double scale = 1;
  std::string_view over;
  bool complement = false;
  bool rate = false;        // of counters: their rates
  std::string_view summed;  // a tag of the metric that the alias does not have
  std::string_view only;    // the values of that tag that count for `metric`, for literal_or
};

namespace {

// Units are those of Dragon's collector (src/dragon/telemetry/collector.py): percent from 0 to 100
// of memory and processor as psutil gives them, watts, and MB of 2^20 bytes. Its
// num_running_processes are the user's processes; here they are the tasks' own with all
// descendants.
constexpr OpenTsdbAlias kAliases[] = {
    {.name = "load_average", .metric = "node_load1"},
    {.name = "used_RAM",
     .metric = "node_memory_MemAvailable_bytes",
     .scale = 100,
     .over = "node_memory_MemTotal_bytes",
     .complement = true},
    {.name = "cpu_percent",
     .metric = "node_cpu_seconds_total",
     .scale = 100,
     .over = "node_cpu_seconds_total",
     .complement = true,
     .rate = true,
     .summed = "mode",
     .only = "idle|iowait"},
    {.name = "num_running_processes", .metric = "task_processes", .summed = "task"},
    {.name = "DeviceUtilization", .metric = "gpu_utilization_ratio", .scale = 100},
    {.name = "DeviceMemoryUtilization",
     .metric = "gpu_memory_used_bytes",
     .scale = 100,
     .over = "gpu_memory_total_bytes"},
    {.name = "DevicePowerUsage", .metric = "gpu_power_watts"},
    {.name = "db_size", .metric = "sonde_db_bytes", .scale = 1.0 / (1 << 20)},
};

const OpenTsdbAlias* FindAlias(std::string_view name) {
  const auto* const found = std::find_if(std::begin(kAliases), std::end(kAliases),
                                         [&](const OpenTsdbAlias& a) { return a.name == name; });
  return found == std::end(kAliases) ? nullptr : found;
}

// Whether the answer to a query for the metric, with its values scaled, is the answer.
bool IsDirect(const OpenTsdbAlias& alias) { return alias.over.empty() && alias.summed.empty(); }

// The downsample that the nodes may do before the ratio is formed; the rest is done afterwards.
bool PushesDown(const QuerySpec& query) {
  return query.downsample && query.downsample->function == Aggregator::kAvg;
}

// Queries every series of the alias by itself.
QuerySpec Fetch(const OpenTsdbAlias& alias, const QuerySpec& query, bool divisor) {
  QuerySpec fetch;
  fetch.metric = divisor ? alias.over : alias.metric;
  fetch.aggregator = alias.summed.empty() ? Aggregator::kNone : Aggregator::kSum;
  fetch.rate = alias.rate;
  fetch.filters = query.filters;
  if (!alias.summed.empty()) {
    for (const char* key : {"host", "job"}) {
      fetch.filters.push_back({TagFilter::Type::kWildcard, key, "*", true});
    }
  }
  if (!divisor && !alias.only.empty()) {
    fetch.filters.push_back(
        {TagFilter::Type::kLiteralOr, std::string(alias.summed), std::string(alias.only), false});
  }
  if (PushesDown(query)) {
    fetch.downsample = query.downsample;
    fetch.downsample->fill = Downsample::Fill::kNone;
  }
  const TimeRange range = DataRange(query);
  fetch.start = std::max<Nanos>(range.first, 0);
  fetch.end = std::clamp(range.last, query.end, kMaxQueryTime);
  return fetch;
}

// Divides by `over`; where `over` has no point, or 0, the value is missing.
std::vector<Point> Divide(const OpenTsdbAlias& alias, const std::vector<Point>& points,
                          const std::vector<Point>& over) {
  std::vector<Point> out;
  auto divisor = over.begin();
  for (const Point& point : points) {
    while (divisor != over.end() && divisor->time < point.time) ++divisor;
    if (divisor == over.end()) break;
    if (divisor->time != point.time || divisor->value == 0) continue;
    const double ratio = point.value / divisor->value;
    out.push_back({point.time, alias.scale * (alias.complement ? 1 - ratio : ratio)});
  }
  return out;
}

std::vector<SeriesData> Combine(const OpenTsdbAlias& alias, const Answer& values,
                                const Answer* over) {
  const auto own_tags = [&](const QueryResult& result) {
    Tags tags = result.tags;
    tags.Erase(alias.summed);
    return tags;
  };
  std::map<Tags, const std::vector<Point>*> divisors;
  if (over != nullptr) {
    for (const QueryResult& result : over->results) divisors[own_tags(result)] = &result.points;
  }
  std::vector<SeriesData> out;
  for (const QueryResult& result : values.results) {
    SeriesData data;
    data.series.metric.name = alias.name;
    data.series.tags = own_tags(result);
    if (over == nullptr) {
      data.points = result.points;
      for (Point& point : data.points) point.value *= alias.scale;
    } else if (const auto at = divisors.find(data.series.tags); at != divisors.end()) {
      data.points = Divide(alias, result.points, *at->second);
    }
    if (!data.points.empty()) out.push_back(std::move(data));
  }
  return out;
}

// Counting counts points, whatever the unit.
bool Counts(const QuerySpec& query) {
  return query.aggregator == Aggregator::kCount ||
         (query.downsample && query.downsample->function == Aggregator::kCount);
}

Answer Rename(const OpenTsdbAlias& alias, const QuerySpec& query, Answer answer) {
  const double scale = Counts(query) ? 1 : alias.scale;
  for (QueryResult& result : answer.results) {
    result.metric = alias.name;
    for (Point& point : result.points) point.value *= scale;
  }
  return answer;
}

// Adds the alias's series, made from those of its metric in `from`.
void AddAlias(const OpenTsdbAlias& alias, const std::vector<Series>& from,
              std::vector<Series>& to) {
  std::map<Tags, Series> found;
  for (const Series& one : from) {
    if (one.metric.name != alias.metric) continue;
    Series series = one;
    series.metric.name = alias.name;
    series.tags.Erase(alias.summed);
    found.try_emplace(series.tags, series);
  }
  for (auto& [tags, series] : found) to.push_back(std::move(series));
}

}  // namespace

Task<OpenTsdbPlan> OpenTsdbPlan::Make(const StepSeries& series, std::vector<QuerySpec> queries) {
  OpenTsdbPlan plan;
  std::vector<QuerySpec>& specs = plan.specs_;
  for (const QuerySpec& query : queries) {
    const OpenTsdbAlias* alias = FindAlias(query.metric);
    if (alias != nullptr) {
      const Result<std::vector<Series>> own =
          co_await Ask(series, &StepSeries::ListSeries, query.metric, size_t{1});
      if (!own.ok() || !own->empty()) alias = nullptr;
    }
    plan.parts_.push_back({alias, query, specs.size()});
    if (alias == nullptr) {
      specs.push_back(query);
    } else if (IsDirect(*alias)) {
      specs.push_back(query);
      specs.back().metric = alias->metric;
    } else {
      specs.push_back(Fetch(*alias, query, false));
      if (!alias->over.empty()) specs.push_back(Fetch(*alias, query, true));
    }
  }
  co_return plan;
}

Result<Answers> OpenTsdbPlan::Fold(Answers answers) const {
  Answers folded;
  for (const Part& part : parts_) {
    Answer& values = answers[part.first];
    if (part.alias == nullptr) {
      folded.push_back(std::move(values));
    } else if (IsDirect(*part.alias)) {
      folded.push_back(Rename(*part.alias, part.query, std::move(values)));
    } else {
      const Answer* over = part.alias->over.empty() ? nullptr : &answers[part.first + 1];
      // The whole query again: a bucket whose mean a node computed has one point now.
      Result<std::vector<QueryResult>> results =
          Evaluate(part.query, Combine(*part.alias, values, over));
      if (!results.ok()) return results.status();
      folded.push_back({*std::move(results), values.nodes_answered, values.nodes_expected});
    }
  }
  return folded;
}

Task<Result<SeriesNames>> NamesAndAliases(const StepSeries& series) {
  Result<SeriesNames> names = co_await Ask(series, &StepSeries::Names);
  if (!names.ok()) co_return names;
  for (const OpenTsdbAlias& alias : kAliases) {
    if (names->metrics.contains(std::string(alias.metric))) names->metrics.emplace(alias.name);
  }
  co_return names;
}

Task<Result<std::vector<Series>>> ListSeriesAndAliases(const StepSeries& series, std::string metric,
                                                       size_t limit) {
  Result<std::vector<Series>> real = co_await Ask(series, &StepSeries::ListSeries, metric, limit);
  if (!real.ok()) co_return real;
  if (metric.empty()) {
    std::vector<Series> all = *real;
    for (const OpenTsdbAlias& alias : kAliases) {
      const bool taken = std::any_of(real->begin(), real->end(), [&](const Series& one) {
        return one.metric.name == alias.name;
      });
      if (!taken) AddAlias(alias, *real, all);
    }
    co_return all;
  }
  const OpenTsdbAlias* alias = real->empty() ? FindAlias(metric) : nullptr;
  if (alias == nullptr) co_return real;
  const Result<std::vector<Series>> from =
      co_await Ask(series, &StepSeries::ListSeries, std::string(alias->metric), limit);
  if (!from.ok()) co_return from;
  std::vector<Series> all;
  AddAlias(*alias, *from, all);
  co_return all;
}

}  // namespace sonde::web
