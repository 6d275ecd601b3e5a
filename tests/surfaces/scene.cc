#include "tests/surfaces/scene.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <future>
#include <limits>
#include <memory>
#include <optional>
#include <set>
#include <sstream>
#include <utility>

#include "tests/surfaces/reading.h"
#include "web/router.h"

namespace sonde::surfaces {
namespace {

// Only a failure lasts so long, however busy the machine is.
constexpr std::chrono::seconds kPatience{30};
constexpr int kMostRounds = 1000;  // of questions to the nodes, for one answer

}  // namespace

namespace {

// Who answers may do so when nobody waits for it any more. Nothing: no answer.
template <typename T>
std::optional<T> Await(const Scene& scene,
                       const std::function<void(std::function<void(T)> done)>& ask) {
  const auto promise = std::make_shared<std::promise<T>>();
  std::future<T> future = promise->get_future();
  ask([promise](T answer) { promise->set_value(std::move(answer)); });
  scene.settle();
  for (int i = 0; i < kMostRounds && scene.running; ++i) {
    if (future.wait_for(std::chrono::seconds(0)) == std::future_status::ready) break;
    scene.lose_patience();
  }
  if (future.wait_for(kPatience) == std::future_status::ready) return future.get();
  scene.tally.Differ("no answer");
  return {};
}

std::optional<web::Response> Ask(const Scene& scene, const std::string& path, Params params) {
  web::Request request;
  request.target = request.path = path;
  request.params = std::move(params);
  request.host = "localhost:4242";
  return Await<web::Response>(scene, [&](std::function<void(web::Response)> done) {
    web::Dispatch(web::Context(scene.source, &scene.clock), request, std::move(done));
  });
}

// "event: NAME" and "data: TEXT" in lines of their own, with an empty line behind.
std::vector<Event> EventsOf(const std::string& text) {
  std::vector<Event> events;
  std::istringstream lines(text);
  Event event;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("event: ")) event.name = line.substr(7);
    if (line.starts_with("data: ")) event.data = line.substr(6);
    if (line.empty() && !event.name.empty()) events.push_back(std::exchange(event, {}));
  }
  return events;
}

}  // namespace

Shown Get(const Scene& scene, const std::string& path, Params params) {
  std::optional<web::Response> response = Ask(scene, path, std::move(params));
  if (!response) return {};
  while (response->next && response->next(response->body)) {
  }
  Shown shown{response->status, std::move(response->body)};
  for (const auto& [name, value] : response->headers) {
    if (name == "Sonde-Rows-Only") shown.rows_only = true;
    if (name == "Sonde-Nodes-Answered") shown.nodes_answered = std::stod(value);
    if (name == "Sonde-Nodes-Expected") shown.nodes_expected = std::stod(value);
  }
  return shown;
}

std::vector<Event> GetEvents(const Scene& scene, const std::string& path, Params params) {
  const std::optional<web::Response> response = Ask(scene, path, std::move(params));
  if (!response) return {};
  if (response->feed == nullptr) {
    scene.tally.Differ(fmt::format("status {}: {}", response->status, response->body));
    return {};
  }
  std::vector<Event> all;
  for (size_t before = SIZE_MAX; before != all.size();) {
    before = all.size();
    const std::optional<std::string> text =
        Await<std::string>(scene, [&](const std::function<void(std::string)>& done) {
          response->feed->Pull(false, [done](std::string news, bool) { done(std::move(news)); });
        });
    if (!text) break;
    for (Event& event : EventsOf(*text)) all.push_back(std::move(event));
  }
  return all;
}

std::string AggregatorOf(Reduction reduction) {
  switch (reduction) {
    case Reduction::kMin:
      return "min";
    case Reduction::kMax:
      return "max";
    case Reduction::kMean:
      return "avg";
    default:
      return "sum";
  }
}

// --- What was measured ---

LineTags OwnTags(const SeriesPlan& series) {
  LineTags tags;
  for (const auto& [key, value] : series.series.tags.pairs()) tags[key] = value;
  return tags;
}

const Metric* FindMetric(const StepPlan& plan, const std::string& name) {
  for (const SeriesPlan& series : plan.series) {
    if (series.series.metric.name == name) return &series.series.metric;
  }
  return nullptr;
}

std::vector<std::string> MetricsOf(const StepPlan& plan) {
  std::vector<std::string> names;
  for (const SeriesPlan& series : plan.series) {
    if (names.empty() || names.back() != series.series.metric.name) {
      names.push_back(series.series.metric.name);
    }
  }
  return names;
}

bool InRows(const Scene& scene, const std::string& metric) {
  for (const auto& [tick, row] : scene.rows.rows()) {
    for (const auto& [series, entries] : row.values) {
      if (scene.plan.series[series].series.metric.name == metric) return true;
    }
  }
  return false;
}

std::vector<std::string> HostsOf(const Scene& scene) {
  std::set<std::string> hosts;
  for (const Daemon& daemon : scene.plan.daemons) {
    if (daemon.joined() <= scene.end) hosts.insert(daemon.host);
  }
  return {hosts.begin(), hosts.end()};
}

std::vector<Line> LinesOf(const Scene& scene, const std::string& metric, Points points, Who who) {
  std::map<LineTags, Line> lines;
  for (size_t d = 0; d < scene.plan.daemons.size(); ++d) {
    const Daemon& daemon = scene.plan.daemons[d];
    if (who == Who::kWhoAnswers && scene.states[d] == NodeState::kSilent) continue;
    for (size_t c = 0; c < daemon.columns.size(); ++c) {
      const SeriesPlan& series = scene.plan.series[daemon.columns[c].series];
      if (series.series.metric.name != metric) continue;
      LineTags tags = OwnTags(series);
      tags["host"] = daemon.host;
      tags["job"] = scene.job;
      if (daemon.columns[c].task != kNobody) tags["task"] = std::to_string(daemon.columns[c].task);
      Line& line = lines[tags];
      line.tags = tags;
      line.counts = series.series.metric.type == MetricType::kCounter;
      for (const Sample& sample : daemon.samples) {
        if (sample.time > scene.end || std::isnan(sample.values[c])) continue;
        if (points == Points::kAll || sample.tick) {
          line.points.emplace_back(sample.time, sample.values[c]);
        }
      }
    }
  }
  std::vector<Line> all;
  for (auto& [tags, line] : lines) {
    if (!line.points.empty()) all.push_back(std::move(line));
  }
  return all;
}

// --- Who answers ---

namespace {

bool OneOf(const std::string& name, std::initializer_list<const char*> names) {
  return std::any_of(names.begin(), names.end(), [&](const char* one) { return name == one; });
}

bool NamesHostsOrTasks(const Question& q) {
  return std::any_of(q.filters.begin(), q.filters.end(), [](const Filter& filter) {
    return filter.key == "host" || filter.key == "task";
  });
}

// The table of docs/queries.md, "Questions about the whole step".
bool InTable(const Question& q, bool counts, bool running) {
  if (!q.falls.empty()) return false;
  const std::string& a = q.aggregator;
  const auto by = [&](std::initializer_list<const char*> functions) {
    return !q.downsampled || OneOf(q.function, functions);
  };
  const bool zero = q.downsampled && q.fill == "zero";
  if (OneOf(a, {"sum", "zimsum", "pfsum"})) {
    return by({"avg", "sum", "first", "last"}) || (counts && running && by({"min", "max"}));
  }
  if (a == "avg") return by({"avg", "sum"}) && !zero;
  if (OneOf(a, {"min", "mimmin"})) return by({"min"}) && !q.rate;
  if (OneOf(a, {"max", "mimmax"})) return by({"max"}) && !q.rate;
  return a == "count" && !zero;
}

// Whether each of its groups is one series of those that rows have.
bool GroupsAreSingle(const Scene& scene, const Question& q) {
  std::set<std::string> tagged;
  for (const SeriesPlan& series : scene.plan.series) {
    if (series.series.metric.name != q.metric) continue;
    for (const auto& [key, value] : series.series.tags.pairs()) tagged.insert(key);
  }
  const auto grouped = [&](const std::string& key) {
    return std::any_of(q.filters.begin(), q.filters.end(),
                       [&](const Filter& f) { return f.key == key && f.groups; });
  };
  size_t series = 0;
  for (const SeriesPlan& one : scene.plan.series) {
    series += one.series.metric.name == q.metric ? 1 : 0;
  }
  return series == 1 || std::all_of(tagged.begin(), tagged.end(), grouped);
}

bool SpreadsAnswer(const Scene& scene, const Question& q, const Metric& metric) {
  const bool counts = metric.type == MetricType::kCounter;
  if (!metric.spread || counts != q.rate || !q.falls.empty() ||
      !OneOf(q.aggregator, {"p5", "p50", "p95", "p99"})) {
    return false;
  }
  const bool of_a_tick = !q.downsampled || (q.interval > 0 && q.interval <= scene.plan.period &&
                                            q.function != "count" && q.fill != "zero");
  return of_a_tick && GroupsAreSingle(scene, q);
}

// The largest rate there is: of a group, or of all series if all rose at once.
double MostOf(const std::vector<Line>& lines, const std::vector<Result>& results) {
  double most = 0;
  for (const Line& line : lines) {
    for (size_t i = 1; i < line.points.size(); ++i) {
      const auto& [before, had] = line.points[i - 1];
      const auto& [now, has] = line.points[i];
      const double seconds = static_cast<double>(now - before) / kSecond;
      most = std::max(most, static_cast<double>(lines.size()) * std::fabs(has - had) / seconds);
    }
  }
  for (const Result& result : results) {
    for (const auto& [time, number] : result.points) most = std::max(most, std::fabs(number.value));
  }
  return most;
}

// What rows say of the same is rounded with each of their values, and again with each row of a
// bucket.
void AllowForRows(const Question& q, const std::vector<Line>& lines, std::vector<Result>& results,
                  const StepPlan& plan) {
  double most = 0;
  for (const Line& line : lines) {
    for (const auto& [time, value] : line.points) most = std::max(most, std::fabs(value));
  }
  size_t rows = 1;
  if (q.downsampled) rows = plan.ticks.size() + 1;
  if (q.downsampled && q.interval > 0) {
    rows = std::min(rows, static_cast<size_t>(q.interval / plan.period) + 1);
  }
  const auto n = static_cast<double>(lines.size());
  const auto in_bucket = static_cast<double>(rows);
  const double size = n * most * (q.function == "sum" ? in_bucket : 1);
  double error = (n + in_bucket - 1) * std::numeric_limits<double>::epsilon() * size;
  if (q.rate) error = 4 * error / (static_cast<double>(std::min(plan.period, kSecond)) / kSecond);
  const bool too_rough = q.rate && error >= MostOf(lines, results);
  for (Result& result : results) {
    for (auto& [time, number] : result.points) {
      number.error += error;
      number.too_rough = too_rough;
    }
  }
}

// What a running step's answer lacks of that which lies behind the newest row. It has it where the
// nodes are asked about these times.
void AllowForNewest(const Scene& scene, const Question& q, std::vector<Result>& results) {
  std::vector<Line> lines = LinesOf(scene, q.metric, Points::kAll, Who::kAll);
  for (Line& line : lines) {
    std::erase_if(line.points,
                  [&](const auto& point) { return point.first > scene.rows.newest(); });
  }
  std::erase_if(lines, [](const Line& line) { return line.points.empty(); });
  const std::vector<Result> earlier = Evaluate(q, lines);
  for (Result& result : results) {
    const auto same = std::find_if(earlier.begin(), earlier.end(), [&](const Result& one) {
      return GroupOf(one.tags, q) == GroupOf(result.tags, q);
    });
    for (auto& [time, number] : result.points) {
      const bool any = same != earlier.end() && same->points.contains(time);
      const double value = any ? same->points.at(time).value : std::nan("");
      if (value != number.value) number.earlier = value;
    }
  }
}

}  // namespace

LineTags GroupOf(const LineTags& tags, const Question& q) {
  LineTags group;
  for (const Filter& filter : q.filters) {
    const auto tag = tags.find(filter.key);
    if (filter.groups && tag != tags.end()) group.insert(*tag);
  }
  return group;
}

// A gauge that could not be read at the very tick at which another one could again: rows have only
// the number of values, and do not tell that a series came and another went.
bool AnySwapped(const Scene& scene, const std::string& metric) {
  using Owners = std::set<std::pair<uint32_t, uint32_t>>;
  std::map<size_t, Owners> before;
  for (const auto& [tick, row] : scene.rows.rows()) {
    for (const auto& [series, entries] : row.values) {
      if (scene.plan.series[series].series.metric.name != metric) continue;
      Owners who;
      for (const Entry& entry : entries) who.emplace(entry.daemon, entry.task);
      const auto has_all = [](const Owners& all, const Owners& some) {
        return std::includes(all.begin(), all.end(), some.begin(), some.end());
      };
      const auto [at, is_new] = before.try_emplace(series, who);
      if (!is_new && !has_all(who, at->second) && !has_all(at->second, who)) return true;
      at->second = std::move(who);
    }
  }
  return false;
}

Way WayOf(const Scene& scene, const Question& q) {
  constexpr size_t kMostRead = 64;  // nodes whose series are read
  const Metric& metric = *FindMetric(scene.plan, q.metric);
  const bool rows_first = scene.running || scene.plan.daemons.size() > kMostRead;
  const bool whole = rows_first && !NamesHostsOrTasks(q) &&
                     (SpreadsAnswer(scene, q, metric) ||
                      InTable(q, metric.type == MetricType::kCounter, scene.running));
  if (whole && scene.plan.fails && AnySwapped(scene, q.metric)) return Way::kUnknown;
  return whole ? Way::kWhole : Way::kSeries;
}

namespace {

// What `of` gives of the entries of each row, as one series for each of those that rows have.
template <typename Of>
std::vector<Line> LinesOfRows(const Scene& scene, const std::string& metric, const Of& of) {
  std::vector<Line> lines;
  for (size_t s = 0; s < scene.plan.series.size(); ++s) {
    const SeriesPlan& series = scene.plan.series[s];
    if (series.series.metric.name != metric) continue;
    Line line;
    line.tags = OwnTags(series);
    line.tags["job"] = scene.job;
    line.counts = series.series.metric.type == MetricType::kCounter;
    for (const auto& [time, row] : scene.rows.rows()) {
      const auto entries = row.values.find(s);
      if (entries != row.values.end()) line.points.emplace_back(time, of(entries->second));
    }
    if (!line.points.empty()) lines.push_back(std::move(line));
  }
  return lines;
}

std::vector<Result> OfRows(const Scene& scene, const Question& question) {
  Question q = question;
  const auto sum = [](const Entries& entries) { return ExactSum(ValuesOf(entries).first); };
  const auto count = [](const Entries& e) { return static_cast<double>(e.size()); };
  const std::string& how = question.aggregator;
  if (OneOf(how, {"min", "mimmin"})) {
    return Evaluate(
        q, LinesOfRows(scene, q.metric, [](const Entries& e) { return LeastOf(e).value; }));
  }
  if (OneOf(how, {"max", "mimmax"})) {
    return Evaluate(q,
                    LinesOfRows(scene, q.metric, [](const Entries& e) { return MostOf(e).value; }));
  }
  if (!OneOf(how, {"avg", "count"})) return Evaluate(q, LinesOfRows(scene, q.metric, sum));
  q.aggregator = "sum";
  std::vector<Result> counts = Evaluate(q, LinesOfRows(scene, q.metric, count));
  if (how == "count") return counts;
  std::vector<Result> results = Evaluate(q, LinesOfRows(scene, q.metric, sum));
  for (size_t i = 0; i < results.size(); ++i) {
    for (auto& [time, number] : results[i].points) {
      number.value /= counts[i].points.at(time).value;
    }
  }
  return results;
}

// Where a node does not answer rows alone may answer instead, at any time.
void AllowForRowsAlone(const Scene& scene, const Question& q, std::vector<Result>& results) {
  std::vector<Result> of_rows = OfRows(scene, q);
  if (q.aggregator != "count") {
    AllowForRows(q, LinesOf(scene, q.metric, Points::kAll, Who::kAll), of_rows, scene.plan);
  }
  for (Result& result : results) {
    const auto same = std::find_if(of_rows.begin(), of_rows.end(), [&](const Result& one) {
      return GroupOf(one.tags, q) == GroupOf(result.tags, q);
    });
    for (auto& [time, number] : result.points) {
      const bool any = same != of_rows.end() && same->points.contains(time);
      number.of_rows = any ? same->points.at(time).value : std::nan("");
      number.error_of_rows = any ? same->points.at(time).error : 0;
    }
  }
}

}  // namespace

std::vector<Result> Expect(const Scene& scene, const Question& question, Way way, bool rows_only) {
  Question q = question;
  q.sketched = way == Way::kWhole && SpreadsAnswer(scene, q, *FindMetric(scene.plan, q.metric));
  const Who who = way == Way::kWhole ? Who::kAll : Who::kWhoAnswers;
  const std::vector<Line> lines = LinesOf(scene, q.metric, Points::kAll, who);
  std::vector<Result> results = Evaluate(q, lines);
  if (way == Way::kSeries) return results;
  if (scene.running) AllowForNewest(scene, q, results);
  if (q.aggregator != "count") AllowForRows(q, lines, results, scene.plan);
  if (rows_only) AllowForRowsAlone(scene, q, results);
  return results;
}

bool AnySilent(const Scene& scene) {
  return std::find(scene.states.begin(), scene.states.end(), NodeState::kSilent) !=
         scene.states.end();
}

// For a few seconds nobody is asked again, as long as the newest row lacks a node.
bool RowsMayAnswer(const Scene& scene) {
  if (AnySilent(scene) || !scene.was_silent) return AnySilent(scene);
  const auto here = std::count(scene.states.begin(), scene.states.end(), NodeState::kHere);
  return scene.rows.rows().rbegin()->second.nodes.size() < static_cast<size_t>(here);
}

bool RowsAreKnown(const Scene& scene, const Question& q) {
  if (OneOf(q.aggregator, {"sum", "zimsum", "pfsum"})) return true;
  if (OneOf(q.aggregator, {"min", "mimmin", "max", "mimmax"})) return true;
  return OneOf(q.aggregator, {"avg", "count"}) && !q.downsampled && !q.rate && !scene.plan.fails;
}

// A host whose daemon was started anew is one node. In the rows are those that are not lost.
void CompareNodes(const Scene& scene, Way way, double answered, double expected) {
  std::map<std::string, NodeState> newest;
  for (size_t d = 0; d < scene.plan.daemons.size(); ++d) {
    if (scene.states[d] == NodeState::kToCome) continue;
    newest[scene.plan.daemons[d].host] = scene.states[d];
  }
  const auto count = std::count_if(newest.begin(), newest.end(), [&](const auto& host) {
    const NodeState state = host.second;
    return state != NodeState::kLost && (way == Way::kWhole || state != NodeState::kSilent);
  });
  scene.tally.Compare("nodes answered", static_cast<double>(count), answered);
  scene.tally.Compare("nodes expected", static_cast<double>(scene.plan.hosts.size()), expected);
}

std::string NameOf(const LineTags& tags, const Question& q, Way way) {
  return NameWith("", way == Way::kSeries ? tags : GroupOf(tags, q));
}

}  // namespace sonde::surfaces
