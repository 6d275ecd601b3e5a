// /api/live: the rows of a running step, and what questions give at each of them.
#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <utility>

#include "tests/surfaces/reading.h"
#include "tests/surfaces/scene.h"

namespace sonde::surfaces {
namespace {

constexpr double kUlp = std::numeric_limits<double>::epsilon();
constexpr Nanos kSlow = 10 * kSecond;  // between the samples of a slow series

Nanos TimeOf(const Json& tick) { return std::llround(tick["time"].number() * 1000) * kMillisecond; }

std::string At(const Scene& scene, Nanos time) {
  return fmt::format("at {:.3f} s ", static_cast<double>(time - scene.start) / kSecond);
}

void CompareEntries(const Scene& scene, const std::string& at, const Entries& entries,
                    const Metric& metric, const Json& shown) {
  const auto [values, size] = ValuesOf(entries);
  const auto count = static_cast<double>(values.size());
  const double mean = ExactSum(values) / count;
  scene.tally.Compare(at + "value", NumberOf(entries, metric), shown["value"].number());
  scene.tally.Compare(at + "mean", {mean, kUlp * size}, shown["mean"].number());
  scene.tally.Compare(at + "min", LeastOf(entries).value, shown["min"].number());
  scene.tally.Compare(at + "max", MostOf(entries).value, shown["max"].number());
  scene.tally.Compare(at + "count", count, shown["count"].number());
}

void CompareRow(const Scene& scene, const Json& tick, const Rows::Row& row) {
  const std::string at = At(scene, TimeOf(tick));
  std::map<std::string, const Json*> shown;
  for (const Json& series : tick["series"].items()) {
    const std::string& metric = series["metric"].text();
    if (metric.starts_with("sonde_")) continue;  // what the daemons say of themselves
    const std::string name = NameWith(metric, TagsOf(series["tags"]));
    if (!shown.emplace(name, &series).second) scene.tally.Differ(at + "two of " + name);
  }
  for (const auto& [s, entries] : row.values) {
    const SeriesPlan& plan = scene.plan.series[s];
    const std::string name = NameWith(plan.series.metric.name, OwnTags(plan));
    const auto known = shown.find(name);
    if (known == shown.end()) {
      scene.tally.Differ(at + "nothing of " + name);
      continue;
    }
    CompareEntries(scene, at + name + " ", entries, plan.series.metric, *known->second);
    shown.erase(known);
  }
  for (const auto& [name, series] : shown) {
    scene.tally.Differ(at + name + " that nobody expects");
  }
}

// Each tick is asked for by itself: in buckets of a period, which change no value.
class Asked {
 public:
  Asked(const Scene& scene, Question q) : scene_(scene), q_(std::move(q)), text_(TextOf(q_)) {}

  const std::string& text() const { return text_; }

  // All that follow `after`, up to the newest. False if nobody knows the answer.
  bool Expect(Nanos after) {
    const auto first = scene_.rows.rows().upper_bound(after);
    q_.downsampled = true;
    q_.interval = scene_.plan.period;
    q_.function = q_.aggregator == "min" || q_.aggregator == "max" ? q_.aggregator : "avg";
    q_.start = first->first;
    if (q_.rate) q_.start -= kSlow + scene_.plan.period;
    q_.end = scene_.rows.newest() + 1;
    way_ = WayOf(scene_, q_);
    if (way_ == Way::kUnknown) scene_.tally.Skip(kSwapped);
    if (way_ == Way::kUnknown) return false;
    // The event does not say whether rows alone answer.
    const bool rows_only = way_ == Way::kWhole && RowsMayAnswer(scene_);
    if (rows_only && !RowsAreKnown(scene_, q_)) {
      scene_.tally.Skip("values of /api/live that may be of rows alone, which tell less");
      return false;
    }
    results_ = surfaces::Expect(scene_, q_, way_, rows_only);
    return true;
  }

  void Compare(const Json& tick, size_t index) const {
    const Nanos time = TimeOf(tick);
    const std::string at = At(scene_, time) + text_ + " ";
    std::map<std::string, double> shown;
    for (const Json& result : tick["queries"].items()) {
      if (result["index"].number() != static_cast<double>(index)) continue;
      const std::string name = NameOf(TagsOf(result["tags"]), q_, way_);
      const bool is_new = shown.emplace(name, result["value"].number()).second;
      if (!is_new) scene_.tally.Differ(at + "two values of " + name);
    }
    for (const Result& result : results_) {
      const auto point = result.points.find(time);
      if (point == result.points.end()) continue;
      const std::string name = NameOf(result.tags, q_, way_);
      const auto known = shown.find(name);
      scene_.tally.Compare(at + name, point->second,
                           known == shown.end() ? std::nan("") : known->second);
      if (known != shown.end()) shown.erase(known);
    }
    for (const auto& [name, value] : shown) {
      scene_.tally.Differ(
          fmt::format("{}{}: a value {:.17g} that nobody expects", at, name, value));
    }
  }

 private:
  const Scene& scene_;
  Question q_;
  const std::string text_;  // without buckets
  Way way_ = Way::kUnknown;
  std::vector<Result> results_;
};

std::vector<Asked> DrawQuestions(const Scene& scene, Nanos after) {
  std::vector<Asked> all;
  for (size_t n = scene.chance.From(1, 3); n > 0; --n) {
    Question q = DrawQuestion(scene);
    q.downsampled = false;
    q.calendar = false;
    q.fill.clear();
    Asked asked(scene, q);
    if (!InRows(scene, q.metric)) {
      scene.tally.Skip("metrics in no row yet");
    } else if (asked.Expect(after)) {
      all.push_back(std::move(asked));
    }
  }
  return all;
}

// After which row a reader comes back; before the first one it gets all.
Nanos AnyRow(const Scene& scene) {
  const auto& rows = scene.rows.rows();
  const size_t at = scene.chance.Below(rows.size());
  return at == 0 ? rows.begin()->first - 1
                 : std::next(rows.begin(), static_cast<long>(at) - 1)->first;
}

}  // namespace

void CheckLive(const Scene& scene) {
  const Nanos after = AnyRow(scene);
  const std::vector<Asked> questions = DrawQuestions(scene, after);
  Params params = {{"job", scene.job},
                   {"metric", "*"},
                   {"last_event_id", std::to_string(after)},
                   {"alarms", "false"},
                   {"notes", "false"}};
  for (const Asked& asked : questions) params.emplace_back("m", asked.text());
  scene.tally.Ask("/api/live", fmt::format("after {}", At(scene, after)));
  auto row = scene.rows.rows().upper_bound(after);
  for (const Event& event : GetEvents(scene, "/api/live", params)) {
    if (event.name == "problem") scene.tally.Differ(event.data);
    if (event.name != "tick") continue;
    const Json tick = Json::Parse(event.data);
    if (row == scene.rows.rows().end() || row->first != TimeOf(tick)) {
      scene.tally.Differ(At(scene, TimeOf(tick)) + "a row that nobody expects");
      continue;
    }
    CompareRow(scene, tick, row->second);
    for (size_t i = 0; i < questions.size(); ++i) questions[i].Compare(tick, i);
    ++row;
  }
  if (row != scene.rows.rows().end()) scene.tally.Differ(At(scene, row->first) + "no row");
}

}  // namespace sonde::surfaces
