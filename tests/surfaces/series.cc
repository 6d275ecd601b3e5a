// /api/v1/series, from which the page draws: each point from all nodes and tasks, who has the
// extremes, and of how many nodes it is.
#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "tests/surfaces/reading.h"
#include "tests/surfaces/scene.h"

namespace sonde::surfaces {
namespace {

constexpr double kUlp = std::numeric_limits<double>::epsilon();
constexpr size_t kMostExact = 64;  // values, before a sketch takes their place

Nanos TimeOf(const Json& seconds) { return std::llround(seconds.number() * 1000) * kMillisecond; }

// One value of a point, and who has it.
struct Held {
  double value = 0;
  std::string host;
  int64_t task = -1;
};
// By the tags of a line and the time.
using Expected = std::map<LineTags, std::map<Nanos, std::vector<Held>>>;

class SeriesCheck {
 public:
  SeriesCheck(const Scene& scene, const Metric& metric, bool by_host, const Json& answer)
      : scene_(scene), metric_(metric), by_host_(by_host), answer_(answer) {
    interval_ = TimeOf(answer["interval"]);
    for (const Json& host : answer["hosts"].items()) hosts_.push_back(host.text());
  }

  void Run() {
    Collect();
    for (const Json& line : answer_["series"].items()) CompareLine(line);
    for (const auto& [tags, points] : expected_) {
      scene_.tally.Differ("no line for " + NameWith("", tags));
    }
    if (answer_.Has("nodes") == by_host_) {
      scene_.tally.Differ(by_host_ ? "'nodes' with by=host" : "no 'nodes'");
    } else if (!by_host_) {
      CompareNodes();
    }
  }

 private:
  void Collect() {
    Question q;
    q.metric = metric_.name;
    q.aggregator = "none";
    q.rate = metric_.type == MetricType::kCounter;
    q.downsampled = true;
    q.interval = interval_;
    q.function = q.rate ? "max" : "avg";
    q.start = TimeOf(answer_["start"]);
    q.end = TimeOf(answer_["end"]);
    for (const Result& series : Evaluate(q, LinesOf(scene_, metric_.name, Points::kAll))) {
      LineTags tags = series.tags;
      const auto task = tags.find("task");
      const Held of{0, tags["host"], task == tags.end() ? -1 : std::stoll(task->second)};
      for (const char* key : {"job", "task"}) tags.erase(key);
      if (!by_host_) tags.erase("host");
      for (const auto& [time, number] : series.points) {
        expected_[tags][time].push_back({number.value, of.host, of.task});
      }
    }
  }

  size_t IndexOf(const std::string& host) const {
    return static_cast<size_t>(std::find(hosts_.begin(), hosts_.end(), host) - hosts_.begin());
  }

  void CompareLine(const Json& line) {
    const LineTags tags = TagsOf(line["tags"]);
    const auto at = expected_.find(tags);
    if (at == expected_.end()) {
      return scene_.tally.Differ("a line for " + NameWith("", tags) + " that nobody expects");
    }
    std::map<Nanos, std::vector<Held>> expected = std::move(at->second);
    expected_.erase(at);
    const std::vector<Json>& times = line["time"].items();
    for (size_t i = 0; i < times.size(); ++i) {
      const auto point = expected.find(TimeOf(times[i]));
      if (point == expected.end()) {
        scene_.tally.Differ(NameWith("", tags) + ": a point that nobody expects");
        continue;
      }
      ComparePoint(NameWith("", tags), line, i, point->second);
      expected.erase(point);
    }
    if (!expected.empty()) scene_.tally.Differ(NameWith("", tags) + ": points are missing");
  }

  void ComparePoint(const std::string& name, const Json& line, size_t i, std::vector<Held> held) {
    const auto shown = [&](const char* column) { return line[column][i].number(); };
    const std::string at = fmt::format("{} point {} ", name, i);
    std::vector<double> values;
    double size = 0;
    for (const Held& one : held) {
      values.push_back(one.value);
      size += std::fabs(one.value);
    }
    const auto count = static_cast<double>(values.size());
    // A mean of rates, which are rounded, may be added up in any order.
    const double error = count * kUlp * size;
    scene_.tally.Compare(at + "value", ValueOf(values, error), shown("value"));
    scene_.tally.Compare(at + "count", count, shown("count"));
    std::sort(held.begin(), held.end(), [&](const Held& a, const Held& b) {
      return std::pair(IndexOf(a.host), a.task) < std::pair(IndexOf(b.host), b.task);
    });
    const auto less = [](const Held& a, const Held& b) { return a.value < b.value; };
    CompareExtreme(at, line, i, "min", *std::min_element(held.begin(), held.end(), less));
    // Of equal ones the first, as of the least.
    const auto most = std::max_element(held.begin(), held.end(), less);
    CompareExtreme(at, line, i, "max", *most);
    if (!metric_.spread) return;
    for (const auto& [column, share] : {std::pair("p5", 0.05), {"p50", 0.5}, {"p95", 0.95}}) {
      scene_.tally.Compare(at + column, PercentileOf(values, share, values.size() > kMostExact),
                           shown(column));
    }
  }

  Number ValueOf(const std::vector<double>& values, double error) const {
    const auto count = static_cast<double>(values.size());
    const double sum = ExactSum(values);
    if (!by_host_) return {sum / count, error / count};
    switch (metric_.reduction) {
      case Reduction::kMin:
        return {*std::min_element(values.begin(), values.end()), 0};
      case Reduction::kMax:
        return {*std::max_element(values.begin(), values.end()), 0};
      case Reduction::kMean:
        return {sum / count, error / count};
      default:
        return {sum, error};
    }
  }

  void CompareExtreme(const std::string& at, const Json& line, size_t i, const std::string& which,
                      const Held& expected) {
    scene_.tally.Compare(at + which, expected.value, line[which][i].number());
    const double host = line[which + "_host"][i].number();
    const bool known = host >= 0 && host < static_cast<double>(hosts_.size());
    scene_.tally.Compare(at + which + "_host", expected.host,
                         known ? hosts_[static_cast<size_t>(host)] : "nobody");
    const bool of_tasks = expected.task >= 0;
    if (line.Has(which + "_rank") != of_tasks) {
      return scene_.tally.Differ(at + (of_tasks ? "no " : "a column ") + which + "_rank");
    }
    if (!of_tasks) return;
    scene_.tally.Compare(at + which + "_rank", static_cast<double>(expected.task),
                         line[which + "_rank"][i].number());
  }

  // The fewest that any tick of an interval has, where there are ticks.
  void CompareNodes() {
    std::map<Nanos, size_t> fewest;
    const auto& rows = scene_.rows.rows();
    // A step that has ended has a last row which is of no tick.
    const Nanos last = std::prev(rows.end(), scene_.running ? 1 : 2)->first;
    for (const Nanos tick : scene_.plan.ticks) {
      if (tick < rows.begin()->first || tick > last) continue;
      const auto row = rows.find(tick);
      const size_t nodes = row == rows.end() ? 0 : row->second.nodes.size();
      const auto [at, is_new] = fewest.try_emplace(tick - tick % interval_, nodes);
      if (!is_new) at->second = std::min(at->second, nodes);
    }
    std::map<Nanos, double> shown;
    for (const Json& pair : answer_["nodes"].items()) shown[TimeOf(pair[0])] = pair[1].number();
    for (const auto& [bucket, nodes] : fewest) {
      const auto behind = shown.upper_bound(bucket);
      const double told = behind == shown.begin() ? std::nan("") : std::prev(behind)->second;
      scene_.tally.Compare("nodes", static_cast<double>(nodes), told);
    }
  }

  const Scene& scene_;
  const Metric& metric_;
  const bool by_host_;
  const Json& answer_;
  Nanos interval_ = 0;
  std::vector<std::string> hosts_;
  Expected expected_;
};

}  // namespace

void CheckSeries(const Scene& scene) {
  for (const std::string& metric : MetricsOf(scene.plan)) {
    if (!InRows(scene, metric)) {
      scene.tally.Skip("metrics in no row yet");
      continue;
    }
    const bool by_host = scene.chance.Of(3);
    Params params = {{"job", scene.job}, {"metric", metric}};
    if (by_host) params.emplace_back("by", "host");
    if (scene.chance.Of(2)) params.emplace_back("points", std::to_string(scene.chance.From(2, 40)));
    std::string text = metric + (by_host ? "&by=host" : "");
    if (params.back().first == "points") text += "&points=" + params.back().second;
    scene.tally.Ask(scene.running ? "/api/v1/series (running)" : "/api/v1/series", text);
    const Shown shown = Get(scene, "/api/v1/series", params);
    if (shown.status != 200) {
      scene.tally.Differ(fmt::format("status {}: {}", shown.status, shown.body));
      continue;
    }
    const Json answer = Json::Parse(shown.body);
    CompareNodes(scene, Way::kSeries, answer["nodes_answered"].number(),
                 answer["nodes_expected"].number());
    if (answer.Has("rows_only")) scene.tally.Differ("it is of rows alone");
    SeriesCheck(scene, *FindMetric(scene.plan, metric), by_host, answer).Run();
  }
}

}  // namespace sonde::surfaces
