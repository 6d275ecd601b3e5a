#include "serve/whole_step.h"

#include <fmt/core.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "profiles/archive/asked_series.h"
#include "series/query/aggregate.h"
#include "series/query/pieces/absences.h"
#include "series/query/pieces/pieces.h"
#include "series/query/steps.h"
#include "series/store/past.h"

namespace sonde::serve {
namespace {

using query_steps::kJobTag;

class WholeStep {
 public:
  WholeStep(const Archive& archive, const ProfileEntry& step, const QuerySpec& spec,
            const SeriesFilter& filter)
      : archive_(archive), step_(step), spec_(spec), filter_(filter) {}

  Result<web::Answer> Answer() {
    const Nanos period = step_.job.period;
    Result<std::vector<SeriesData>> reduced =
        ReadSeries(archive_, step_, SeriesScope::kReduced, spec_, filter_,
                   ReducedRange(spec_, /*counts=*/true, period), Earlier::kNone);
    if (!reduced.ok()) return reduced.status();
    reduced_ = *std::move(reduced);
    SONDE_RETURN_IF_ERROR(CheckRead(reduced_));
    std::erase_if(reduced_,
                  [this](const SeriesData& one) { return !PiecesNeed(spec_, one.series); });
    web::Answer answer;
    const bool recorded = std::any_of(reduced_.begin(), reduced_.end(), [this](const auto& one) {
      return ReducedNeeds(spec_, one.series);
    });
    if (PercentileOf(spec_.aggregator) > 0 && !recorded) return answer;
    counts_ = std::any_of(reduced_.begin(), reduced_.end(), [](const SeriesData& one) {
      return query_steps::Counts(one.series.metric);
    });
    const bool each_value = counts_ && Basis(spec_.aggregator) != Aggregator::kSum;
    std::vector<TimeRange> absences =
        AbsencesOf(step_.job.nodes, step_.job.presence, step_.job.end, each_value);
    const Result<bool> past = HasPast();
    if (!past.ok()) return past.status();
    if (*past) absences = {kAnyTime};
    const CutQuery cut = CutPieces(spec_, reduced_, absences, period);
    Result<std::vector<QueryResult>> results = EvaluateReduced(spec_, cut.rows, step_.job.presence);
    if (!results.ok()) return results.status();
    answer.results = *std::move(results);
    for (const QueryPiece& piece : cut.pieces) {
      if (const Status added = AddPiece(piece, answer); !added.ok()) return added;
    }
    return answer;
  }

 private:
  // The counter that tells is there until the step ends.
  Result<bool> HasPast() const {
    constexpr Nanos kLast = 60 * kSecond;
    QuerySpec counter;
    counter.metric = kPastCounter;
    const Result<SeriesFilter> all = SeriesFilter::Make(counter);
    if (!all.ok()) return all.status();
    const Nanos end = step_.job.end != 0 ? step_.job.end : INT64_MAX;
    const Nanos first = step_.job.end != 0 ? end - kLast - 10 * step_.job.period : 0;
    const Result<std::vector<SeriesData>> read = ReadSeries(
        archive_, step_, SeriesScope::kReduced, counter, *all, {first, end}, Earlier::kNone);
    if (!read.ok()) return read.status();
    return std::any_of(read->begin(), read->end(), [this](const SeriesData& one) {
      return CountsPastOf(spec_.metric, one.series);
    });
  }

  Status AddPiece(const QueryPiece& piece, web::Answer& answer) {
    Result<std::vector<QueryResult>> results = OfSeries(piece);
    if (!results.ok()) {
      if (answer.rows_only.empty()) answer.rows_only = results.status().message();
      results = OfRows(piece);
    }
    if (!results.ok()) return results.status();
    JoinPiece(spec_, piece, *std::move(results), counts_, answer.results);
    return {};
  }

  // What rows tell that are not right.
  Result<std::vector<QueryResult>> OfRows(const QueryPiece& piece) {
    if (!all_rows_) {
      Result<std::vector<QueryResult>> results =
          EvaluateReduced(spec_, reduced_, step_.job.presence);
      if (!results.ok()) return results;
      all_rows_ = *std::move(results);
    }
    return InPiece(piece, *all_rows_);
  }

  Result<std::vector<QueryResult>> OfSeries(const QueryPiece& piece) {
    // Of series that were thinned, what is left may lie further away.
    for (const TimeRange& range : {piece.data, DataRange(spec_)}) {
      Result<std::vector<SeriesData>> series = Read(range);
      if (!series.ok()) return series.status();
      if (!Lack(range, *series)) return EvaluatePiece(spec_, piece, *std::move(series));
    }
    return Status(Code::kNotFound,
                  "values of nodes are missing in their series that are in the rows of the step");
  }

  Result<std::vector<SeriesData>> Read(const TimeRange& range) {
    const size_t size = PointsIn(range, reduced_);
    if (read_ + size > kMaxReadPoints) {
      return Status(Code::kLimit, fmt::format("the nodes' series have more than {} points there",
                                              kMaxReadPoints));
    }
    read_ += size;
    Result<std::vector<SeriesData>> series =
        ReadSeries(archive_, step_, SeriesScope::kNodes, spec_, filter_, range,
                   counts_ ? Earlier::kCounted : Earlier::kNone);
    if (!series.ok()) return series;
    SONDE_RETURN_IF_ERROR(CheckRead(*series));  // rows do not tell of all
    return series;
  }

  // Blocks of a node may be missing: it was lost before it sent the last one, one was refused, or
  // is damaged. Rows have what the node counted till then.
  bool Lack(TimeRange range, const std::vector<SeriesData>& series) const {
    if (step_.job.end != 0) range.last = std::min(range.last, step_.job.end - 1);
    return SeriesLack(range, series, reduced_, step_.job.period);
  }

  const Archive& archive_;
  const ProfileEntry& step_;
  const QuerySpec& spec_;
  const SeriesFilter& filter_;
  std::vector<SeriesData> reduced_;
  bool counts_ = false;
  size_t read_ = 0;  // points, as far as rows tell
  std::optional<std::vector<QueryResult>> all_rows_;
};

}  // namespace

Status CheckRead(const std::vector<SeriesData>& series) {
  size_t points = 0;
  for (const SeriesData& one : series) points += one.points.size();
  if (points <= kMaxReadPoints) return {};
  return {Code::kLimit,
          fmt::format("the query needs more than {} points of {} series: ask for a shorter range, "
                      "or name a job or fewer hosts",
                      kMaxReadPoints, series.size())};
}

Result<std::vector<SeriesData>> ReadSeries(const Archive& archive, const ProfileEntry& step,
                                           SeriesScope scope, const QuerySpec& spec,
                                           const SeriesFilter& filter, const TimeRange& range,
                                           Earlier earlier) {
  const std::string job = step.job.id.ToString();
  const auto wanted = [&](Tags tags) {
    tags.Set(kJobTag, job);
    return filter.Matches(spec.metric, tags);
  };
  Result<std::vector<SeriesData>> read =
      ReadAsked(archive, step.key, scope, spec, wanted, range, earlier);
  if (!read.ok()) return read;
  for (SeriesData& data : *read) data.series.tags.Set(kJobTag, job);
  return read;
}

Result<web::Answer> AnswerWholeStep(const Archive& archive, const ProfileEntry& step,
                                    const QuerySpec& spec, const SeriesFilter& filter) {
  return WholeStep(archive, step, spec, filter).Answer();
}

}  // namespace sonde::serve
