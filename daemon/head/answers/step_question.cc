#include "daemon/head/answers/step_question.h"

#include <algorithm>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "daemon/head/answers/hosts_now.h"
#include "series/alias/aliases.h"
#include "series/store/reduced.h"
#include "web/source/answers.h"

namespace sonde::head {
namespace {

using Callback = web::StepSeries::Callback;

// The one whose downsample keeps the question answerable from reduced series.
Aggregator OfOneValue(Aggregator aggregator) {
  return aggregator == Aggregator::kMin || aggregator == Aggregator::kMax ? aggregator
                                                                          : Aggregator::kAvg;
}

bool HasSeries(const StepRecord& record, std::string_view metric) {
  const std::shared_ptr<const std::vector<Series>> all = record.AllSeries();
  return std::any_of(all->begin(), all->end(),
                     [&](const Series& s) { return s.metric.name == metric; });
}

// What the question stands for; nothing if it names a metric of the step.
std::optional<AliasQuery> AliasOf(const StepRecord& record, const QuerySpec& question) {
  std::optional<AliasQuery> alias = AliasQuery::Of(question);
  if (alias && HasSeries(record, question.metric)) alias.reset();
  return alias;
}

// Collects the answers to an alias's queries.
class AliasAnswers {
 public:
  AliasAnswers(AliasQuery alias, Callback callback)
      : alias_(std::move(alias)), callback_(std::move(callback)), answers_(alias_.specs().size()) {}

  const AliasQuery& alias() const { return alias_; }

  void Take(size_t place, Result<web::Answer> answer) {
    {
      const std::lock_guard lock(mutex_);
      answers_[place] = std::move(answer);
      if (++taken_ < answers_.size()) return;
    }
    callback_(Fold());
  }

 private:
  Result<web::Answer> Fold() {
    std::vector<web::Answer> answers;
    for (std::optional<Result<web::Answer>>& one : answers_) {
      if (!one->ok()) return one->status();
      answers.push_back(**std::move(one));
    }
    return web::FoldAnswers(alias_, std::move(answers));
  }

  const AliasQuery alias_;
  const Callback callback_;
  std::mutex mutex_;  // guards what follows until all were taken
  std::vector<std::optional<Result<web::Answer>>> answers_;
  size_t taken_ = 0;
};

}  // namespace

QuerySpec AtTicks(QuerySpec spec, Nanos period) {
  if (spec.downsample) return spec;
  spec.downsample = Downsample{period, OfOneValue(spec.aggregator), Downsample::Fill::kNone};
  if (spec.rate) spec.start = std::max<Nanos>(spec.start - kSlowPeriod - period, 0);
  return spec;
}

bool HasMetric(const StepRecord& record, const std::string& metric) {
  if (HasSeries(record, metric)) return true;
  QuerySpec named;
  named.metric = metric;
  const std::optional<AliasQuery> alias = AliasQuery::Of(named);
  return alias && HasSeries(record, alias->metric());
}

bool TakesLittleTime(const StepRecord& record, Nanos period, const QuerySpec& question) {
  constexpr size_t kMostSeries = 4096;
  constexpr Nanos kMostTicks = 1024;  // rows that are not packed yet
  constexpr Nanos kMostCells = 16384;
  // A pattern may be one that takes long.
  const bool searches =
      std::any_of(question.filters.begin(), question.filters.end(),
                  [](const TagFilter& f) { return f.type == TagFilter::Type::kRegexp; });
  const auto job = record.Job();
  const auto all = record.AllSeries();
  if (searches || all->size() > kMostSeries) return false;
  if (job->nodes.size() >= HostsNow::kMany) return false;  // it may look at each
  const auto series = std::count_if(
      all->begin(), all->end(), [&](const Series& s) { return s.metric.name == question.metric; });
  const Nanos newest = record.NewestRow();
  const Nanos start = std::max(AtTicks(question, period).start, job->start);
  const Nanos ticks = (std::max(newest, start) - start) / period + 1;
  return ticks <= kMostTicks && ticks * series * static_cast<Nanos>(kStatColumns) <= kMostCells;
}

void AskStep(const std::shared_ptr<const LiveSource>& source, const StepRecord& record,
             Nanos period, const QuerySpec& question, Callback callback) {
  const QuerySpec at_ticks = AtTicks(question, period);
  std::optional<AliasQuery> alias = AliasOf(record, at_ticks);
  if (!alias) return source->QueryForStep(at_ticks, std::move(callback));
  const auto answers = std::make_shared<AliasAnswers>(*std::move(alias), std::move(callback));
  for (size_t i = 0; i < answers->alias().specs().size(); ++i) {
    QuerySpec spec = answers->alias().specs()[i];
    if (!question.downsample) {
      // Of the ticks alone, too.
      spec.start = at_ticks.start;
      spec.end = at_ticks.end;
      spec.downsample.reset();
      spec = AtTicks(std::move(spec), period);
    }
    source->QueryForStep(
        spec, [answers, i](Result<web::Answer> answer) { answers->Take(i, std::move(answer)); });
  }
}

}  // namespace sonde::head
