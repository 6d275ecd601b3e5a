#include "web/proxy/all_steps.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "web/source/running_step.h"

namespace sonde::web {
namespace {

// A metric that is costly to read has a value every 10 s; a step of long periods has fewer.
constexpr Nanos kLookBack = 25 * kSecond;
constexpr int kPeriodsBack = 3;

// Adds `one` to `all`; the means of gauges are weighted by their ticks.
void AddEntry(const FootprintEntry& one, FootprintEntry& all) {
  const bool counter = IsCounting(one.series.metric.type);
  const auto ticks = static_cast<double>(all.ticks);
  const auto more = static_cast<double>(one.ticks);
  all.min = std::min(all.min, one.min);
  all.max = std::max(all.max, one.max);
  const double sum = all.mean * ticks + one.mean * more;
  switch (counter ? Reduction::kSum : one.series.metric.reduction) {
    case Reduction::kSum:
      all.last += one.last;
      break;
    case Reduction::kMean:
      if (ticks + more > 0) all.last = (all.last * ticks + one.last * more) / (ticks + more);
      break;
    case Reduction::kMin:
      all.last = std::min(all.last, one.last);
      break;
    case Reduction::kMax:
      all.last = std::max(all.last, one.last);
      break;
    case Reduction::kUnknown:
      all.last = std::nan("");
      break;
  }
  all.ticks += one.ticks;
  all.mean = counter ? all.mean + one.mean : all.ticks == 0 ? 0 : sum / (ticks + more);
}

QuerySpec SpecOf(const Profile& step, const FootprintEntry& entry,
                 const std::set<std::string>& keys, const std::string& host, Nanos now) {
  QuerySpec spec;
  spec.metric = entry.series.metric.name;
  spec.aggregator = AggregatorOf(entry.series.metric.reduction);
  spec.downsample = Downsample{.interval = 0, .function = Aggregator::kLast};
  using Type = TagFilter::Type;
  spec.filters.push_back({Type::kLiteralOr, "job", step.job.id.ToString(), false});
  spec.filters.push_back(
      {host.empty() ? Type::kWildcard : Type::kLiteralOr, "host", host.empty() ? "*" : host, true});
  for (const std::string& key : keys) spec.filters.push_back({Type::kWildcard, key, "*", true});
  spec.end = (step.job.end != 0 ? step.job.end : now) + kSecond;
  spec.start =
      std::max<Nanos>(spec.end - kSecond - std::max(kLookBack, kPeriodsBack * step.job.period), 0);
  return spec;
}

}  // namespace

std::optional<std::string> NodeOfJob(std::string_view job) {
  if (!job.starts_with(kNodeJob)) return std::nullopt;
  return std::string(job.substr(kNodeJob.size()));
}

JobDescription MainDescription() {
  JobDescription job;
  job.id.job = kMainJob;
  job.command = "Sum of all Jobs";
  return job;
}

JobDescription NodeDescription(const std::string& host) {
  JobDescription job;
  job.id.job = std::string(kNodeJob) + host;
  job.command = "Sum of all Jobs running on " + host;
  job.nodes.emplace_back().host = host;
  return job;
}

Task<Result<std::vector<Profile>>> RunningProfiles(const StepHistory& history) {
  const Result<std::vector<JobDescription>> jobs = co_await RunningSteps(history);
  if (!jobs.ok()) co_return jobs.status();
  std::vector<JobStep> ids;
  for (const JobDescription& job : *jobs) ids.push_back(job.id);
  std::vector<Result<Profile>> all = co_await ProfilesOf(history, std::move(ids));
  std::vector<Profile> profiles;
  for (Result<Profile>& profile : all) {
    if (profile.ok()) profiles.push_back(*std::move(profile));
  }
  co_return profiles;
}

Profile SumOf(const std::vector<Profile>& steps) {
  Profile all;
  all.job = MainDescription();
  std::map<std::string, size_t> places;
  for (const Profile& step : steps) {
    for (const FootprintEntry& entry : step.footprint) {
      if (std::isnan(entry.last)) continue;
      const auto [place, added] = places.try_emplace(
          SeriesName(entry.series.metric.name, entry.series.tags), all.footprint.size());
      if (added) {
        all.footprint.push_back(entry);
        all.footprint.back().spread.reset();  // percentiles of several steps do not add up
      } else {
        AddEntry(entry, all.footprint[place->second]);
      }
    }
    all.job.coverage.expected += step.job.coverage.expected;
    all.job.coverage.got += step.job.coverage.got;
    all.job.coverage.skipped += step.job.coverage.skipped;
  }
  return all;
}

std::vector<std::string> NodesOf(const std::vector<Profile>& steps) {
  std::set<std::string> hosts;
  for (const Profile& step : steps) {
    for (const NodeInfo& node : step.job.nodes) {
      if (!node.IsGone() && !node.host.empty()) hosts.insert(node.host);
    }
  }
  return {hosts.begin(), hosts.end()};
}

Result<NodeValues> NodeValues::Make(std::vector<Profile> steps, const std::string& host,
                                    Nanos now) {
  NodeValues values;
  values.steps_ = std::move(steps);
  size_t expected = 0;
  for (const Profile& step : values.steps_) {
    expected += step.footprint.size() * (host.empty() ? step.job.nodes.size() : 1);
    // The keys of a metric's own tags. A series that lacks one of them is left out.
    std::map<std::string_view, std::set<std::string>> keys;
    for (const FootprintEntry& entry : step.footprint) {
      for (const auto& [key, value] : entry.series.tags.pairs()) {
        keys[entry.series.metric.name].insert(key);
      }
    }
    std::set<std::string_view> seen;
    for (const FootprintEntry& entry : step.footprint) {
      const Metric& metric = entry.series.metric;
      if (!seen.insert(metric.name).second) continue;
      values.specs_.push_back(SpecOf(step, entry, keys[metric.name], host, now));
      values.metrics_.push_back(&metric);
    }
  }
  if (expected > kMaxValues) {
    return Status(Code::kLimit,
                  fmt::format("the nodes have {} values, more than {}; ask for one node or by "
                              "/api/query",
                              expected, kMaxValues));
  }
  return values;
}

std::vector<NodeValues::Value> NodeValues::Read(const Answers& answers) const {
  std::vector<Value> values;
  for (size_t i = 0; i < answers.size() && i < metrics_.size(); ++i) {
    for (const QueryResult& result : answers[i].results) {
      const std::string* host = result.tags.Find("host");
      const std::string* job = result.tags.Find("job");
      if (host == nullptr || job == nullptr || result.points.empty()) continue;
      Value value{*job, *host, metrics_[i], result.tags, result.points.back().value};
      for (const char* key : {"host", "job", "task"}) value.tags.Erase(key);
      values.push_back(std::move(value));
    }
  }
  return values;
}

Profile NodeProfile(const std::string& host, const std::vector<NodeValues::Value>& values) {
  std::map<std::string, Profile> steps;
  for (const NodeValues::Value& value : values) {
    if (value.host != host || std::isnan(value.value)) continue;
    FootprintEntry entry;
    entry.series = {*value.metric, value.tags};
    entry.ticks = 1;
    entry.last = entry.mean = entry.min = entry.max = value.value;
    steps[value.job].footprint.push_back(std::move(entry));
  }
  std::vector<Profile> list;
  list.reserve(steps.size());
  for (auto& [job, profile] : steps) list.push_back(std::move(profile));
  Profile node = SumOf(list);
  node.job = NodeDescription(host);
  return node;
}

}  // namespace sonde::web
