// The report, in words and as `sonde show --json` gives it.
#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <sstream>

#include "profiles/archive/node_rows.h"
#include "profiles/report/report.h"
#include "tests/surfaces/figures.h"
#include "tests/surfaces/reading.h"

namespace sonde::surfaces {
namespace {

constexpr double kUlp = std::numeric_limits<double>::epsilon();

// Of all series of the metric the last number; NaN if there is none.
Number TotalOf(const Scene& scene, const std::map<size_t, Figure>& figures,
               const std::string& metric) {
  Number total{std::nan(""), 0};
  for (const auto& [series, figure] : figures) {
    if (scene.plan.series[series].series.metric.name != metric) continue;
    if (std::isnan(total.value)) total = {0, 0};
    total.value += figure.last.value;
    total.error += figure.last.error + kUlp * std::fabs(total.value);
  }
  return total;
}

// What the last points of a host's series come to. A counter that has fallen began anew, and what
// it had counted before stays.
double LastOf(const std::vector<Line>& lines, const std::string& host) {
  double sum = std::nan("");
  for (const Line& line : lines) {
    if (line.tags.at("host") != host) continue;
    double had = 0;
    double last = 0;
    for (const auto& [time, value] : line.points) {
      if (line.counts && value < last) had += last;
      last = value;
    }
    sum = (std::isnan(sum) ? 0 : sum) + had + last;
  }
  return sum;
}

// The most that the tasks of a host had together at one time.
double PeakOf(const std::vector<Line>& lines, const std::string& host) {
  std::map<Nanos, double> sums;
  for (const Line& line : lines) {
    if (line.tags.at("host") != host) continue;
    for (const auto& [time, value] : line.points) sums[time] += value;
  }
  double most = std::nan("");
  for (const auto& [time, sum] : sums) most = std::isnan(most) ? sum : std::max(most, sum);
  return most;
}

void CompareNodes(const Scene& scene, const Json& nodes) {
  const auto lines = [&](const char* metric) { return LinesOf(scene, metric, Points::kAll); };
  const std::vector<Line> cpu = lines("task_cpu_seconds_total");
  const std::vector<Line> memory = lines("task_resident_memory_bytes");
  const std::vector<Line> total = lines("node_memory_MemTotal_bytes");
  const std::vector<Line> received = lines("node_network_receive_bytes_total");
  std::map<std::string, size_t> rows;  // of each host
  for (const Json& node : nodes.items()) ++rows[node["host"].text()];
  std::set<std::string> seen;
  for (const Json& node : nodes.items()) {
    const std::string& host = node["host"].text();
    if (--rows[host] > 0) {  // its daemon was started anew: the last row has all
      scene.tally.Skip("earlier rows of a host in the report");
      continue;
    }
    seen.insert(host);
    const auto compare = [&](const char* member, double expected) {
      scene.tally.Compare(host + " " + member, expected, node[member].number());
    };
    compare("cpu_seconds", LastOf(cpu, host));
    compare("memory_peak_bytes", PeakOf(memory, host));
    compare("memory_total_bytes", LastOf(total, host));
    compare("network_received_bytes", LastOf(received, host));
  }
  for (const std::string& host : HostsOf(scene)) {
    if (!seen.contains(host)) scene.tally.Differ("no row of " + host);
  }
}

void CompareSummary(const Scene& scene, const std::map<size_t, Figure>& figures,
                    const Json& summary) {
  for (const auto& [member, metric] :
       {std::pair("cpu_seconds", "task_cpu_seconds_total"),
        {"network_received_bytes", "node_network_receive_bytes_total"}}) {
    scene.tally.Compare(member, TotalOf(scene, figures, metric), summary[member].number());
  }
}

// The lines "solver_steps_total  LAST  MEAN/s  MIN  MAX  MAX ON", of which numbers have four
// digits.
void CompareTable(const Scene& scene, const std::map<size_t, Figure>& figures,
                  const std::string& report) {
  constexpr double kPrinted = 5e-4;
  for (const auto& [series, figure] : figures) {
    const std::string& metric = scene.plan.series[series].series.metric.name;
    if (metric != "solver_steps_total" && metric != "solver.left") continue;
    std::istringstream lines(report);
    std::string line;
    while (std::getline(lines, line) && !line.starts_with(metric)) {
    }
    std::istringstream cells(line);
    std::string cell;
    cells >> cell;
    if (cell != metric) {
      scene.tally.Differ("the report has no line of " + metric);
      continue;
    }
    const auto compare = [&](const char* what, const Number& expected) {
      cells >> cell;
      const double shown = std::strtod(cell.c_str(), nullptr);
      scene.tally.Compare(metric + " " + what,
                          {expected.value, expected.error + kPrinted * std::fabs(expected.value)},
                          shown);
    };
    compare("last", figure.last);
    compare("mean", figure.mean);
    compare("min", {figure.least.value, 0});
    compare("max", {figure.most.value, 0});
  }
}

}  // namespace

void CheckReport(const Scene& scene) {
  scene.tally.Ask("report", "");
  const sonde::Result<Profile> profile = scene.archive->Load(scene.key);
  if (!profile.ok()) return scene.tally.Differ(std::string(profile.status().message()));
  const sonde::Result<std::vector<NodeRow>> rows =
      ReadNodeRows(*scene.archive, scene.key, profile->job);
  if (!rows.ok()) return scene.tally.Differ(std::string(rows.status().message()));
  const std::map<size_t, Figure> figures = FiguresOf(scene);
  const Json report = Json::Parse(ReportToJson(*profile, *rows, scene.end));
  CompareSummary(scene, figures, report["summary"]);
  CompareNodes(scene, report["nodes"]);
  ReportOptions options;
  options.nodes = *rows;
  options.width = 200;
  CompareTable(scene, figures, RenderReport(*profile, options));
}

}  // namespace sonde::surfaces
