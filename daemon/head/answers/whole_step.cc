#include "daemon/head/answers/whole_step.h"

#include <fmt/core.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/clocks.h"
#include "series/query/aggregate.h"
#include "series/query/pieces/absences.h"
#include "series/query/pieces/pieces.h"
#include "series/query/steps.h"
#include "series/store/past.h"
#include "series/store/reduced.h"

namespace sonde::head {
namespace {

using query_steps::Counts;
using query_steps::kJobTag;

Nanos Now() { return Clock::System().Monotonic(); }

// One answer, put together piece by piece. It lives as long as a question of it is under way.
class WholeStep : public std::enable_shared_from_this<WholeStep> {
 public:
  WholeStep(const WholeStepSource& source, const QuerySpec& spec,
            web::StepSeries::Callback callback)
      : record_(source.record),
        hosts_now_(source.hosts),
        nodes_(source.nodes),
        settled_(source.settled),
        spec_(spec),
        callback_(std::move(callback)) {
    const auto job = record_.Job();
    job_ = job->id.ToString();
    period_ = job->period;
    start_ = job->start;
  }

  // What rows that are right tell, and which pieces are missing.
  Result<bool> Begin() {
    const Result<SeriesFilter> filter = SeriesFilter::Make(spec_);
    if (!filter.ok()) return filter.status();
    const TimeRange range = ReducedRange(spec_, /*counts=*/true, period_);
    const auto wanted = [&](const Series& series) {
      if (!PiecesNeed(spec_, series)) return false;
      Tags tags = series.tags;
      tags.Erase(kStatTag);
      return filter->Matches(series.metric.name, tags);
    };
    reduced_ = record_.Read(wanted, range.first, range.last, &presence_);
    hosts_ = hosts_now_->Get();  // behind the rows: it knows of all nodes that are in them
    newest_ = record_.NewestRow();
    bool known = false;  // as a metric of the step
    for (const Series& series : *record_.AllSeries()) {
      if (series.metric.name != spec_.metric) continue;
      known = true;
      counts_ = counts_ || Counts(series.metric);
    }
    const bool recorded =
        std::any_of(reduced_.begin(), reduced_.end(),
                    [this](const SeriesData& one) { return ReducedNeeds(spec_, one.series); });
    if (PercentileOf(spec_.aggregator) > 0 && !recorded) return false;
    const bool each_value = counts_ && Basis(spec_.aggregator) != Aggregator::kSum;
    const HostsNow::Ranges absences = hosts_now_->Absences(hosts_, presence_, each_value);
    const bool past = record_.HasPast(spec_.metric);
    static const std::vector<TimeRange> kAny = {kAnyTime};
    CutQuery cut = CutPieces(spec_, reduced_, past ? kAny : *absences, period_,
                             /*running=*/true);
    Result<std::vector<QueryResult>> results = OfRows(cut.rows);
    if (!results.ok()) return results.status();
    answer_.results = *std::move(results);
    if (known) pieces_ = std::move(cut.pieces);
    return true;
  }

  void Go() {
    for (; at_ < pieces_.size(); ++at_) {
      const QueryPiece& piece = pieces_[at_];
      if (std::optional<std::vector<QueryResult>> known = settled_->Find(spec_, piece)) {
        JoinPiece(spec_, piece, *std::move(known), counts_, answer_.results);
      } else if (Status why = MayAsk(piece); !why.ok()) {
        JoinRows(why);
      } else {
        return AskForPiece();
      }
    }
    answer_.nodes_answered = hosts_->in_rows().there;
    answer_.nodes_expected = hosts_->in_rows().expected;
    callback_(std::move(answer_));
  }

 private:
  // Rows do not know of the tags job and host, of which the latter is that of the only node.
  Result<std::vector<QueryResult>> OfRows(const std::vector<SeriesData>& rows) const {
    Result<std::vector<QueryResult>> results = EvaluateReduced(spec_, rows, *presence_);
    if (!results.ok()) return results;
    for (QueryResult& result : *results) {
      result.tags.Set(kJobTag, job_);
      if (hosts_->nodes() == 1) {
        result.tags.Set("host", hosts_->only());
      } else {
        result.aggregate_tags.emplace_back("host");
        std::sort(result.aggregate_tags.begin(), result.aggregate_tags.end());
      }
    }
    return results;
  }

  // --- Pieces of the nodes' series ---

  Status MayAsk(const QueryPiece& piece) {
    if (asked_ >= kMaxAskedPieces) {
      return {Code::kLimit, fmt::format("nodes are missing in rows of more than {} times; those "
                                        "are asked for first that are earlier",
                                        kMaxAskedPieces)};
    }
    const double read = ReadByNode(piece);
    if (read_ + read > kMaxReadByNode) {
      return {Code::kLimit,
              fmt::format("each node would have to read more than {} points", kMaxReadByNode)};
    }
    // Each question would wait for it again.
    if (silent_) return {Code::kUnavailable, "a node has not answered"};
    if (LacksNow() && settled_->IsSilent(Now())) {
      return {Code::kUnavailable, "a node that is missing in the newest row does not answer"};
    }
    ++asked_;
    read_ += read;
    return {};
  }

  // Points, as far as rows tell: of the hours that the node reads.
  double ReadByNode(const QueryPiece& piece) const {
    const TimeRange range = DataRange(QuestionOf(spec_, piece));
    double most = 0;
    for (const SeriesData& one : reduced_) {
      const std::string* stat = one.series.tags.Find(kStatTag);
      if (stat == nullptr || *stat != "count") continue;
      double count = 0;
      for (const Point& p : one.points) count = std::max(count, p.value);
      most += count;
    }
    const double nodes = std::max(hosts_->nodes(), 1u);
    const Nanos first = std::max(range.first, start_);
    const Nanos last = std::min(range.last, newest_);
    const Nanos ticks = std::max<Nanos>(last - first, 0) / period_;
    return std::max(most / nodes, 1.0) * static_cast<double>(ticks);
  }

  // Whether the newest row lacks a node that is there.
  bool LacksNow() const {
    return presence_->empty() || presence_->back().nodes < hosts_->connected();
  }

  void AskForPiece() {
    Ask(QuestionOf(spec_, pieces_[at_]),
        [](WholeStep& self, Result<NodeQuestions::Answer> told) { self.OnPiece(std::move(told)); });
  }

  using Then = void (*)(WholeStep& self, Result<NodeQuestions::Answer> told);
  void Ask(QuerySpec question, Then then) {
    QueryGrid ticks;
    ticks.step = period_;
    nodes_.Ask({std::move(question), std::move(ticks),
                [self = shared_from_this(), then](Result<NodeQuestions::Answer> told) {
                  then(*self, std::move(told));
                }});
  }

  void OnPiece(Result<NodeQuestions::Answer> told) {
    const QueryPiece& piece = pieces_[at_];
    if (told.ok()) {
      if (const Status why = Missing(*told, piece); !why.ok()) told = why;
    }
    if (!told.ok()) return GoOnWithRows(told.status());
    of_series_ = InPiece(piece, std::move(told->answer.results));
    Ask(QuestionOfAll(spec_, piece, counts_),
        [](WholeStep& self, Result<NodeQuestions::Answer> all) { self.OnAll(std::move(all)); });
  }

  // Whether a node is missing in the answer that was there at times of the piece.
  Status Missing(const NodeQuestions::Answer& told, const QueryPiece& piece) {
    if (told.missing.empty()) return {};
    bool silent = false;
    bool unread = false;
    const auto job = record_.Job();
    for (const uint32_t node : told.missing) {
      if (node >= job->nodes.size() || job->nodes[node].joined > piece.data.last) continue;
      (job->nodes[node].left == 0 ? silent : unread) = true;
    }
    if (silent) {
      silent_ = true;
      settled_->NoteSilence(Now());
      return {Code::kUnavailable, "a node has not answered"};
    }
    if (!unread) return {};
    return {Code::kNotFound, "the series of nodes that are gone cannot be read"};
  }

  void OnAll(Result<NodeQuestions::Answer> all) {
    const QueryPiece& piece = pieces_[at_];
    if (!all.ok()) return GoOnWithRows(all.status());
    if (SeriesLack(piece.data, all->answer.results, reduced_, period_, counts_)) {
      return GoOnWithRows({Code::kNotFound,
                           "values of nodes are missing in their series that are in the rows of "
                           "the step"});
    }
    if (IsSettled(piece)) settled_->Keep(spec_, piece, of_series_);
    JoinPiece(spec_, piece, std::move(of_series_), counts_, answer_.results);
    ++at_;
    Go();
  }

  // Whether the same question about another range would have the same answer there, now and later.
  // Counters of nodes that ended before the range stand at its start.
  bool IsSettled(const QueryPiece& piece) const {
    if (spec_.downsample && spec_.downsample->interval == 0) return false;
    if (piece.times.first <= spec_.start && spec_.start > start_) return false;
    return piece.data.last + period_ < newest_;
  }

  // --- Pieces of rows alone ---

  void GoOnWithRows(const Status& why) {
    JoinRows(why);
    ++at_;
    Go();
  }

  void JoinRows(const Status& why) {
    if (answer_.rows_only.empty()) answer_.rows_only = why.message();
    if (!all_rows_) {
      Result<std::vector<QueryResult>> results = OfRows(reduced_);
      all_rows_ = results.ok() ? *std::move(results) : std::vector<QueryResult>();
    }
    const QueryPiece& piece = pieces_[at_];
    JoinPiece(spec_, piece, InPiece(piece, *all_rows_), counts_, answer_.results);
  }

  const StepRecord& record_;
  const std::shared_ptr<const HostsNow> hosts_now_;
  NodeQuestions& nodes_;
  const std::shared_ptr<SettledPieces> settled_;
  const QuerySpec spec_;
  const web::StepSeries::Callback callback_;
  std::string job_;
  Nanos period_ = 0;
  Nanos start_ = 0;        // the step's
  HostsNow::Hosts hosts_;  // when the rows had been read
  std::vector<SeriesData> reduced_;
  StepRecord::PresenceRuns presence_;  // of these rows
  Nanos newest_ = 0;
  bool counts_ = false;
  std::vector<QueryPiece> pieces_;
  size_t at_ = 0;        // the piece that is being put in
  size_t asked_ = 0;     // pieces
  double read_ = 0;      // points of a node for them
  bool silent_ = false;  // a node has not answered one of these questions
  std::vector<QueryResult> of_series_;
  std::optional<std::vector<QueryResult>> all_rows_;
  web::Answer answer_;
};

}  // namespace

bool AnswerWholeStep(const WholeStepSource& source, const QuerySpec& spec,
                     web::StepSeries::Callback callback) {
  const bool spreads = PercentileOf(spec.aggregator) > 0;
  const auto step = std::make_shared<WholeStep>(source, spec, callback);
  const Result<bool> begun = step->Begin();
  if (spreads && (!begun.ok() || !*begun)) return false;
  if (!begun.ok()) {
    callback(begun.status());
  } else {
    step->Go();
  }
  return true;
}

}  // namespace sonde::head
