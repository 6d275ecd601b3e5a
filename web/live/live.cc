#include "web/live/live.h"

#include <fmt/core.h>

#include <algorithm>
#include <exception>
#include <map>
#include <set>
#include <utility>

#include "core/log.h"
#include "series/query/counter_total.h"
#include "web/live/events.h"
#include "web/route/waiting.h"

namespace sonde::web {
namespace {

constexpr size_t kBatch = 64;          // rows in one go
constexpr Nanos kMaxBehind = 120;      // periods: a reader further behind loses ticks
constexpr Nanos kRowsBefore = 16;      // rows that are looked at for counters
constexpr Nanos kLookAgain = kSecond;  // for alarms and notes
constexpr size_t kMaxSeenNotes = 4096;

// Picks the downsample with which reduced series can still answer the query.
Aggregator OfOneValue(Aggregator aggregator) {
  const bool extreme = aggregator == Aggregator::kMin || aggregator == Aggregator::kMax;
  return extreme ? aggregator : Aggregator::kAvg;
}

class LiveFeed final : public EventFeed, public std::enable_shared_from_this<LiveFeed> {
 public:
  LiveFeed(const Context& context, LiveRequest live, JobStep id)
      : context_(context),
        live_(std::move(live)),
        id_(std::move(id)),
        job_(id_.ToString()),
        after_(live_.after) {}

  void Pull(bool stopping, Done done) override;

 private:
  bool Wanted(const Metric& metric) const;
  void CountOn(LiveRows& rows);
  Answered<Result<LiveRows>> RowsAfter(Nanos after, size_t limit) const;
  static Task<void> Tell(std::shared_ptr<LiveFeed> self, Done done);
  Task<bool> Next(std::string& out);
  Task<Result<LiveRows>> Begin(std::string& out);
  Task<Result<LiveRows>> Read(std::string& out);
  Task<void> SkipLost(const LiveRows& rows, std::string& out);
  QuerySpec SpecFor(const LiveRows& rows, QuerySpec spec) const;
  Task<void> AddTicks(const LiveRows& rows, std::string& out);
  void AddAlarms(std::string& out);
  Task<void> AddNotes(Nanos newest, std::string& out);

  const Context context_;
  const LiveRequest live_;
  const JobStep id_;
  const std::string job_;
  Nanos after_;
  bool begun_ = false;
  Nanos catching_up_to_ = 0;  // older ticks may be sent, however old
  Nanos looked_at_ = 0;       // for alarms and notes; monotonic
  Nanos noted_until_ = 0;
  std::map<std::string, CounterRows> counters_;  // by the series' names
  uint64_t changes_ = 0;                         // rows so far of other nodes than the row before
  std::map<std::string, std::string> alarms_;    // the last event of each
  std::set<std::string> notes_;                  // notes that were sent
};

bool LiveFeed::Wanted(const Metric& metric) const {
  return std::any_of(live_.metrics.begin(), live_.metrics.end(),
                     [&](const std::string& pattern) { return MatchesGlob(pattern, metric.name); });
}

Answered<Result<LiveRows>> LiveFeed::RowsAfter(Nanos after, size_t limit) const {
  const StepSeries::IsWanted wanted = [this](const Metric& metric) { return Wanted(metric); };
  return Ask(*context_.series, &StepSeries::ReadLive, id_, wanted, after, limit);
}

// Skips rows that are held no more, and rows that pile up for a slow reader.
Task<void> LiveFeed::SkipLost(const LiveRows& rows, std::string& out) {
  const Nanos from = after_;
  int64_t lost = 0;
  if (rows.oldest > 0 && after_ < rows.oldest - rows.period) {
    after_ = rows.oldest - 1;
    lost = (after_ - from) / rows.period;
  } else if (after_ >= catching_up_to_ && rows.newest - after_ > kMaxBehind * rows.period) {
    // Ticks that never existed are not lost.
    const StepSeries::IsWanted none = [](const Metric&) { return false; };
    const Result<LiveRows> piled =
        co_await Ask(*context_.series, &StepSeries::ReadLive, id_, none, after_, SIZE_MAX);
    if (!piled.ok() || piled->rows.size() <= size_t{kMaxBehind}) co_return;
    after_ = rows.newest - 1;
    lost = static_cast<int64_t>(piled->rows.size()) - 1;
  }
  if (lost > 0) AppendLostEvent({job_, lost, from, after_}, out);
}

Task<Result<LiveRows>> LiveFeed::Begin(std::string& out) {
  Result<LiveRows> first = co_await RowsAfter(INT64_MAX, 0);
  if (!first.ok() || !first->running) co_return first;
  begun_ = true;
  out += "retry: 2000\n";
  AppendStepEvent(job_, first->period, out);
  catching_up_to_ = first->newest;
  if (after_ == 0 || after_ > first->newest) after_ = std::max<Nanos>(first->newest - 1, 0);
  noted_until_ = after_;
  co_await SkipLost(*first, out);
  // The head tells the number of nodes in a whole row.
  Result<LiveRows> before = co_await RowsAfter(after_ - kRowsBefore * first->period, kRowsBefore);
  if (before.ok()) {
    std::erase_if(before->rows, [&](const LiveRows::Row& row) { return row.time > after_; });
    CountOn(*before);
  }
  co_return first;
}

Task<Result<LiveRows>> LiveFeed::Read(std::string& out) {
  if (!begun_) {
    Result<LiveRows> first = co_await Begin(out);
    if (!begun_) co_return first;
  }
  Result<LiveRows> rows = co_await RowsAfter(after_, kBatch);
  if (!rows.ok() || !rows->running) co_return rows;
  const Nanos before = after_;
  co_await SkipLost(*rows, out);
  if (after_ != before) rows = co_await RowsAfter(after_, kBatch);
  if (rows.ok()) CountOn(*rows);
  co_return rows;
}

// The values of counters as docs/queries.md defines them.
void LiveFeed::CountOn(LiveRows& rows) {
  const uint64_t before = changes_;
  for (const LiveRows::Row& row : rows.rows) changes_ += row.others ? 1 : 0;
  for (size_t i = 0; i < rows.series.size(); ++i) {
    const Series& series = rows.series[i];
    if (!IsCounting(series.metric.type)) continue;
    CounterRows& counter = counters_[SeriesName(series.metric.name, series.tags)];
    uint64_t changes = before;
    for (LiveRows::Row& row : rows.rows) {
      changes += row.others ? 1 : 0;
      if (i < row.values.size()) row.values[i] = counter.Add(row.values[i], changes);
    }
  }
}

void LiveFeed::AddAlarms(std::string& out) {
  const Result<std::vector<AlarmState>> all = context_.control->Alarms(id_);
  if (!all.ok()) return;
  std::map<std::string, std::string> raised;
  for (const AlarmState& alarm : *all) {
    if (!alarm.state.raised) continue;
    const std::string key = SeriesName(alarm.state.rule.name, alarm.state.tags);
    std::string& text = raised[key];
    AppendAlarmEvent(job_, alarm, true, text);
    if (!alarms_.contains(key)) out += text;
  }
  for (const AlarmState& alarm : *all) {
    const std::string key = SeriesName(alarm.state.rule.name, alarm.state.tags);
    if (!alarm.state.raised && alarms_.contains(key)) AppendAlarmEvent(job_, alarm, false, out);
  }
  alarms_ = std::move(raised);
}

Task<void> LiveFeed::AddNotes(Nanos newest, std::string& out) {
  constexpr Nanos kLate = 10 * kSecond;  // events of tasks come with their node's ticks
  const std::vector<Note> notes =
      co_await Ask(*context_.series, &StepSeries::Notes, noted_until_ - kLate, INT64_MAX / 2);
  for (const Note& note : notes) {
    if (note.job != job_) continue;
    // The step's own notes have its start as their time, and may come at any time.
    const bool told = note.start <= live_.after || note.start + kLate < noted_until_;
    if (told && !IsOfStep(note)) continue;
    std::string text;
    AppendNoteEvent(note, text);
    if (!notes_.insert(text).second) continue;
    out += text;
  }
  noted_until_ = std::max(noted_until_, newest);
  if (notes_.size() > kMaxSeenNotes) notes_.clear();
}

QuerySpec LiveFeed::SpecFor(const LiveRows& rows, QuerySpec spec) const {
  spec.start = rows.rows.front().time;
  spec.end = rows.rows.back().time + 1;
  // As many values as ticks: this changes none, and avoids that hours around the range are read.
  spec.downsample = Downsample{rows.period, OfOneValue(spec.aggregator), Downsample::Fill::kNone};
  if (spec.rate) spec.start = std::max<Nanos>(spec.start - kSlowPeriod - rows.period, 0);
  TagFilter ours;
  ours.key = "job";
  ours.pattern = job_;
  spec.filters.push_back(std::move(ours));
  return spec;
}

Task<void> LiveFeed::AddTicks(const LiveRows& rows, std::string& out) {
  if (rows.rows.empty()) co_return;
  const auto ask = [&](size_t i, StepSeries::Callback callback) {
    context_.series->Query(SpecFor(rows, live_.queries[i]), std::move(callback));
  };
  std::vector<Result<web::Answer>> answers =
      co_await AskEach<Result<web::Answer>>(live_.queries.size(), ask);
  std::vector<std::vector<QueryResult>> results(answers.size());
  Status failure;
  for (size_t i = 0; i < answers.size(); ++i) {
    if (answers[i].ok()) {
      results[i] = std::move(answers[i]->results);
    } else if (failure.ok()) {
      failure = answers[i].status();
    }
  }
  if (!failure.ok()) AppendErrorEvent(failure, out);
  for (const LiveRows::Row& row : rows.rows) {
    AppendTickEvent({job_, row, rows, results}, out);
    after_ = row.time;
  }
}

// Sends what is new; false if the step has ended.
Task<bool> LiveFeed::Next(std::string& out) {
  const Result<LiveRows> rows = co_await Read(out);
  if (!rows.ok() || !rows->running) {
    if (!rows.ok()) AppendErrorEvent(rows.status(), out);
    AppendEndEvent(job_, out);
    co_return false;
  }
  co_await AddTicks(*rows, out);
  const Nanos now = context_.clock->Monotonic();
  if (now - looked_at_ >= kLookAgain || looked_at_ == 0) {
    looked_at_ = now;
    if (live_.alarms) AddAlarms(out);
    if (live_.notes) co_await AddNotes(rows->newest, out);
  }
  co_return true;
}

Task<void> LiveFeed::Tell(std::shared_ptr<LiveFeed> self, Done done) {
  std::string text;
  bool over = true;
  try {
    over = !co_await self->Next(text);
  } catch (const std::exception& e) {
    log::Error("HTTP: live events of step {}: {}", self->job_, e.what());
  }
  done(std::move(text), over);
}

void LiveFeed::Pull(bool stopping, Done done) {
  if (stopping) {
    std::string text;
    AppendEndEvent(job_, text);
    return done(std::move(text), true);
  }
  Spawn(context_.executor, Tell(shared_from_this(), std::move(done)));
}

Task<Result<JobStep>> StepOf(const Context& context, const std::string& job) {
  constexpr size_t kMaxJobs = 1000;
  if (!job.empty()) co_return JobStep::Parse(job);
  const Result<std::vector<JobDescription>> jobs =
      co_await Ask(*context.history, &StepHistory::Jobs, kMaxJobs);
  if (!jobs.ok()) co_return jobs.status();
  const JobDescription* running = nullptr;
  for (const JobDescription& one : *jobs) {
    if (one.end != 0) continue;
    if (running != nullptr) co_return Status(Code::kInvalid, "several steps run: name one by job=");
    running = &one;
  }
  if (running == nullptr) co_return Status(Code::kNotFound, "no step runs");
  co_return running->id;
}

Task<Response> GetLive(const Context& context, const Request& request) {
  Result<LiveRequest> live = ParseLiveRequest(request);
  if (!live.ok()) co_return ErrorResponse(live.status());
  const Result<JobStep> id = co_await StepOf(context, live->job);
  if (!id.ok()) co_return ErrorResponse(id.status());
  const StepSeries::IsWanted wanted = [&](const Metric& metric) {
    return std::any_of(live->metrics.begin(), live->metrics.end(),
                       [&](const auto& pattern) { return MatchesGlob(pattern, metric.name); });
  };
  const Result<LiveRows> now = co_await Ask(*context.series, &StepSeries::ReadLive, *id, wanted,
                                            Nanos{INT64_MAX}, size_t{0});
  if (!now.ok()) co_return ErrorResponse(now.status());
  if (now->series.size() > kMaxLiveSeries) {
    co_return TooMuchResponse(now->series.size(), kMaxLiveSeries, "series");
  }
  Response response;
  response.content_type = "text/event-stream; charset=UTF-8";
  response.feed = std::make_shared<LiveFeed>(context, *std::move(live), *id);
  co_return response;
}

constexpr Route kLiveRoutes[] = {
    {"/api/live",
     Waits<GetLive>,
     nullptr,
     {.about = "What happens in a running step, as server-sent events until it ends",
      .params = {{"job", "the step; the only one that runs if absent"},
                 {"metric", "names, * and ? stand for others; separated by commas, or repeated"},
                 {"m", "as in /api/query, without a downsample; may be repeated"},
                 {"alarms", "false: without alarms", kFlag},
                 {"notes", "false: without phases and remarks", kFlag},
                 {"last_event_id", "in place of the header Last-Event-ID"}},
      .answer = "text/event-stream",
      .example = "?job=4711.0&metric=node_load*"}}};

}  // namespace

std::span<const Route> LiveRoutes() { return kLiveRoutes; }

}  // namespace sonde::web
