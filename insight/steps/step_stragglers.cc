#include "insight/steps/step_stragglers.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>

#include "insight/robust.h"
#include "profiles/json/writer.h"

namespace sonde::insight {
namespace {

constexpr double kByChance = 0.005;
constexpr size_t kMostBeside = 64;      // nodes that a straggler's other series are compared with
constexpr size_t kMostOwnMetrics = 16;  // of the application

// The phases that the application told, in ticks.
std::vector<NamedTicks> PhasesIn(const Profile& profile, const TickGrid& grid) {
  std::vector<NamedTicks> out;
  for (const Phase& phase : profile.moments.phases) {
    const Nanos end = phase.end != 0 ? phase.end : profile.job.end;
    // Only ticks that are wholly in the phase.
    const auto begin = static_cast<size_t>(
        std::max<Nanos>(0, (phase.begin - grid.first + grid.width - 1) / grid.width));
    const auto behind = std::min(
        grid.count, static_cast<size_t>(std::max<Nanos>(0, (end - grid.first) / grid.width)));
    if (begin >= behind) continue;
    auto found = std::find_if(out.begin(), out.end(),
                              [&](const NamedTicks& one) { return one.name == phase.name; });
    if (found == out.end()) found = out.insert(out.end(), NamedTicks{phase.name, {}});
    found->parts.emplace_back(begin, behind);
  }
  return out;
}

class Comparing {
 public:
  Comparing(const Archive& archive, const std::string& key, const Profile& profile)
      : archive_(archive), key_(key), profile_(profile) {
    out_.grid = GridOfRows(profile.job, profile.job.expected_tasks, kMostStragglerTicks);
    phases_ = PhasesIn(profile, out_.grid);
  }

  Result<StepStragglers> Compare() {
    const std::vector<WatchedSeries> watched = Watched();
    std::vector<AskedRows> asked;
    asked.reserve(watched.size());
    for (const WatchedSeries& one : watched) asked.push_back({one, RowsBy::kRank});
    auto by_rank = ReadStepRows(archive_, key_, profile_.job, out_.grid, asked);
    if (!by_rank.ok()) return by_rank.status();
    std::vector<std::pair<const WatchedSeries*, const StepRows*>> there;
    for (size_t i = 0; i < watched.size(); ++i) {
      if ((*by_rank)[i].rows.size() >= 2) there.emplace_back(&watched[i], &(*by_rank)[i]);
    }
    const StepRows nodes = PerTask((*by_rank)[0]);
    const bool both = nodes.rows.size() >= 2 && nodes.rows.size() < (*by_rank)[0].rows.size();
    const size_t tests = there.size() + (both ? 1 : 0);
    for (size_t i = 0; i < there.size(); ++i) {
      const double share = tests == 1 ? 1 : i == 0 ? 0.5 : 0.5 / static_cast<double>(tests - 1);
      SONDE_RETURN_IF_ERROR(Add(*there[i].first, RowsBy::kRank, *there[i].second, share));
    }
    if (both) {
      WatchedSeries cpu = watched[0];
      cpu.name = "CPU time of a task";
      SONDE_RETURN_IF_ERROR(Add(cpu, RowsBy::kNode, nodes, 0.5 / static_cast<double>(tests - 1)));
    }
    return std::move(out_);
  }

 private:
  // The table, and the application's own counters.
  std::vector<WatchedSeries> Watched() {
    std::vector<WatchedSeries> out(StragglerMetrics().begin(), StragglerMetrics().end());
    std::set<std::string_view> own;
    for (const FootprintEntry& entry : profile_.footprint) {
      const Metric& metric = entry.series.metric;
      if (metric.type != MetricType::kCounter || IsHouseMetric(metric.name)) continue;
      if (own.size() >= kMostOwnMetrics || !own.insert(metric.name).second) continue;
      out.push_back({metric.name, metric.name, metric.unit});
    }
    return out;
  }
  // The mean over the tasks of each node.
  StepRows PerTask(const StepRows& ranks) const {
    std::map<size_t, std::vector<size_t>> of_node;
    for (size_t r = 0; r < ranks.rows.size(); ++r) of_node[ranks.who[r].node].push_back(r);
    StepRows out;
    for (const auto& [node, rows] : of_node) {
      Row mean(out_.grid.count, kNoNumber);
      for (size_t t = 0; t < mean.size(); ++t) {
        double sum = 0, count = 0;
        for (const size_t r : rows) {
          if (std::isnan(ranks.rows[r][t])) continue;
          sum += ranks.rows[r][t];
          ++count;
        }
        if (count > 0) mean[t] = sum / count;
      }
      StepRows::Who who = ranks.who[rows.front()];
      out.who.push_back(who);
      out.rows.push_back(std::move(mean));
    }
    return out;
  }

  Status Add(const WatchedSeries& watched, RowsBy by, const StepRows& rows, double share) {
    ComparedMetric metric;
    metric.metric = watched.metric;
    metric.name = watched.name;
    metric.unit = watched.unit;
    metric.by = by;
    StragglerOptions options;
    options.by_chance = kByChance * share;
    options.relevant = watched.least;
    options.resolution = watched.step / out_.grid.Seconds();
    options.phases = phases_;
    auto found = FindStragglers(rows.rows, options);
    if (!found.ok()) return found.status();
    metric.found = *std::move(found);
    metric.imbalance = ImbalanceOverTicks(rows.rows);
    NameExtremes(rows, metric);
    if (!metric.found.stragglers.empty()) {
      SONDE_RETURN_IF_ERROR(ReadSuspects(rows, metric.found.stragglers));
    }
    for (const Straggler& one : metric.found.stragglers) {
      NamedStraggler named{rows.who[one.row], one, {}};
      Explain(watched.metric, by, rows.rows[one.row], metric.found.medians, named);
      metric.stragglers.push_back(std::move(named));
    }
    out_.metrics.push_back(std::move(metric));
    return {};
  }
  static void NameExtremes(const StepRows& rows, ComparedMetric& metric) {
    double most = -std::numeric_limits<double>::infinity(), least = -most;
    for (size_t r = 0; r < rows.rows.size(); ++r) {
      double sum = 0, count = 0;
      for (const double value : rows.rows[r]) {
        if (std::isnan(value)) continue;
        sum += value;
        ++count;
      }
      if (count == 0) continue;
      if (sum / count > most) metric.most = rows.who[r];
      if (sum / count < least) metric.least = rows.who[r];
      most = std::max(most, sum / count);
      least = std::min(least, sum / count);
    }
  }

  // --- Causes ---

  // `row` is the straggler's, `medians` are those of all.
  void Explain(std::string_view metric, RowsBy by, const Row& row, const Row& medians,
               NamedStraggler& named) {
    std::vector<const WatchedSeries*> all;
    std::vector<Suspect> suspects;
    for (size_t i = 0; i < suspects_.size(); ++i) {
      const StepRows& one = suspect_rows_[i];
      const WatchedSeries& watched = suspects_[i].watched;
      const bool of_node = suspects_[i].by == RowsBy::kNode;
      if (!of_node && by == RowsBy::kNode) continue;
      const size_t own = of_node ? one.OfNode(named.who.node) : one.OfRank(named.who.rank);
      if (own >= one.rows.size() || watched.metric == metric) continue;
      all.push_back(&watched);
      suspects.push_back({one.rows, suspect_medians_[i], own, watched.direction, watched.least});
    }
    for (const Cause& cause : FindCauses(named.found, row, medians, suspects)) {
      const WatchedSeries& watched = *all[cause.suspect];
      named.causes.push_back({std::string(watched.name), std::string(watched.metric),
                              std::string(watched.unit), cause});
    }
  }
  // The stragglers' nodes beside some others, spread over the step: more would tell no more about
  // what is usual.
  std::set<size_t> NodesBeside(const StepRows& rows, std::span<const Straggler> stragglers) const {
    std::set<size_t> out;
    for (const Straggler& one : stragglers) out.insert(rows.who[one.row].node);
    const size_t all = profile_.job.nodes.size();
    const size_t others = std::min(all, kMostBeside);
    for (size_t i = 0; i < others; ++i) out.insert(i * all / others);
    return out;
  }
  Status ReadSuspects(const StepRows& rows, std::span<const Straggler> stragglers) {
    suspects_.clear();
    for (const WatchedSeries& one : NodeSuspects()) suspects_.push_back({one, RowsBy::kNode});
    for (const WatchedSeries& one : RankSuspects()) suspects_.push_back({one, RowsBy::kRank});
    suspects_.push_back({{"node_cpu_seconds_total", "CPU time of others on the node", "CPUs",
                          "mode", "busy", 1, 0.1},
                         RowsBy::kNode});
    std::vector<AskedRows> asked = suspects_;
    asked.push_back({{"task_cpu_seconds_total", "", "CPUs"}, RowsBy::kNode});
    auto read =
        ReadStepRows(archive_, key_, profile_.job, out_.grid, asked, NodesBeside(rows, stragglers));
    if (!read.ok()) return read.status();
    suspect_rows_ = *std::move(read);
    const StepRows own = std::move(suspect_rows_.back());
    suspect_rows_.pop_back();
    TakeOff(own, suspect_rows_.back());
    suspect_medians_.clear();
    for (const StepRows& one : suspect_rows_) suspect_medians_.push_back(MediansOf(one.rows));
    return {};
  }
  // What others use of a node's processors: what all use without what the step's tasks use.
  static void TakeOff(const StepRows& own, StepRows& all) {
    for (size_t r = 0; r < all.rows.size(); ++r) {
      const size_t row = own.OfNode(all.who[r].node);
      for (size_t t = 0; t < all.rows[r].size(); ++t) {
        double& value = all.rows[r][t];
        value -= row < own.rows.size() ? own.rows[row][t] : kNoNumber;
        if (value < 0) value = 0;  // both are read at slightly different times
      }
    }
  }

  const Archive& archive_;
  const std::string& key_;
  const Profile& profile_;
  StepStragglers out_;
  std::vector<NamedTicks> phases_;
  std::vector<AskedRows> suspects_;
  std::vector<StepRows> suspect_rows_;
  std::vector<Row> suspect_medians_;
};

// --- JSON ---

void WriteWho(JsonWriter& json, const StepRows::Who& who, RowsBy by) {
  if (by == RowsBy::kRank) json.Field("rank", who.rank);
  json.Field("node", who.host);
}

void WriteBeside(JsonWriter& json, const Beside& beside) {
  json.Field("value", beside.value).Field("others", beside.others);
  json.Field("share", beside.Share()).Field("score", beside.score);
}

void WriteCause(JsonWriter& json, const NamedCause& named) {
  const Cause& cause = named.cause;
  json.BeginObject().Field("metric", named.metric).Field("name", named.name);
  json.Field("unit", named.unit);
  WriteBeside(json, cause.inside);
  json.Field("value_outside", cause.outside_value).Field("others_outside", cause.outside_others);
  json.Field("correlation", cause.correlation).Field("follows", cause.follows);
  json.Field("beyond_limit", cause.beyond_limit).EndObject();
}

void WriteStraggler(JsonWriter& json, const NamedStraggler& named, RowsBy by,
                    const TickGrid& grid) {
  json.BeginObject();
  WriteWho(json, named.who, by);
  WriteBeside(json, named.found.overall);
  json.Field("since", grid.Begin(named.found.begin)).Field("until", grid.Begin(named.found.end));
  json.Field("from_start", named.found.begin == 0);
  json.Key("phases").BeginArray();
  for (const auto& [phase, beside] : named.found.phases) {
    json.BeginObject().Field("name", phase);
    WriteBeside(json, beside);
    json.EndObject();
  }
  json.EndArray().Key("causes").BeginArray();
  for (const NamedCause& cause : named.causes) WriteCause(json, cause);
  json.EndArray().EndObject();
}

void WriteMetric(JsonWriter& json, const ComparedMetric& metric, const TickGrid& grid) {
  json.BeginObject().Field("metric", metric.metric).Field("name", metric.name);
  json.Field("unit", metric.unit).Field("by", metric.by == RowsBy::kRank ? "rank" : "node");
  json.Field("rows", metric.found.rows).Field("level", metric.found.level);
  json.Field("spread", metric.found.spread).Field("limit", metric.found.limit);
  json.Field("differ", metric.found.differ);
  const Imbalance& overall = metric.imbalance.overall;
  json.Key("imbalance").BeginObject().Field("factor", overall.factor).Field("lost", overall.lost);
  json.Field("percentage", overall.percentage);
  json.Field("lost_by_tick", metric.imbalance.lost_by_tick);
  json.Key("most").BeginObject();
  WriteWho(json, metric.most, metric.by);
  json.EndObject().Key("least").BeginObject();
  WriteWho(json, metric.least, metric.by);
  json.EndObject().Key("factors").BeginArray();
  for (const double factor : metric.imbalance.factors) json.Value(factor);
  json.EndArray().EndObject();
  json.Key("stragglers").BeginArray();
  for (const NamedStraggler& one : metric.stragglers) WriteStraggler(json, one, metric.by, grid);
  json.EndArray().EndObject();
}

}  // namespace

Result<StepStragglers> StragglersOf(const Archive& archive, const std::string& key,
                                    const Profile& profile) {
  return Comparing(archive, key, profile).Compare();
}

std::string StragglersToJson(const StepStragglers& all, const Profile& profile) {
  std::string out;
  JsonWriter json(out);
  json.BeginObject().Field("step", profile.job.id.ToString());
  json.Field("first_tick", all.grid.first).Field("tick", all.grid.width);
  json.Field("ticks", all.grid.count).Key("metrics").BeginArray();
  for (const ComparedMetric& metric : all.metrics) WriteMetric(json, metric, all.grid);
  json.EndArray().EndObject();
  out += "\n";
  return out;
}

std::string NameOf(const StepRows::Who& who, RowsBy by) {
  if (by == RowsBy::kNode) return fmt::format("node {}", who.host);
  return fmt::format("rank {} on {}", who.rank, who.host);
}

}  // namespace sonde::insight
