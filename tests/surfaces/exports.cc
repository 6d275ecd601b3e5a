// Exported files, as `sonde export --to` writes them: CSV, JSON lines and OpenMetrics, of the whole
// step and of its nodes.
#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <sstream>

#include "forward/formats/openmetrics.h"
#include "forward/formats/table.h"
#include "tests/surfaces/figures.h"
#include "tests/surfaces/reading.h"

namespace sonde::surfaces {
namespace {

// A column: a metric with its suffix, and tags.
using Name = std::pair<std::string, LineTags>;
using Table = std::map<Name, std::map<Nanos, Number>>;

constexpr const char* kPercentiles[] = {"5", "50", "95", "99"};

Table TableOfRows(const Scene& scene) {
  Table table;
  for (const auto& [time, row] : scene.rows.rows()) {
    for (const auto& [s, entries] : row.values) {
      const SeriesPlan& plan = scene.plan.series[s];
      table[{plan.series.metric.name, OwnTags(plan)}][time] = NumberOf(entries, plan.series.metric);
    }
    for (const auto& [s, values] : row.spreads) {
      const SeriesPlan& plan = scene.plan.series[s];
      const bool counts = plan.series.metric.type == MetricType::kCounter;
      const std::string name = plan.series.metric.name + (counts ? "_rate_spread" : "_spread");
      for (size_t i = 0; i < 4; ++i) {
        LineTags tags = OwnTags(plan);
        tags["percentile"] = kPercentiles[i];
        table[{name, tags}][time] = PercentileOf(values, kShares[i], true);
      }
    }
  }
  return table;
}

Table TableOfNodes(const Scene& scene) {
  Table table;
  for (const std::string& metric : MetricsOf(scene.plan)) {
    for (const Line& line : LinesOf(scene, metric, Points::kAll)) {
      LineTags tags = line.tags;
      tags.erase("job");
      for (const auto& [time, value] : line.points) table[{metric, tags}][time] = {value, 0};
    }
  }
  return table;
}

void Compare(const Scene& scene, const std::string& name, const std::map<Nanos, Number>& expected,
             const std::map<Nanos, double>& shown) {
  const auto at = [&](Nanos time) {
    return fmt::format("{} at {:.3f} s", name, static_cast<double>(time - scene.start) / kSecond);
  };
  for (const auto& [time, number] : expected) {
    const auto known = shown.find(time);
    scene.tally.Compare(at(time), number, known == shown.end() ? std::nan("") : known->second);
  }
  for (const auto& [time, value] : shown) {
    if (!expected.contains(time)) {
      scene.tally.Differ(fmt::format("{}: a value {:.17g} that nobody expects", at(time), value));
    }
  }
}

template <typename NameOf>
void CompareAll(const Scene& scene, const Table& table,
                const std::map<std::string, std::map<Nanos, double>>& shown,
                const NameOf& name_of) {
  std::set<std::string> known;
  for (const auto& [name, points] : table) {
    known.insert(name_of(name));
    const auto at = shown.find(name_of(name));
    if (at == shown.end()) {
      scene.tally.Differ("nothing of " + name_of(name) + " among " +
                         (shown.empty() ? "nothing" : shown.begin()->first));
    } else {
      Compare(scene, name_of(name), points, at->second);
    }
  }
  for (const auto& [name, points] : shown) {
    if (name.starts_with("sonde_") || known.contains(name)) continue;
    scene.tally.Differ("a series " + name + " that nobody expects");
  }
}

std::string CsvName(const Name& name) {
  std::string text = name.first;
  for (const auto& [key, value] : name.second) text += "/" + key + "=" + value;
  return text;
}

std::map<std::string, std::map<Nanos, double>> ReadJsonLines(const std::string& text) {
  std::map<std::string, std::map<Nanos, double>> shown;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const Json json = Json::Parse(line);
    if (!json.Has("metric")) continue;
    auto& points = shown[NameWith(json["metric"].text(), TagsOf(json["tags"]))];
    for (size_t i = 0; i < json["times"].items().size(); ++i) {
      points[std::stoll(json["times"][i].text())] = json["values"][i].number();
    }
  }
  return shown;
}

// Of several samples within a millisecond, in which OpenMetrics' times are, the first one is told.
Table InMillis(const Table& table) {
  Table out;
  for (const auto& [name, points] : table) {
    for (const auto& [time, number] : points) {
      out[name].try_emplace(time / kMillisecond * kMillisecond, number);
    }
  }
  return out;
}

std::string Export(const Scene& scene, const std::string& to) {
  const auto destination = forward::ParseDestination(to);
  std::string text;
  const auto write = [&](std::string_view piece) {
    text += piece;
    return Status();
  };
  const auto entry = scene.archive->Entry(scene.key);
  if (!entry.ok()) return {};
  Status status;
  if (destination->protocol == forward::Protocol::kOpenMetrics) {
    status = forward::WriteOpenMetrics(*scene.archive, {*entry}, *destination, write).status();
  } else {
    const auto sink = forward::MakeTableSink(destination->protocol, write);
    status = forward::WriteTable(*scene.archive, *entry, *destination, *sink).status();
  }
  if (!status.ok()) scene.tally.Differ(std::string(status.message()));
  return text;
}

}  // namespace

void CheckExports(const Scene& scene) {
  for (const bool nodes : {false, true}) {
    const std::string scope = nodes ? " scope=node" : " scope=job";
    const Table table = nodes ? TableOfNodes(scene) : TableOfRows(scene);
    scene.tally.Ask("export", "x.csv" + scope);
    CompareAll(scene, table, ReadCsv(Export(scene, "x.csv" + scope)), CsvName);
    scene.tally.Ask("export", "x.jsonl" + scope);
    CompareAll(scene, table, ReadJsonLines(Export(scene, "x.jsonl" + scope)),
               [](const Name& name) { return NameWith(name.first, name.second); });
    scene.tally.Ask("export", "x.om" + scope);
    CompareAll(scene, InMillis(table), ReadOpenMetrics(Export(scene, "x.om" + scope)),
               [&](const Name& name) {
                 LineTags tags = name.second;
                 tags["job"] = scene.job;
                 tags["cluster"] = "frost";
                 tags["user"] = "ada";
                 std::string metric = name.first;
                 std::replace(metric.begin(), metric.end(), '.', '_');
                 return NameWith(metric, tags);
               });
  }
}

}  // namespace sonde::surfaces
