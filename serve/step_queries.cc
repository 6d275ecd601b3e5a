#include "cli/step_queries.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <iterator>
#include <numeric>
#include <utility>

#include "core/log.h"
#include "profiles/keys.h"
#include "profiles/select.h"
#include "series/aggregate.h"
#include "series/query_part.h"
#include "series/query_steps.h"

namespace sonde::cli {
namespace {

constexpr size_t kMaxReadPoints = 32u << 20;  // of one query, in memory: 512 MiB
constexpr std::string_view kJobTag = "job";
// Above it a question about the whole step is answered from the reduced series, where that is
// exact.
constexpr size_t kReadNodesUpTo = 64;

// The steps that a filter names one by one, if one does and they are few.
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

// Those of the names that were there in the range, newest first.
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

// The same of all steps.
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

// The steps a query is about: its filters on the tag `job`, its range.
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

// What is read of all steps lies in memory.
Status CheckRead(const std::vector<SeriesData>& series) {
  size_t points = 0;
  for (const SeriesData& one : series) points += one.points.size();
  if (points <= kMaxReadPoints) return {};
  return {Code::kLimit,
          fmt::format("the query needs more than {} points of {} series: ask for a shorter range, "
                      "or name a job or fewer hosts",
                      kMaxReadPoints, series.size())};
}

// A question for the largest or the smallest is answered from the extremes of thinned rows.
Archive::Thinned ThinnedFor(const QuerySpec& spec) {
  switch (spec.downsample ? spec.downsample->function : spec.aggregator) {
    case Aggregator::kMin:
      return Archive::Thinned::kMin;
    case Aggregator::kMax:
      return Archive::Thinned::kMax;
    default:
      return Archive::Thinned::kMean;
  }
}

// Whether a running step's nodes may downsample what is then put together with other steps' series,
// where it is downsampled again: that keeps a bucket of one point, and the range that is read cuts
// none.
bool NodesDownsample(const QuerySpec& spec) {
  if (!spec.downsample || spec.downsample->calendar != nullptr) return false;
  const Downsample& how = *spec.downsample;
  return how.interval > 0 && (DataRange(spec).last + 1) % how.interval == 0 &&
         KeepsOneValue(how.function);
}

// What running steps are asked for where their series are put together with those of others: every
// series by itself, for what is done to them together is done here.
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

// Heads are asked in whole milliseconds.
bool CanAskForParts(const QuerySpec& spec, const std::vector<ProfileEntry>& steps) {
  return query_steps::HasParts(spec) && spec.start % kMillisecond == 0 &&
         spec.end % kMillisecond == 0 && std::any_of(steps.begin(), steps.end(), RunningHeads::Has);
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

Status StepQueries::ReadStep(const ProfileEntry& entry, Archive::Scope scope, const QuerySpec& spec,
                             const SeriesFilter& filter, std::vector<SeriesData>& out) const {
  const std::string job = entry.job.id.ToString();
  const auto wanted = [&](const Series& series) {
    if (series.metric.name != spec.metric) return false;
    Tags tags = series.tags;
    tags.Set(kJobTag, job);
    return filter.Matches(series.metric.name, tags);
  };
  const TimeRange range = scope == Archive::Scope::kReduced
                              ? ReducedRange(spec, true, entry.job.period)
                              : DataRange(spec);
  // What had been counted before stays in sums (docs/queries.md).
  const auto earlier =
      query_steps::HoldsCounters(spec) ? Archive::Earlier::kCounted : Archive::Earlier::kNone;
  Result<std::vector<SeriesData>> read =
      archive_.Read(entry.key, scope, wanted, range.first, range.last, ThinnedFor(spec), earlier);
  if (!read.ok()) return read.status();
  for (SeriesData& data : *read) {
    data.series.tags.Set(kJobTag, job);
    out.push_back(std::move(data));
  }
  return {};
}

Result<web::Answer> StepQueries::Evaluate(const QuerySpec& spec) const {
  SONDE_RETURN_IF_ERROR(CheckQuery(spec));
  const Result<SeriesFilter> filter = SeriesFilter::Make(spec);
  if (!filter.ok()) return filter.status();
  const Result<std::vector<ProfileEntry>> steps = SelectSteps(archive_, spec);
  if (!steps.ok()) return steps.status();
  // The head of the only step asks its nodes for no more than the answer.
  if (steps->size() == 1 && RunningHeads::Has(steps->front())) {
    Result<web::Answer> told = heads_.Query(steps->front(), spec);
    if (told.ok() || told.status().code() != Code::kUnavailable) return told;
  }
  if (steps->size() > 1 && query_steps::IsSeparateBy(spec, kJobTag)) {
    return EvaluateEach(spec, *steps, *filter);
  }
  if (steps->size() > 1 && CanAskForParts(spec, *steps)) {
    Result<web::Answer> answer = EvaluateParts(spec, *steps, *filter);
    if (answer.ok()) return answer;
    // Such as too many points between the ticks, or a head of another release.
    log::Debug("parts of an answer: {}; every series is asked for", answer.status().message());
  }
  const bool large = steps->size() == 1 && steps->front().job.nodes.size() > kReadNodesUpTo;
  if (large && SpreadAnswers(spec, steps->front().job.period)) {
    Result<web::Answer> recorded = EvaluateSeries(spec, *steps, *filter, Archive::Scope::kReduced);
    if (recorded.ok() && !recorded->results.empty()) return recorded;
  }
  const bool reduced = large && AnswersFromReduced(spec);
  return EvaluateSeries(spec, *steps, *filter,
                        reduced ? Archive::Scope::kReduced : Archive::Scope::kNodes);
}

// Of steps that share no result each head is asked for no more than its part of the answer.
Result<web::Answer> StepQueries::EvaluateEach(const QuerySpec& spec, const Steps& steps,
                                              const SeriesFilter& filter) const {
  Result<RunningHeads::Told> told = heads_.QueryAll(steps, spec);
  if (!told.ok()) return told.status();
  web::Answer answer;
  std::vector<ProfileEntry> others;
  for (const ProfileEntry& step : steps) {
    const auto at = told->find(step.key);
    if (at == told->end()) {
      others.push_back(step);
      others.back().endpoint = {};  // it was asked
      continue;
    }
    web::Answer& its = at->second;
    std::move(its.results.begin(), its.results.end(), std::back_inserter(answer.results));
    answer.nodes_expected += its.nodes_expected;
    answer.nodes_answered += its.nodes_answered;
  }
  if (!others.empty()) {
    Result<web::Answer> rest = EvaluateSeries(spec, others, filter, Archive::Scope::kNodes);
    // A step that cannot be read must not hide the others.
    if (!rest.ok() && (others.size() > 1 || rest.status().code() == Code::kLimit)) return rest;
    if (rest.ok()) {
      std::move(rest->results.begin(), rest->results.end(), std::back_inserter(answer.results));
      answer.nodes_answered += rest->nodes_answered;
    }
    for (const ProfileEntry& step : others) answer.nodes_expected += step.job.expected_nodes;
  }
  query_steps::SortResults(spec, answer.results);
  return answer;
}

Result<web::Answer> StepQueries::EvaluateParts(const QuerySpec& spec, const Steps& steps,
                                               const SeriesFilter& filter) const {
  constexpr int kMaxRounds = 3;  // points may come meanwhile
  QueryGrid grid;
  for (const ProfileEntry& step : steps) grid.step = std::gcd(grid.step, step.job.period);
  for (int round = 0; round < kMaxRounds; ++round) {
    Result<RunningHeads::Parts> told = heads_.QueryParts(steps, spec, grid);
    if (!told.ok()) return told.status();
    web::Answer answer;
    QueryPart part = EmptyPart(spec);
    std::vector<SeriesData> stored;
    for (const ProfileEntry& step : steps) {
      if (const auto at = told->find(step.key); at != told->end()) {
        SONDE_RETURN_IF_ERROR(MergePart(spec, std::move(at->second.part), part));
        answer.nodes_answered += at->second.nodes_answered;
        answer.nodes_expected += at->second.nodes_expected;
        continue;
      }
      answer.nodes_expected += step.job.expected_nodes;
      // A step that cannot be read must not hide the others.
      if (!ReadStep(step, Archive::Scope::kNodes, spec, filter, stored).ok()) continue;
      SONDE_RETURN_IF_ERROR(CheckRead(stored));
      answer.nodes_answered += static_cast<uint32_t>(step.job.nodes.size());
    }
    Result<QueryPart> own = EvaluatePart(spec, std::move(stored), &grid);
    if (!own.ok()) return own.status();
    SONDE_RETURN_IF_ERROR(MergePart(spec, *std::move(own), part));
    const std::vector<Nanos> odd = OddTimes(spec, part, grid);
    if (odd.empty()) {
      answer.results = FinishPart(spec, part);
      return answer;
    }
    SONDE_RETURN_IF_ERROR(AddTimes(spec, odd, grid));
  }
  return Status(Code::kUnavailable, "the times of the points changed with each question");
}

// What heads answer does not say what type a metric is of. Series that are stored do, else the
// metrics of a step that runs.
MetricType StepQueries::TypeOf(const QuerySpec& spec, const Steps& steps,
                               const RunningHeads::Told& told,
                               const std::vector<SeriesData>& series) const {
  for (const SeriesData& data : series) {
    if (query_steps::Counts(data.series.metric)) return data.series.metric.type;
  }
  for (const ProfileEntry& step : steps) {
    if (!told.contains(step.key)) continue;
    const Result<Profile> profile = heads_.GetProfile(step);
    if (!profile.ok()) continue;
    for (const FootprintEntry& entry : profile->footprint) {
      if (entry.series.metric.name == spec.metric) return entry.series.metric.type;
    }
  }
  return MetricType::kGauge;
}

Result<web::Answer> StepQueries::EvaluateSeries(const QuerySpec& spec, const Steps& steps,
                                                const SeriesFilter& filter,
                                                Archive::Scope scope) const {
  const bool reduced = scope == Archive::Scope::kReduced;
  Result<RunningHeads::Told> told = RunningHeads::Told();
  if (!reduced) told = heads_.QueryAll(steps, BySeries(spec));
  if (!told.ok()) return told.status();
  web::Answer answer;
  std::vector<SeriesData> series;
  for (const ProfileEntry& step : steps) {
    const auto at = told->find(step.key);
    Status read;
    if (at != told->end()) {
      Append(std::move(at->second.results), series);
      answer.nodes_answered += at->second.nodes_answered;
    } else {
      read = ReadStep(step, scope, spec, filter, series);
    }
    SONDE_RETURN_IF_ERROR(CheckRead(series));
    answer.nodes_expected += step.job.expected_nodes;
    if (read.ok() && at == told->end())
      answer.nodes_answered += static_cast<uint32_t>(step.job.nodes.size());
    if (!read.ok() && steps.size() == 1) return read;
  }
  // Of the same type in all steps.
  const MetricType type = TypeOf(spec, steps, *told, series);
  for (SeriesData& data : series) {
    if (data.series.metric.type == MetricType::kGauge) data.series.metric.type = type;
  }
  Result<std::vector<QueryResult>> results =
      reduced ? EvaluateReduced(spec, series) : sonde::Evaluate(spec, std::move(series));
  if (!results.ok()) return results.status();
  answer.results = *std::move(results);
  return answer;
}

}  // namespace sonde::cli
