#include "tests/surfaces/figures.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "tests/surfaces/reading.h"

namespace sonde::surfaces {
namespace {

constexpr double kUlp = std::numeric_limits<double>::epsilon();
constexpr const char* kPercentiles[] = {"5", "50", "95", "99"};

bool Comes(const Extreme& a, const Extreme& b) {
  return std::pair(a.daemon, a.task) < std::pair(b.daemon, b.task);
}

// Means over ticks, added up one after the other. `size`: what was in the sum meanwhile, besides
// the numbers themselves.
Number MeanOf(const std::vector<Number>& numbers, double size = 0) {
  double sum = 0;
  double error = 0;
  for (const Number& number : numbers) {
    sum += number.value;
    size += std::fabs(number.value);
    error += number.error;
  }
  const auto n = static_cast<double>(numbers.size());
  // Late parts are taken into the sum later, so in another order.
  return {sum / n, error / n + 4 * kUlp * size};
}

void AddSpreads(const Scene& scene, size_t series, Figure& figure) {
  std::vector<Number> all[4];
  double size = 0;  // before a late part came, any of the values may have been the percentile
  for (const auto& [time, row] : scene.rows.rows()) {
    const auto values = row.spreads.find(series);
    if (values == row.spreads.end()) continue;
    double most = 0;
    for (const double value : values->second) most = std::max(most, std::fabs(value));
    size += most;
    for (size_t i = 0; i < 4; ++i) {
      all[i].push_back(PercentileOf(values->second, kShares[i], true));
    }
  }
  if (all[0].empty()) return;
  figure.spread.emplace();
  for (size_t i = 0; i < 4; ++i) {
    figure.spread->last[i] = all[i].back();
    figure.spread->mean[i] = MeanOf(all[i], size);
  }
}

// Of a gauge over all rows. Of a counter the smallest is of the final values.
Figure FigureOf(const Scene& scene, size_t series) {
  const Metric& metric = scene.plan.series[series].series.metric;
  const bool counts = metric.type == MetricType::kCounter;
  Figure figure;
  std::vector<Number> numbers;
  Nanos last_time = 0;
  for (const auto& [time, row] : scene.rows.rows()) {
    const auto entries = row.values.find(series);
    if (entries == row.values.end()) continue;
    numbers.push_back(NumberOf(entries->second, metric));
    const Extreme least = LeastOf(entries->second);
    const Extreme most = MostOf(entries->second);
    const bool first = figure.ticks++ == 0;
    last_time = time;
    if (first || counts || least.value < figure.least.value ||
        (least.value == figure.least.value && Comes(least, figure.least))) {
      figure.least = least;
    }
    if (first || most.value > figure.most.value ||
        (most.value == figure.most.value && Comes(most, figure.most))) {
      figure.most = most;
    }
  }
  if (numbers.empty()) return figure;
  figure.last = numbers.back();
  figure.mean = MeanOf(numbers);
  if (counts) {
    const double seconds = static_cast<double>(last_time - scene.start) / kSecond;
    const double mean = figure.last.value / seconds;
    figure.mean = {mean, figure.last.error / seconds + 4 * kUlp * std::fabs(mean)};
  }
  if (metric.spread) AddSpreads(scene, series, figure);
  return figure;
}

// Nothing if the answer is an error or has no such member, which differs.
std::optional<Json> AskFor(const Scene& scene, const std::string& path, const Params& params,
                           const std::string& member) {
  std::string text;
  for (const auto& [name, value] : params) text += "&" + name + "=" + value;
  scene.tally.Ask(path + (scene.running ? " (running)" : ""), text);
  const Shown shown = Get(scene, path, params);
  if (shown.status != 200) {
    scene.tally.Differ(fmt::format("status {}: {}", shown.status, shown.body));
    return {};
  }
  const Json answer = Json::Parse(shown.body);
  if (answer.Has(member)) return answer[member];
  scene.tally.Differ("no member '" + member + "'");
  return {};
}

std::string Name(const Scene& scene, size_t series) {
  const Series& of = scene.plan.series[series].series;
  return SeriesName(of.metric.name, of.tags);
}

void CompareOwner(const Scene& scene, const std::string& at, const Extreme& expected,
                  const Json& owner) {
  scene.tally.Compare(at + ".node", static_cast<double>(expected.daemon), owner["node"].number());
  scene.tally.Compare(at + ".host", scene.plan.daemons[expected.daemon].host, owner["host"].text());
  const double rank = owner.Has("rank") ? owner["rank"].number() : std::nan("");
  const double task = expected.task == kNobody ? std::nan("") : static_cast<double>(expected.task);
  scene.tally.Compare(at + ".rank", task, rank);
}

void CompareEntry(const Scene& scene, const std::string& name, const Figure& figure,
                  const Json& entry) {
  Tally& tally = scene.tally;
  tally.Compare(name + " ticks", static_cast<double>(figure.ticks), entry["ticks"].number());
  tally.Compare(name + " last", figure.last, entry["last"].number());
  tally.Compare(name + " mean", figure.mean, entry["mean"].number());
  tally.Compare(name + " min", figure.least.value, entry["min"].number());
  tally.Compare(name + " max", figure.most.value, entry["max"].number());
  CompareOwner(scene, name + " min_owner", figure.least, entry["min_owner"]);
  CompareOwner(scene, name + " max_owner", figure.most, entry["max_owner"]);
  if (!figure.spread) return;
  for (size_t i = 0; i < 4; ++i) {
    const std::string p = std::string("p") + kPercentiles[i];
    tally.Compare(name + " last " + p, figure.spread->last[i], entry["spread"]["last"][p].number());
    tally.Compare(name + " mean " + p, figure.spread->mean[i], entry["spread"]["mean"][p].number());
  }
}

void CheckProfile(const Scene& scene, const std::map<size_t, Figure>& figures) {
  const auto footprint = AskFor(scene, "/api/v1/profile", {{"job", scene.job}}, "footprint");
  if (!footprint) return;
  std::map<std::string, const Json*> shown;
  for (const Json& entry : footprint->items()) {
    const std::string name = NameWith(entry["metric"].text(), TagsOf(entry["tags"]));
    if (!shown.emplace(name, &entry).second) scene.tally.Differ("two entries of " + name);
  }
  for (const auto& [series, figure] : figures) {
    const SeriesPlan& plan = scene.plan.series[series];
    const auto at = shown.find(NameWith(plan.series.metric.name, OwnTags(plan)));
    if (at == shown.end()) {
      scene.tally.Differ("no entry of " + Name(scene, series));
    } else {
      CompareEntry(scene, Name(scene, series), figure, *at->second);
      shown.erase(at);
    }
  }
  for (const auto& [name, entry] : shown) {
    if (name.starts_with("sonde_")) continue;  // what the daemons say of themselves
    scene.tally.Differ("an entry of " + name + " that nobody expects");
  }
}

void CheckMetrics(const Scene& scene, const std::map<size_t, Figure>& figures) {
  scene.tally.Ask(scene.running ? "/metrics (running)" : "/metrics", "");
  const Shown shown = Get(scene, "/metrics", {{"job", scene.job}});
  if (shown.status != 200) {
    return scene.tally.Differ(fmt::format("status {}: {}", shown.status, shown.body));
  }
  std::map<std::string, double> samples = ReadExposition(shown.body);
  const auto compare = [&](std::string name, LineTags tags, const Number& expected) {
    std::replace(name.begin(), name.end(), '.', '_');
    tags["job"] = scene.job;
    const auto at = samples.find(NameWith(name, tags));
    scene.tally.Compare(NameWith(name, tags), expected,
                        at == samples.end() ? std::nan("") : at->second);
    if (at != samples.end()) samples.erase(at);
  };
  for (const auto& [series, figure] : figures) {
    const SeriesPlan& plan = scene.plan.series[series];
    const Metric& metric = plan.series.metric;
    compare(metric.name, OwnTags(plan), figure.last);
    for (size_t i = 0; figure.spread && i < 4; ++i) {
      LineTags tags = OwnTags(plan);
      tags["percentile"] = kPercentiles[i];
      compare(metric.name + (metric.type == MetricType::kCounter ? "_rate_spread" : "_spread"),
              tags, figure.spread->last[i]);
    }
  }
  for (const auto& [name, value] : samples) {
    if (name.starts_with("sonde_")) continue;  // what the daemons say of themselves
    scene.tally.Differ(fmt::format("{}: a sample {:.17g} that nobody expects", name, value));
  }
}

void CheckSnapshot(const Scene& scene, const std::map<size_t, Figure>& figures) {
  const auto counters = AskFor(scene, "/job", {{"job", scene.job}}, "counters");
  if (!counters) return;
  std::map<std::string, const Json*> shown;
  for (const Json& counter : counters->items()) {
    const std::string& name = counter["name"].text();
    if (!shown.emplace(name, &counter["ctype"]).second) scene.tally.Differ("two of " + name);
  }
  for (const auto& [series, figure] : figures) {
    const std::string name = Name(scene, series);
    const auto at = shown.find(name);
    if (at == shown.end()) {
      scene.tally.Differ("no counter " + name);
      continue;
    }
    if (scene.plan.series[series].series.metric.type == MetricType::kCounter) {
      scene.tally.Compare(name, figure.last, (*at->second)["Counter"]["value"].number());
      continue;
    }
    const Json& gauge = (*at->second)["Gauge"];
    const auto ticks = static_cast<double>(figure.ticks);
    const double total = figure.mean.value * ticks;
    scene.tally.Compare(name + " hits", ticks, gauge["hits"].number());
    scene.tally.Compare(name + " min", figure.least.value, gauge["min"].number());
    scene.tally.Compare(name + " max", figure.most.value, gauge["max"].number());
    scene.tally.Compare(name + " total",
                        {total, figure.mean.error * ticks + 4 * kUlp * std::fabs(total)},
                        gauge["total"].number());
  }
  if (const auto walltime = shown.extract("walltime"); !walltime.empty() != !scene.running) {
    scene.tally.Differ("a walltime of a step that runs, or none");
  } else if (!walltime.empty()) {
    scene.tally.Compare("walltime", static_cast<double>(scene.end - scene.start) / kSecond,
                        (*walltime.mapped())["Counter"]["value"].number());
  }
  for (const auto& counter : shown) {
    const std::string& name = counter.first;
    const bool known = std::any_of(figures.begin(), figures.end(), [&](const auto& figure) {
      return Name(scene, figure.first) == name;
    });
    if (!known && !name.starts_with("sonde_")) scene.tally.Differ("a counter " + name);
  }
}

}  // namespace

std::map<size_t, Figure> FiguresOf(const Scene& scene) {
  std::map<size_t, Figure> figures;
  for (size_t s = 0; s < scene.plan.series.size(); ++s) {
    const Figure figure = FigureOf(scene, s);
    if (figure.ticks > 0) figures[s] = figure;
  }
  return figures;
}

void CheckFigures(const Scene& scene) {
  const std::map<size_t, Figure> figures = FiguresOf(scene);
  CheckProfile(scene, figures);
  CheckMetrics(scene, figures);
  CheckSnapshot(scene, figures);
}

// The last value of each task of the last 25 s, or of 3 periods, on each node by the reduction.
void CheckNodeMetrics(const Scene& scene) {
  scene.tally.Ask(scene.running ? "/metrics?scope=node (running)" : "/metrics?scope=node", "");
  const Shown shown = Get(scene, "/metrics", {{"job", scene.job}, {"scope", "node"}});
  if (shown.status != 200) {
    return scene.tally.Differ(fmt::format("status {}: {}", shown.status, shown.body));
  }
  std::map<std::string, double> samples = ReadExposition(shown.body);
  const std::map<size_t, Figure> figures = FiguresOf(scene);
  for (size_t s = 0; s < scene.plan.series.size(); ++s) {
    // What is in no row yet is not known to be measured.
    if (!figures.contains(s)) {
      scene.tally.Skip("metrics in no row yet");
      continue;
    }
    const SeriesPlan& plan = scene.plan.series[s];
    Question q;
    q.metric = plan.series.metric.name;
    q.aggregator = AggregatorOf(plan.series.metric.reduction);
    q.downsampled = true;
    q.function = "last";
    q.end = scene.end + kSecond;
    q.start = scene.end - std::max(25 * kSecond, 3 * scene.plan.period);
    q.filters.push_back({"host", "*", true});
    for (const auto& [key, value] : OwnTags(plan)) q.filters.push_back({key, value, true});
    for (const Result& result : Evaluate(q, LinesOf(scene, q.metric, Points::kAll))) {
      LineTags tags = OwnTags(plan);
      tags["host"] = result.tags.at("host");
      tags["job"] = scene.job;
      std::string name = q.metric;
      std::replace(name.begin(), name.end(), '.', '_');
      const auto at = samples.find(NameWith(name, tags));
      scene.tally.Compare(NameWith(name, tags), result.points.begin()->second,
                          at == samples.end() ? std::nan("") : at->second);
      if (at != samples.end()) samples.erase(at);
    }
  }
  for (const auto& [name, value] : samples) {
    if (name.starts_with("sonde_")) continue;  // what the daemons say of themselves
    scene.tally.Differ(fmt::format("{}: a sample {:.17g} that nobody expects", name, value));
  }
}

}  // namespace sonde::surfaces
