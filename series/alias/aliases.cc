#include "series/alias/aliases.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <utility>

namespace sonde {

// value = scale * metric, scale * metric / over, or scale * (1 - metric / over).
struct Alias {
  std::string_view name;
  std::string_view metric;
  std::string_view unit;
  std::string_view help;
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
constexpr Alias kAliases[] = {
    {.name = "load_average",
     .metric = "node_load1",
     .unit = "1",
     .help = "Load average over 1 minute."},
    {.name = "used_RAM",
     .metric = "node_memory_MemAvailable_bytes",
     .unit = "%",
     .help = "Share of the memory that programs could not get.",
     .scale = 100,
     .over = "node_memory_MemTotal_bytes",
     .complement = true},
    {.name = "cpu_percent",
     .metric = "node_cpu_seconds_total",
     .unit = "%",
     .help = "Share of the processors' time that was not idle.",
     .scale = 100,
     .over = "node_cpu_seconds_total",
     .complement = true,
     .rate = true,
     .summed = "mode",
     .only = "idle|iowait"},
    {.name = "num_running_processes",
     .metric = "task_processes",
     .unit = "1",
     .help = "Processes of the tasks.",
     .summed = "task"},
    {.name = "DeviceUtilization",
     .metric = "gpu_utilization_ratio",
     .unit = "%",
     .help = "Share of the time in which the GPU worked.",
     .scale = 100},
    {.name = "DeviceMemoryUtilization",
     .metric = "gpu_memory_used_bytes",
     .unit = "%",
     .help = "Share of the GPU's memory in use.",
     .scale = 100,
     .over = "gpu_memory_total_bytes"},
    {.name = "DevicePowerUsage",
     .metric = "gpu_power_watts",
     .unit = "watts",
     .help = "Power that the GPU takes."},
    {.name = "db_size",
     .metric = "sonde_db_bytes",
     .unit = "MiB",
     .help = "Size of the node's series so far.",
     .scale = 1.0 / (1 << 20)},
};

const Alias* FindAlias(std::string_view name) {
  const auto* const found = std::find_if(std::begin(kAliases), std::end(kAliases),
                                         [&](const Alias& a) { return a.name == name; });
  return found == std::end(kAliases) ? nullptr : found;
}

// Whether the answer to a query for the metric, with its values scaled, is the answer.
bool IsDirect(const Alias& alias) { return alias.over.empty() && alias.summed.empty(); }

// The downsample that the nodes may do before the ratio is formed; the rest is done afterwards.
bool PushesDown(const QuerySpec& query) {
  return query.downsample && query.downsample->function == Aggregator::kAvg;
}

// Queries every series of the alias by itself.
QuerySpec Fetch(const Alias& alias, const QuerySpec& query, bool divisor) {
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
std::vector<Point> Divide(const Alias& alias, const std::vector<Point>& points,
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

std::vector<SeriesData> Combine(const Alias& alias, const std::vector<QueryResult>& values,
                                const std::vector<QueryResult>* over) {
  const auto own_tags = [&](const QueryResult& result) {
    Tags tags = result.tags;
    tags.Erase(alias.summed);
    return tags;
  };
  std::map<Tags, const std::vector<Point>*> divisors;
  if (over != nullptr) {
    for (const QueryResult& result : *over) divisors[own_tags(result)] = &result.points;
  }
  std::vector<SeriesData> out;
  for (const QueryResult& result : values) {
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

std::vector<QueryResult> Rename(const Alias& alias, const QuerySpec& query,
                                std::vector<QueryResult> results) {
  const double scale = Counts(query) ? 1 : alias.scale;
  for (QueryResult& result : results) {
    result.metric = alias.name;
    for (Point& point : result.points) point.value *= scale;
  }
  return results;
}

// The series of one alias, of those of its metric.
void AddSeries(const Alias& alias, const std::vector<Series>& from, std::vector<Series>& to) {
  std::map<Tags, Series> found;
  for (const Series& one : from) {
    if (one.metric.name != alias.metric) continue;
    Series series = one;
    series.metric.name = alias.name;
    series.metric.unit = alias.unit;
    series.metric.help = alias.help;
    series.metric.type = MetricType::kGauge;
    series.tags.Erase(alias.summed);
    found.try_emplace(series.tags, series);
  }
  for (auto& [tags, series] : found) to.push_back(std::move(series));
}

}  // namespace

std::optional<AliasQuery> AliasQuery::Of(const QuerySpec& query) {
  const Alias* const alias = FindAlias(query.metric);
  if (alias == nullptr) return {};
  return AliasQuery(*alias, query);
}

AliasQuery::AliasQuery(const Alias& alias, const QuerySpec& query) : alias_(&alias), query_(query) {
  if (IsDirect(alias)) {
    specs_.push_back(query);
    specs_.back().metric = alias.metric;
    return;
  }
  specs_.push_back(Fetch(alias, query, false));
  if (!alias.over.empty()) specs_.push_back(Fetch(alias, query, true));
}

std::string_view AliasQuery::metric() const { return alias_->metric; }

Result<std::vector<QueryResult>> AliasQuery::Fold(
    std::vector<std::vector<QueryResult>> answers) const {
  if (IsDirect(*alias_)) return Rename(*alias_, query_, std::move(answers.front()));
  const std::vector<QueryResult>* const over = alias_->over.empty() ? nullptr : &answers.back();
  // The whole query again: a bucket whose mean a node computed has one point now.
  return Evaluate(query_, Combine(*alias_, answers.front(), over));
}

void AddAliases(std::set<std::string>& metrics) {
  for (const Alias& alias : kAliases) {
    if (metrics.contains(std::string(alias.metric))) metrics.emplace(alias.name);
  }
}

std::vector<Series> AliasSeries(const std::vector<Series>& series) {
  std::vector<Series> out;
  for (const Alias& alias : kAliases) {
    const bool taken = std::any_of(series.begin(), series.end(), [&](const Series& one) {
      return one.metric.name == alias.name;
    });
    if (!taken) AddSeries(alias, series, out);
  }
  return out;
}

}  // namespace sonde
