#include "serve/step_queries.h"

#include <fmt/core.h>

#include <algorithm>
#include <functional>
#include <iterator>
#include <map>
#include <numeric>
#include <string_view>
#include <utility>

#include "core/log.h"
#include "profiles/records/keys.h"
#include "profiles/select/select.h"
#include "series/query/aggregate.h"
#include "series/query/part.h"
#include "series/query/plan.h"
#include "series/query/steps.h"
#include "serve/whole_step.h"

namespace sonde::serve {
namespace {

using query_steps::kJobTag;

// The steps that a filter names one by one, if a filter does so and they are few.
std::vector<std::string> NamedSteps(const QuerySpec& spec) {
  constexpr size_t kFew = 256;
  for (const TagFilter& filter : spec.filters) {
    if (filter.key != kJobTag || filter.type != TagFilter::Type::kLiteralOr) continue;
    std::vector<std::string> names = query_steps::Alternatives(filter.pattern);
    std::sort(names.begin(), names.end());
    names.erase(std::unique(names.begin(), names.end()), names.end());
    if (names.size() <= kFew) return names;
  }
  return {};
}

using Entries = std::vector<ProfileEntry>;
using IsWanted = std::function<bool(const JobStep&)>;

// The named steps that exist in the range, newest first.
Result<Entries> FindNamed(const Archive& archive, const std::vector<std::string>& names,
                          const TimeRange& range, const IsWanted& wanted) {
  Entries entries;
  for (const std::string& name : names) {
    Result<Entries> found = archive.Find(JobStep::Parse(name));
    if (!found.ok()) return found.status();
    for (ProfileEntry& entry : *found) {
      const JobDescription& job = entry.job;
      const bool over = !entry.running && job.end != 0 && job.end < range.first;
      // Find gives every step of a job, and tasks of an array.
      if (over || job.start > range.last || job.id.ToString() != name || !wanted(job.id)) continue;
      entries.push_back(std::move(entry));
    }
  }
  std::sort(entries.begin(), entries.end(), [](const ProfileEntry& a, const ProfileEntry& b) {
    return a.job.start != b.job.start ? a.job.start > b.job.start : a.key < b.key;
  });
  return entries;
}

// The same for all steps.
Result<Entries> FindInRange(const Archive& archive, const TimeRange& range,
                            const IsWanted& wanted) {
  Selection selection;
  selection.until = range.last;
  selection.lasting_to = range.first;
  const auto listed = archive.Select(selection, Clock::System().Now());
  if (!listed.ok()) return listed.status();
  Entries entries;
  for (const ListedProfile& one : *listed) {
    const auto known = keys::DescribeKey(one.key);
    if (!known || !wanted(known->id)) continue;
    Result<ProfileEntry> entry = archive.Entry(one.key);
    if (entry.ok()) entries.push_back(*std::move(entry));
  }
  return entries;
}

// The steps of a query: by its filters on the tag `job` and its range.
Result<Entries> SelectSteps(const Archive& archive, const QuerySpec& spec) {
  QuerySpec by_job;
  by_job.metric = spec.metric;
  for (const TagFilter& filter : spec.filters) {
    if (filter.key == kJobTag) by_job.filters.push_back(filter);
  }
  const Result<SeriesFilter> filter = SeriesFilter::Make(by_job);
  if (!filter.ok()) return filter.status();
  const IsWanted wanted = [&](const JobStep& id) {
    return filter->Matches(spec.metric, {{std::string(kJobTag), id.ToString()}});
  };
  const std::vector<std::string> named = NamedSteps(spec);
  const TimeRange range = DataRange(spec);
  return named.empty() ? FindInRange(archive, range, wanted)
                       : FindNamed(archive, named, range, wanted);
}

// Whether a running step's nodes may downsample series that are then merged with other steps'
// series and downsampled again: that keeps a bucket of one point, and the range that is read cuts
// no bucket.
bool NodesDownsample(const QuerySpec& spec) {
  if (!spec.downsample || spec.downsample->calendar != nullptr) return false;
  const Downsample& how = *spec.downsample;
  return how.interval > 0 && (DataRange(spec).last + 1) % how.interval == 0 &&
         KeepsOneValue(how.function);
}

// The query to running steps whose series are merged with those of others: every series by itself,
// since the merging is done here.
QuerySpec BySeries(const QuerySpec& spec) {
  const TimeRange range = DataRange(spec);
  QuerySpec raw;
  raw.metric = spec.metric;
  raw.aggregator = Aggregator::kNone;
  raw.filters = spec.filters;
  raw.explicit_tags = spec.explicit_tags;
  raw.start = range.first;
  raw.end = range.last;
  if (NodesDownsample(spec)) {
    raw.downsample = spec.downsample;
    raw.downsample->fill = Downsample::Fill::kNone;
  }
  return raw;
}

QueryScene SceneOf(const std::vector<ProfileEntry>& steps) {
  QueryScene scene;
  scene.steps = steps.size();
  scene.heads = static_cast<size_t>(std::count_if(steps.begin(), steps.end(), RunningHeads::Has));
  if (steps.size() == 1) {
    scene.nodes = steps.front().job.nodes.size();
    scene.period = steps.front().job.period;
  }
  return scene;
}

// Or says that the next way should be tried.
bool IsAnswered(AnswerWay way, const Result<web::Answer>& answer) {
  switch (way) {
    case AnswerWay::kHead:
      return answer.ok() || answer.status().code() != Code::kUnavailable;
    case AnswerWay::kParts:
      // Such as too many points between the ticks, or a head of another release.
      if (!answer.ok()) {
        log::Debug("parts of an answer: {}; every series is asked for", answer.status().message());
      }
      return answer.ok();
    case AnswerWay::kSpread:
      return answer.ok() && !answer->results.empty();
    default:
      return true;
  }
}

// How many nodes an answer from what is stored is of: a lost node's record stops, and of a running
// step, whose head has not answered, nobody knows what the record lacks. A host is one node, also
// where its daemon was started anew: the newest counts, as for the head (CountHosts).
uint32_t NodesStored(const ProfileEntry& step) {
  if (step.running) return 0;
  std::map<std::pair<std::string_view, std::string_view>, bool> lost;
  for (const NodeInfo& node : step.job.nodes) lost[{node.job, node.host}] = node.lost;
  return static_cast<uint32_t>(
      std::count_if(lost.begin(), lost.end(), [](const auto& host) { return !host.second; }));
}

// What a step's part says of its nodes is said of the whole answer.
void SayOf(const web::PartAnswer& part, web::Answer& answer) {
  answer.nodes_answered += part.nodes_answered;
  answer.nodes_expected += part.nodes_expected;
  if (answer.rows_only.empty()) answer.rows_only = part.rows_only;
}

void Append(std::vector<QueryResult> results, std::vector<SeriesData>& out) {
  for (QueryResult& result : results) {
    SeriesData& data = out.emplace_back();
    data.series.metric.name = std::move(result.metric);
    data.series.tags = std::move(result.tags);
    data.points = std::move(result.points);
  }
}

}  // namespace

Status StepQueries::ReadStep(const ProfileEntry& entry, const QuerySpec& spec,
                             const SeriesFilter& filter, std::vector<SeriesData>& out) const {
  // Earlier counts stay in sums (docs/queries.md).
  const auto earlier = query_steps::HoldsCounters(spec) ? Earlier::kCounted : Earlier::kNone;
  Result<std::vector<SeriesData>> read =
      ReadSeries(archive_, entry, SeriesScope::kNodes, spec, filter, DataRange(spec), earlier);
  if (!read.ok()) return read.status();
  std::move(read->begin(), read->end(), std::back_inserter(out));
  return {};
}

Task<Result<web::Answer>> StepQueries::Evaluate(QuerySpec spec) const {
  if (const Status bad = CheckQuery(spec); !bad.ok()) co_return bad;
  const Result<SeriesFilter> filter = SeriesFilter::Make(spec);
  if (!filter.ok()) co_return filter.status();
  const Result<std::vector<ProfileEntry>> steps = SelectSteps(archive_, spec);
  if (!steps.ok()) co_return steps.status();
  const std::vector<AnswerWay> plan = PlanQuery(spec, SceneOf(*steps));
  Result<web::Answer> answer = web::Answer();
  for (const AnswerWay way : plan) {
    answer = co_await GoWay(way, spec, *steps, *filter);
    if (way == plan.back() || IsAnswered(way, answer)) break;
  }
  co_return answer;
}

Task<Result<web::Answer>> StepQueries::GoWay(AnswerWay way, const QuerySpec& spec,
                                             const Steps& steps, const SeriesFilter& filter) const {
  switch (way) {
    case AnswerWay::kHead:
      return heads_.Query(steps.front(), spec);
    case AnswerWay::kEachHead:
      return EvaluateEach(spec, steps, filter);
    case AnswerWay::kParts:
      return EvaluateParts(spec, steps, filter);
    case AnswerWay::kSpread:
    case AnswerWay::kReduced:
      return EvaluateWhole(spec, steps.front(), filter);
    case AnswerWay::kSeries:
      break;
  }
  return EvaluateSeries(spec, steps, filter);
}

Task<Result<web::Answer>> StepQueries::EvaluateWhole(const QuerySpec& spec,
                                                     const ProfileEntry& step,
                                                     const SeriesFilter& filter) const {
  Result<web::Answer> answer = AnswerWholeStep(archive_, step, spec, filter);
  if (!answer.ok()) co_return answer;
  answer->nodes_answered = NodesStored(step);
  answer->nodes_expected = step.job.expected_nodes;
  if (!answer->rows_only.empty()) {
    log::Warning("step {}, {}: rows of the whole step answer alone: {}", step.job.id.ToString(),
                 spec.metric, answer->rows_only);
  }
  co_return answer;
}

// If no result covers several steps, each head is asked only for its own part of the answer.
Task<Result<web::Answer>> StepQueries::EvaluateEach(const QuerySpec& spec, const Steps& steps,
                                                    const SeriesFilter& filter) const {
  Result<RunningHeads::Told> told = co_await heads_.QueryAll(steps, spec);
  if (!told.ok()) co_return told.status();
  web::Answer answer;
  std::vector<ProfileEntry> others;
  for (const ProfileEntry& step : steps) {
    const auto at = told->find(step.key);
    if (at == told->end()) {
      others.push_back(step);
      others.back().endpoint = {};  // its head was asked already
      continue;
    }
    web::Answer& its = at->second;
    std::move(its.results.begin(), its.results.end(), std::back_inserter(answer.results));
    answer.nodes_expected += its.nodes_expected;
    answer.nodes_answered += its.nodes_answered;
    if (answer.rows_only.empty()) answer.rows_only = std::move(its.rows_only);
  }
  if (!others.empty()) {
    Result<web::Answer> rest = co_await EvaluateSeries(spec, others, filter);
    // A step that cannot be read must not hide the others.
    if (!rest.ok() && (others.size() > 1 || rest.status().code() == Code::kLimit)) co_return rest;
    if (rest.ok()) {
      std::move(rest->results.begin(), rest->results.end(), std::back_inserter(answer.results));
      answer.nodes_answered += rest->nodes_answered;
    }
    for (const ProfileEntry& step : others) answer.nodes_expected += step.job.expected_nodes;
  }
  query_steps::SortResults(spec, answer.results);
  co_return answer;
}

Task<Result<web::Answer>> StepQueries::EvaluateParts(const QuerySpec& spec, const Steps& steps,
                                                     const SeriesFilter& filter) const {
  constexpr int kMaxRounds = 3;  // new points may come meanwhile
  QueryGrid grid;
  for (const ProfileEntry& step : steps) grid.step = std::gcd(grid.step, step.job.period);
  for (int round = 0; round < kMaxRounds; ++round) {
    Result<RunningHeads::Parts> told = co_await heads_.QueryParts(steps, spec, grid);
    if (!told.ok()) co_return told.status();
    web::Answer answer;
    QueryPart part = EmptyPart(spec);
    std::vector<SeriesData> stored;
    for (const ProfileEntry& step : steps) {
      if (const auto at = told->find(step.key); at != told->end()) {
        const Status merged = MergePart(spec, grid, std::move(at->second.part), part);
        if (!merged.ok()) co_return merged;
        SayOf(at->second, answer);
        continue;
      }
      answer.nodes_expected += step.job.expected_nodes;
      // A step that cannot be read must not hide the others.
      if (!ReadStep(step, spec, filter, stored).ok()) continue;
      if (const Status large = CheckRead(stored); !large.ok()) co_return large;
      answer.nodes_answered += NodesStored(step);
    }
    Result<QueryPart> own = EvaluatePart(spec, std::move(stored), &grid);
    if (!own.ok()) co_return own.status();
    if (const Status merged = MergePart(spec, grid, *std::move(own), part); !merged.ok()) {
      co_return merged;
    }
    const std::vector<Nanos> odd = OddTimes(spec, part, grid);
    if (odd.empty()) {
      answer.results = FinishPart(spec, part);
      co_return answer;
    }
    if (const Status full = AddTimes(spec, odd, grid); !full.ok()) co_return full;
  }
  co_return Status(Code::kUnavailable, "the times of the points changed with each question");
}

// Heads' answers do not tell the type of a metric. Stored series do, else the metrics of a running
// step.
Task<MetricType> StepQueries::TypeOf(const QuerySpec& spec, const Steps& steps,
                                     const RunningHeads::Told& told,
                                     const std::vector<SeriesData>& series) const {
  for (const SeriesData& data : series) {
    if (query_steps::Counts(data.series.metric)) co_return data.series.metric.type;
  }
  Steps asked;
  for (const ProfileEntry& step : steps) {
    if (told.contains(step.key)) asked.push_back(step);
  }
  const RunningHeads::Profiles profiles = co_await heads_.GetProfiles(asked);
  for (const ProfileEntry& step : asked) {
    const auto profile = profiles.find(step.key);
    if (profile == profiles.end()) continue;
    for (const FootprintEntry& entry : profile->second.footprint) {
      if (entry.series.metric.name == spec.metric) co_return entry.series.metric.type;
    }
  }
  co_return MetricType::kGauge;
}

Task<Result<web::Answer>> StepQueries::EvaluateSeries(const QuerySpec& spec, const Steps& steps,
                                                      const SeriesFilter& filter) const {
  const QuerySpec by_series = BySeries(spec);
  Result<RunningHeads::Told> told = co_await heads_.QueryAll(steps, by_series);
  if (!told.ok()) co_return told.status();
  web::Answer answer;
  std::vector<SeriesData> series;
  for (const ProfileEntry& step : steps) {
    const auto at = told->find(step.key);
    Status read;
    if (at != told->end()) {
      Append(std::move(at->second.results), series);
      answer.nodes_answered += at->second.nodes_answered;
      if (answer.rows_only.empty()) answer.rows_only = std::move(at->second.rows_only);
    } else {
      read = ReadStep(step, spec, filter, series);
    }
    if (const Status large = CheckRead(series); !large.ok()) co_return large;
    answer.nodes_expected += step.job.expected_nodes;
    if (read.ok() && at == told->end()) answer.nodes_answered += NodesStored(step);
    if (!read.ok() && steps.size() == 1) co_return read;
  }
  // The type is the same in all steps.
  const MetricType type = co_await TypeOf(spec, steps, *told, series);
  for (SeriesData& data : series) {
    if (data.series.metric.type == MetricType::kGauge) data.series.metric.type = type;
  }
  Result<std::vector<QueryResult>> results = sonde::Evaluate(spec, std::move(series));
  if (!results.ok()) co_return results.status();
  answer.results = *std::move(results);
  co_return answer;
}

}  // namespace sonde::serve
