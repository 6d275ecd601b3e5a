// /api/query: random questions.
#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <stdexcept>

#include "tests/surfaces/reading.h"
#include "tests/surfaces/scene.h"

namespace sonde::surfaces {
namespace {

class Asker {
 public:
  explicit Asker(const Scene& scene) : scene_(scene), chance_(scene.chance) {}

  Question Draw() {
    Question q;
    q.metric = chance_.Any(MetricsOf(scene_.plan));
    q.aggregator = chance_.Any(std::vector<std::string>{
        "sum",  "sum",    "sum",   "avg",    "min",    "max",       "count",
        "none", "zimsum", "pfsum", "mimmin", "mimmax", "squareSum", "median",
        "diff", "first",  "last",  "p50",    "p95",    "p5",        "p99"});
    q.rate = chance_.Of(3);
    if (q.rate && chance_.Of(4)) DrawFalls(q);
    DrawRange(q);
    DrawBuckets(q);
    DrawFilters(q);
    return q;
  }

 private:
  Nanos AnyTime() {
    const auto span = static_cast<size_t>((scene_.end - scene_.start) / kMillisecond);
    return scene_.start + static_cast<Nanos>(chance_.Below(span + 1)) * kMillisecond;
  }
  void DrawFalls(Question& q) {
    q.falls = chance_.Of(3) ? "dropcounter" : "counter";
    if (chance_.Of(2)) q.counter_max = static_cast<double>(chance_.From(1, 100'000));
    if (chance_.Of(2)) q.reset = static_cast<double>(chance_.From(1, 100'000));
  }
  void DrawRange(Question& q) {
    q.start = chance_.Of(2) ? scene_.start : AnyTime();
    q.end = chance_.Of(2) ? scene_.end : AnyTime();
    if (q.end < q.start) std::swap(q.start, q.end);
    q.start -= q.start % kMillisecond;
    q.end += kMillisecond - q.end % kMillisecond;
  }
  void DrawBuckets(Question& q) {
    if (chance_.Of(2)) return;
    q.downsampled = true;
    q.function =
        chance_.Any(std::vector<std::string>{"avg", "sum", "min", "max", "first", "last", "count"});
    if (chance_.Of(8)) return;  // 0all
    q.interval = scene_.plan.period * static_cast<Nanos>(chance_.From(1, 7));
    if (chance_.Of(5)) q.interval = static_cast<Nanos>(chance_.From(1, 40)) * 250 * kMillisecond;
    if (chance_.Of(6) && scene_.plan.period < 60 * kSecond) {
      q.calendar = true;
      q.interval = chance_.Any(std::vector<Nanos>{1, 2, 5, 7, 15}) * 60 * kSecond;
    }
    // Filled are all buckets of the hours that are read.
    if (chance_.Of(4) && q.interval >= kSecond) {
      q.fill = chance_.Any(std::vector<std::string>{"nan", "null", "zero"});
    }
  }
  void DrawFilters(Question& q) {
    q.filters.push_back({"job", scene_.job, false});
    const std::vector<std::string> hosts = HostsOf(scene_);
    if (chance_.Of(2) && !hosts.empty()) {
      const std::string some = chance_.Any(hosts) + "|" + chance_.Any(hosts);
      const std::string pattern = chance_.Of(2)   ? "*"
                                  : chance_.Of(2) ? some
                                                  : chance_.Any(hosts).substr(0, 2) + "*";
      q.filters.push_back({"host", pattern, chance_.Of(2)});
    }
    const std::vector<Line> lines = LinesOf(scene_, q.metric, Points::kAll);
    std::set<std::string> keys;
    for (const Line& line : lines) {
      for (const auto& [key, value] : line.tags) keys.insert(key);
    }
    for (const char* key : {"device", "mode", "task"}) {
      if (keys.contains(key) && chance_.Of(2)) q.filters.push_back({key, "*", chance_.Of(3)});
    }
  }

  const Scene& scene_;
  Chance& chance_;
};

void ComparePoints(const Scene& scene, const std::string& name, const Result& expected,
                   const Json& dps) {
  std::map<Nanos, double> shown;
  for (const Json& pair : dps.items()) {
    const Nanos time = static_cast<Nanos>(pair[0].number()) * kMillisecond;
    const bool is_new = shown.emplace(time, pair[1].number()).second;
    if (!is_new) scene.tally.Differ(name + ": two points of one time");
  }
  const auto at = [&](Nanos time) {
    return fmt::format("{} at {:.3f} s", name, static_cast<double>(time - scene.start) / kSecond);
  };
  for (const auto& [time, number] : expected.points) {
    const auto known = shown.find(time);
    if (known == shown.end()) {
      if (number.may_be_absent()) continue;
      scene.tally.Differ(fmt::format("{}: no point, expected {:.17g}", at(time), number.value));
    } else {
      scene.tally.Compare(at(time), number, known->second);
    }
  }
  for (const auto& [time, value] : shown) {
    if (!expected.points.contains(time)) {
      scene.tally.Differ(fmt::format("{}: a point {:.17g} that nobody expects", at(time), value));
    }
  }
}

// Rows do not know of hosts and tasks.
void CompareKeys(const Scene& scene, Way way, const Result& expected, const Json& result) {
  const auto known = [&](const std::string& key) {
    return way == Way::kSeries || (key != "host" && key != "task");
  };
  std::string keys;
  for (const std::string& key : expected.other_keys) {
    if (known(key)) keys += key + " ";
  }
  std::string shown;
  for (const Json& key : result["aggregateTags"].items()) {
    if (known(key.text())) shown += key.text() + " ";
  }
  scene.tally.Compare("aggregateTags", keys, shown);
}

void CheckAnswer(const Scene& scene, const Question& q, Way way, bool rows_only,
                 const Json& answer) {
  std::map<std::string, const Json*> shown;
  for (const Json& result : answer.items()) {
    const std::string name = NameOf(TagsOf(result["tags"]), q, way);
    if (!shown.emplace(name, &result).second) scene.tally.Differ("two results for " + name);
  }
  for (const Result& result : Expect(scene, q, way, rows_only)) {
    const std::string name = NameOf(result.tags, q, way);
    const auto at = shown.find(name);
    const auto may_be_absent = [](const auto& point) { return point.second.may_be_absent(); };
    if (at == shown.end()) {
      if (std::all_of(result.points.begin(), result.points.end(), may_be_absent)) continue;
      const auto& [time, first] = *result.points.begin();
      scene.tally.Differ(fmt::format("no result for {}, expected {} points, {:.17g} at {} ms", name,
                                     result.points.size(), first.value, time / kMillisecond));
      continue;
    }
    ComparePoints(scene, name, result, (*at->second)["dps"]);
    CompareKeys(scene, way, result, *at->second);
    shown.erase(at);
  }
  for (const auto& [name, result] : shown) {
    scene.tally.Differ("a result for " + name + " that nobody expects");
  }
}

std::string Millis(Nanos time) { return std::to_string(time / kMillisecond); }

}  // namespace

Question DrawQuestion(const Scene& scene) { return Asker(scene).Draw(); }

void CheckOpenTsdb(const Scene& scene, int questions) {
  Asker asker(scene);
  for (int i = 0; i < questions; ++i) {
    const Question q = asker.Draw();
    const Way way = WayOf(scene, q);
    if (way == Way::kUnknown) {
      scene.tally.Skip(kSwapped);
      continue;
    }
    scene.tally.Ask(scene.running ? "/api/query (running)" : "/api/query",
                    fmt::format("start={}&end={}&m={}", Millis(q.start), Millis(q.end), TextOf(q)));
    const Shown shown = Get(scene, "/api/query",
                            {{"start", Millis(q.start)},
                             {"end", Millis(q.end)},
                             {"ms", "true"},
                             {"arrays", "true"},
                             {"no_annotations", "true"},
                             {"m", TextOf(q)}});
    // A name that nobody has measured yet is an error.
    const bool no_such_name = shown.body.find("No such name") != std::string::npos;
    if (shown.status == 400 && no_such_name && Expect(scene, q, way).empty()) continue;
    if (shown.status != 200) {
      scene.tally.Differ(fmt::format("status {}: {}", shown.status, shown.body));
      continue;
    }
    CompareNodes(scene, way, shown.nodes_answered, shown.nodes_expected);
    if (shown.rows_only && !(way == Way::kWhole && RowsMayAnswer(scene))) {
      scene.tally.Differ("it is of rows alone");
    } else if (shown.rows_only && !RowsAreKnown(scene, q)) {
      scene.tally.Skip("rows alone, which tell less");
    } else {
      CheckAnswer(scene, q, way, shown.rows_only, Json::Parse(shown.body));
    }
  }
}

}  // namespace sonde::surfaces
