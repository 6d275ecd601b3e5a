// metric-proxy's traces: /trace/plot, its derivative, /trace/read and /trace/json.
#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "tests/surfaces/reading.h"
#include "tests/surfaces/scene.h"

namespace sonde::surfaces {
namespace {

constexpr double kUlp = std::numeric_limits<double>::epsilon();

constexpr const char* kNoSlopes = "slopes of points that may be there or not";

using Trace = std::map<Nanos, Number>;

// Seconds with the digits of a double since 1970.
Nanos TimeOf(double seconds) { return std::llround(seconds * 1000) * kMillisecond; }

std::string AggregatorOf(const Metric& metric) {
  return metric.type == MetricType::kCounter ? "sum" : surfaces::AggregatorOf(metric.reduction);
}

// The trace of one series, as a question of which all is known.
Question QuestionOf(const Scene& scene, const SeriesPlan& series, const std::string& aggregator,
                    size_t points) {
  const Nanos period = scene.plan.period;
  Question q;
  q.metric = series.series.metric.name;
  q.aggregator = aggregator;
  q.start = scene.start;
  q.end = scene.end + period;
  for (const auto& [key, value] : OwnTags(series)) q.filters.push_back({key, value, true});
  q.filters.push_back({"job", scene.job, false});
  const Nanos wanted = (q.end - q.start) / static_cast<Nanos>(points);
  if (wanted <= period) return q;
  q.downsampled = true;
  q.interval = (wanted + period - 1) / period * period;
  q.start -= q.start % q.interval;
  const bool counts = series.series.metric.type == MetricType::kCounter;
  const bool extreme = aggregator == "min" || aggregator == "max";
  q.function = counts ? "last" : extreme ? aggregator : "avg";
  return q;
}

Trace Expected(const Scene& scene, const Question& q, Way way) {
  // A trace does not say whether rows alone made it.
  const std::vector<Result> results = Expect(scene, q, way, RowsMayAnswer(scene));
  return results.empty() ? Trace() : results.front().points;
}

void CompareTrace(const Scene& scene, Trace expected,
                  const std::vector<std::pair<Nanos, double>>& shown, const std::string& what) {
  const auto at = [&](Nanos time) {
    return fmt::format("{} at {:.3f} s", what, static_cast<double>(time - scene.start) / kSecond);
  };
  for (const auto& [time, value] : shown) {
    const auto known = expected.find(time);
    if (known == expected.end()) {
      scene.tally.Differ(fmt::format("{}: a point {:.17g} that nobody expects", at(time), value));
      continue;
    }
    scene.tally.Compare(at(time), known->second, value);
    expected.erase(known);
  }
  std::erase_if(expected, [](const auto& point) { return point.second.may_be_absent(); });
  if (!expected.empty()) scene.tally.Differ(at(expected.begin()->first) + ": no point");
}

std::vector<std::pair<Nanos, double>> PairsOf(const Json& line, Nanos since = 0) {
  std::vector<std::pair<Nanos, double>> pairs;
  for (const Json& pair : line.items()) {
    pairs.emplace_back(since + TimeOf(pair[0].number()), pair[1].number());
  }
  return pairs;
}

// The change per second since the point before; 0 at the first.
Trace Changes(const Trace& line) {
  Trace derived;
  for (auto at = line.begin(); at != line.end(); ++at) {
    if (at == line.begin()) {
      derived[at->first] = {0, 0};
      continue;
    }
    const auto before = std::prev(at);
    const double seconds = static_cast<double>(at->first - before->first) / kSecond;
    const double change = (at->second.value - before->second.value) / seconds;
    const double error = at->second.error + before->second.error;
    derived[at->first] = {change, error > 0 ? error / seconds + kUlp * std::fabs(change) : 0};
  }
  return derived;
}

// Also of the line without what lies behind the newest row.
Trace Derived(const Trace& line) {
  Trace earlier;
  for (const auto& [time, number] : line) {
    const double value = number.earlier.value_or(number.value);
    if (!std::isnan(value)) earlier[time] = {value, number.error};
  }
  Trace derived = Changes(line);
  const Trace of_earlier = Changes(earlier);
  for (auto& [time, number] : derived) {
    const auto at = of_earlier.find(time);
    const double value = at == of_earlier.end() ? std::nan("") : at->second.value;
    if (value != number.value) number.earlier = value;
  }
  return derived;
}

// Each of its points behind the newest row may be in the line or not, and each may be of rows
// alone, so nobody knows its slopes.
bool IsUnsure(const Trace& line) {
  return std::any_of(line.begin(), line.end(), [](const auto& point) {
    return point.second.earlier.has_value() || point.second.of_rows.has_value();
  });
}

// Of a counter whose line is downsampled the rates are asked for.
Trace DerivedOf(const Scene& scene, const Question& q, Way way, bool counts) {
  const Trace line = Expected(scene, q, way);
  if (!counts || !q.downsampled || line.empty()) return Derived(line);
  Question rates = q;
  rates.rate = true;
  Trace derived = Expected(scene, rates, way);
  derived.erase(derived.begin(), derived.upper_bound(line.begin()->first));
  derived[line.begin()->first] = {0, 0};
  return derived;
}

std::string Name(const SeriesPlan& series) {
  return SeriesName(series.series.metric.name, series.series.tags);
}

Shown Ask(const Scene& scene, const std::string& path, const Params& params) {
  std::string text;
  for (const auto& [name, value] : params) text += "&" + name + "=" + value;
  scene.tally.Ask(path + (scene.running ? " (running)" : ""), text);
  Shown shown = Get(scene, path, params);
  if (shown.status != 200) {
    scene.tally.Differ(fmt::format("status {}: {}", shown.status, shown.body));
  }
  return shown;
}

// Whether all answers to such questions are known.
bool AreKnown(const Scene& scene, const std::vector<Question>& questions) {
  for (const Question& q : questions) {
    const Way way = WayOf(scene, q);
    const bool rows_only = way == Way::kWhole && RowsMayAnswer(scene);
    if (way != Way::kUnknown && !(rows_only && !RowsAreKnown(scene, q))) continue;
    scene.tally.Skip(rows_only ? "traces that may be of rows alone, which tell less" : kSwapped);
    return false;
  }
  return true;
}

void CheckPlot(const Scene& scene, const SeriesPlan& series, size_t points, bool derivate) {
  const Metric& metric = series.series.metric;
  const Question q = QuestionOf(scene, series, AggregatorOf(metric), points);
  const Way way = WayOf(scene, q);
  if (!AreKnown(scene, {q})) return;
  if (derivate && IsUnsure(Expected(scene, q, way))) return scene.tally.Skip(kNoSlopes);
  const Shown shown = Ask(scene, "/trace/plot",
                          {{"jobid", scene.job},
                           {"filter", Name(series)},
                           {"points", std::to_string(points)},
                           {"derivate", derivate ? "true" : "false"}});
  if (shown.status != 200) return;
  const bool counts = metric.type == MetricType::kCounter;
  const Trace expected = derivate ? DerivedOf(scene, q, way, counts) : Expected(scene, q, way);
  CompareTrace(scene, expected, PairsOf(Json::Parse(shown.body)), "the line");
}

void CheckRead(const Scene& scene, const SeriesPlan& series, size_t points) {
  const Metric& metric = series.series.metric;
  const bool counts = metric.type == MetricType::kCounter;
  std::vector<std::pair<std::string, std::string>> parts = {{"total", AggregatorOf(metric)}};
  if (counts) {
    parts = {{"value", "sum"}};
  } else {
    parts.insert(parts.end(), {{"min", "min"}, {"max", "max"}});
  }
  std::vector<Question> questions;
  questions.reserve(parts.size());
  for (const auto& [member, aggregator] : parts) {
    questions.push_back(QuestionOf(scene, series, aggregator, points));
  }
  if (!AreKnown(scene, questions)) return;
  const Shown shown =
      Ask(scene, "/trace/read",
          {{"job", scene.job}, {"filter", Name(series)}, {"points", std::to_string(points)}});
  if (shown.status != 200) return;
  const Json answer = Json::Parse(shown.body);
  for (const auto& [member, aggregator] : parts) {
    std::vector<std::pair<Nanos, double>> line;
    for (const Json& pair : answer["time_serie"].items()) {
      const double value = pair[1][counts ? "Counter" : "Gauge"][member].number();
      if (!std::isnan(value)) line.emplace_back(TimeOf(pair[0].number()), value);
    }
    const Question q = QuestionOf(scene, series, aggregator, points);
    CompareTrace(scene, Expected(scene, q, WayOf(scene, q)), line, member);
  }
}

void CheckJson(const Scene& scene, size_t points) {
  const Shown shown =
      Ask(scene, "/trace/json", {{"jobid", scene.job}, {"points", std::to_string(points)}});
  if (shown.status != 200) return;
  const Json answer = Json::Parse(shown.body);
  std::map<std::string, std::pair<Trace, Trace>> expected;
  Nanos first = std::numeric_limits<Nanos>::max();
  for (const SeriesPlan& series : scene.plan.series) {
    const Metric& metric = series.series.metric;
    if (!InRows(scene, metric.name)) {
      scene.tally.Skip("metrics in no row yet");
      continue;
    }
    const Question q = QuestionOf(scene, series, AggregatorOf(metric), points);
    const Way way = WayOf(scene, q);
    if (!AreKnown(scene, {q})) return;
    const Trace line = Expected(scene, q, way);
    if (line.empty()) continue;
    first = std::min(first, line.begin()->first);
    expected[Name(series)] = {line, DerivedOf(scene, q, way, metric.type == MetricType::kCounter)};
  }
  // Times are told from the first point of all lines on.
  for (const auto& [name, lines] : expected) {
    if (!lines.first.begin()->second.may_be_absent()) continue;
    return scene.tally.Skip("/trace/json, whose start may be there or not");
  }
  for (const auto& [name, lines] : expected) {
    if (!answer["metrics"].Has(name)) {
      scene.tally.Differ("no line for " + name);
      continue;
    }
    CompareTrace(scene, lines.first, PairsOf(answer["metrics"][name], first), name);
    if (IsUnsure(lines.first)) {
      scene.tally.Skip(kNoSlopes);
      continue;
    }
    CompareTrace(scene, lines.second, PairsOf(answer["metrics"]["deriv__" + name], first),
                 "deriv__" + name);
  }
}

}  // namespace

void CheckTraces(const Scene& scene) {
  const std::vector<SeriesPlan>& all = scene.plan.series;
  for (const SeriesPlan& series : all) {
    if (!scene.chance.Of(2)) continue;
    if (!InRows(scene, series.series.metric.name)) {
      scene.tally.Skip("metrics in no row yet");
      continue;
    }
    const size_t points = scene.chance.Of(2) ? 10'000 : scene.chance.From(2, 9);
    scene.chance.Of(3) ? CheckRead(scene, series, points)
                       : CheckPlot(scene, series, points, scene.chance.Of(2));
  }
  if (scene.chance.Of(3)) CheckJson(scene, scene.chance.Of(2) ? 10'000 : scene.chance.From(2, 9));
}

}  // namespace sonde::surfaces
