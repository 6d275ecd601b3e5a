#include "web/opentsdb/recorded.h"

#include <algorithm>
#include <iterator>
#include <set>
#include <utility>

#include "series/query/steps.h"

namespace sonde::web {
namespace {

using JobAndHost = std::pair<std::string, std::string>;

JobAndHost HostOf(const Tags& tags) {
  const auto text = [&](std::string_view key) {
    const std::string* found = tags.Find(key);
    return found == nullptr ? std::string() : *found;
  };
  return {text(query_steps::kJobTag), text("host")};
}

// One point for each series of the steps, whatever its values are.
QuerySpec QuestionOf(const std::string& metric, const std::set<std::string>& jobs,
                     TimeRange range) {
  QuerySpec spec;
  spec.metric = metric;
  spec.aggregator = Aggregator::kNone;
  spec.downsample.emplace().function = Aggregator::kCount;
  spec.start = range.first;
  spec.end = range.last;
  TagFilter& filter = spec.filters.emplace_back();
  filter.key = query_steps::kJobTag;
  for (const std::string& job : jobs) filter.pattern += (filter.pattern.empty() ? "" : "|") + job;
  return spec;
}

// Which of the listed series' steps run, and the range since the first of them began.
std::set<std::string> RunningOf(const std::vector<JobDescription>& steps,
                                const std::vector<Series>& list, TimeRange& range) {
  std::set<std::string> listed, running;
  for (const Series& one : list) listed.insert(HostOf(one.tags).first);
  for (const JobDescription& step : steps) {
    const std::string id = step.id.ToString();
    if (HasEnded(step) || !listed.contains(id)) continue;
    running.insert(id);
    range.first = std::min(range.first, step.start);
  }
  return running;
}

// Puts the series that were found in the places of those that stand for them.
void Replace(const Answer& answer, const std::set<std::string>& running,
             std::vector<Series>& list) {
  const Metric metric = list.front().metric;
  std::set<JobAndHost> answered;
  std::vector<Series> found;
  for (const QueryResult& result : answer.results) {
    answered.insert(HostOf(result.tags));
    found.push_back({metric, result.tags});
  }
  const bool of_all = answer.nodes_answered == answer.nodes_expected;
  std::erase_if(list, [&](const Series& one) {
    const JobAndHost where = HostOf(one.tags);
    return running.contains(where.first) && (of_all || answered.contains(where));
  });
  list.insert(list.begin(), std::make_move_iterator(found.begin()),
              std::make_move_iterator(found.end()));
}

}  // namespace

Task<Result<std::vector<Series>>> ListRecordedSeries(const Context& context, std::string metric,
                                                     size_t limit) {
  Result<std::vector<Series>> list =
      co_await Ask(*context.series, &StepSeries::ListSeries, metric, limit);
  if (!list.ok() || list->empty() || metric.empty()) co_return list;
  // All that run, however few are asked for.
  const Result<std::vector<JobDescription>> steps =
      co_await Ask(*context.history, &StepHistory::Jobs, size_t{1});
  if (!steps.ok()) co_return list;
  TimeRange range{context.clock->Now(), context.clock->Now()};
  const std::set<std::string> running = RunningOf(*steps, *list, range);
  if (running.empty()) co_return list;
  // Each task may have one: more than are looked through need not be found.
  size_t most = list->size();
  for (const JobDescription& step : *steps) {
    if (running.contains(step.id.ToString())) most += step.expected_tasks;
  }
  if (most > limit) co_return list;
  const QuerySpec question = QuestionOf(metric, running, range);
  const Result<Answer> answer = co_await Ask(*context.series, &StepSeries::Query, question);
  if (!answer.ok()) co_return list;
  Replace(*answer, running, *list);
  if (list->size() > limit) list->resize(limit);
  co_return list;
}

}  // namespace sonde::web
