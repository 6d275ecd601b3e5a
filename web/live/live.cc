#include "web/live/live.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <set>

#include "series/counter_total.h"
#include "web/live/events.h"

namespace sonde::web {
namespace {

constexpr size_t kBatch = 64;          // rows in one go
constexpr Nanos kMaxBehind = 120;      // periods: a reader that is further behind loses ticks
constexpr Nanos kRowsBefore = 16;      // of counters, that are looked at
constexpr Nanos kLookAgain = kSecond;  // for alarms and notes
constexpr size_t kMaxSeenNotes = 4096;

// The one whose downsample keeps the question answerable from reduced series.
Aggregator OfOneValue(Aggregator aggregator) {
  const bool extreme = aggregator == Aggregator::kMin || aggregator == Aggregator::kMax;
  return extreme ? aggregator : Aggregator::kAvg;
}

// The queries of one batch of rows: their callbacks share it.
struct Asked {
  std::mutex mutex;
  size_t left = 0;
  Status failure;
  std::vector<std::vector<QueryResult>> results;
  std::function<void()> then;

  void Put(size_t i, Result<Answer> answer) {
    {
      const std::lock_guard lock(mutex);
      if (answer.ok()) {
        results[i] = std::move(answer->results);
      } else if (failure.ok()) {
        failure = answer.status();
      }
      if (--left != 0) return;
    }
    then();
  }
};

class LiveFeed final : public EventFeed, public std::enable_shared_from_this<LiveFeed> {
 public:
  LiveFeed(const Context& context, LiveRequest live, JobStep id)
      : source_(context.source),
        clock_(context.clock),
        live_(std::move(live)),
        id_(std::move(id)),
        job_(id_.ToString()),
        after_(live_.after) {}

  void Pull(bool stopping, Done done) override;

 private:
  bool Wanted(const Metric& metric) const;
  void CountOn(LiveRows& rows);
  Result<LiveRows> Read(const DataSource& source, std::string& out);
  void SkipLost(const DataSource& source, const LiveRows& rows, std::string& out);
  void AddAlarms(const DataSource& source, std::string& out);
  void AddNotes(const DataSource& source, Nanos newest, std::string& out);
  void Ask(const DataSource& source, const LiveRows& rows, const std::shared_ptr<Asked>& asked);
  void Finish(const DataSource& source, const LiveRows& rows, const Asked& asked, std::string text,
              const Done& done);

  const std::weak_ptr<const DataSource> source_;
  const Clock* clock_;
  const LiveRequest live_;
  const JobStep id_;
  const std::string job_;
  Nanos after_;
  bool begun_ = false;
  Nanos catching_up_to_ = 0;  // what came before may be sent, however long that is ago
  Nanos looked_at_ = 0;       // for alarms and notes; monotonic
  Nanos noted_until_ = 0;
  std::map<std::string, CounterRows> counters_;  // by the series' names
  std::map<std::string, std::string> alarms_;    // what was told of each
  std::set<std::string> notes_;                  // that were told
};

bool LiveFeed::Wanted(const Metric& metric) const {
  return std::any_of(live_.metrics.begin(), live_.metrics.end(),
                     [&](const std::string& pattern) { return MatchesGlob(pattern, metric.name); });
}

// Goes on behind what is held no more, and behind what a slow reader has let pile up.
void LiveFeed::SkipLost(const DataSource& source, const LiveRows& rows, std::string& out) {
  const Nanos from = after_;
  int64_t lost = 0;
  if (rows.oldest > 0 && after_ < rows.oldest - rows.period) {
    after_ = rows.oldest - 1;
    lost = (after_ - from) / rows.period;
  } else if (after_ >= catching_up_to_ && rows.newest - after_ > kMaxBehind * rows.period) {
    // Ticks that never were are not lost.
    const auto none = [](const Metric&) { return false; };
    const Result<LiveRows> piled = source.ReadLive(id_, none, after_, SIZE_MAX);
    if (!piled.ok() || piled->rows.size() <= size_t{kMaxBehind}) return;
    after_ = rows.newest - 1;
    lost = static_cast<int64_t>(piled->rows.size()) - 1;
  }
  if (lost > 0) AppendLostEvent({job_, lost, from, after_}, out);
}

Result<LiveRows> LiveFeed::Read(const DataSource& source, std::string& out) {
  const auto wanted = [this](const Metric& metric) { return Wanted(metric); };
  if (!begun_) {
    Result<LiveRows> first = source.ReadLive(id_, wanted, INT64_MAX, 0);
    if (!first.ok() || !first->running) return first;
    begun_ = true;
    out += "retry: 2000\n";
    AppendStepEvent(job_, first->period, out);
    catching_up_to_ = first->newest;
    if (after_ == 0 || after_ > first->newest) after_ = std::max<Nanos>(first->newest - 1, 0);
    noted_until_ = after_;
    SkipLost(source, *first, out);
    // They tell of how many nodes a whole row is.
    Result<LiveRows> before =
        source.ReadLive(id_, wanted, after_ - kRowsBefore * first->period, kRowsBefore);
    if (before.ok()) {
      std::erase_if(before->rows, [&](const LiveRows::Row& row) { return row.time > after_; });
      CountOn(*before);
    }
  }
  Result<LiveRows> rows = source.ReadLive(id_, wanted, after_, kBatch);
  if (!rows.ok() || !rows->running) return rows;
  const Nanos before = after_;
  SkipLost(source, *rows, out);
  if (after_ != before) rows = source.ReadLive(id_, wanted, after_, kBatch);
  if (rows.ok()) CountOn(*rows);
  return rows;
}

// Counters as docs/queries.md has them.
void LiveFeed::CountOn(LiveRows& rows) {
  for (size_t i = 0; i < rows.series.size(); ++i) {
    const Series& series = rows.series[i];
    if (series.metric.type == MetricType::kGauge) continue;
    CounterRows& counter = counters_[SeriesName(series.metric.name, series.tags)];
    for (LiveRows::Row& row : rows.rows) {
      if (i < row.values.size()) row.values[i] = counter.Add(row.values[i]);
    }
  }
}

void LiveFeed::AddAlarms(const DataSource& source, std::string& out) {
  const Result<std::vector<AlarmState>> all = source.Alarms(id_);
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

void LiveFeed::AddNotes(const DataSource& source, Nanos newest, std::string& out) {
  constexpr Nanos kLate = 10 * kSecond;  // what tasks tell comes with their node's ticks
  for (const Note& note : source.Notes(noted_until_ - kLate, INT64_MAX / 2)) {
    if (note.job != job_) continue;
    // Those of the step have its start as their time, and may come to be at any.
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

void LiveFeed::Ask(const DataSource& source, const LiveRows& rows,
                   const std::shared_ptr<Asked>& asked) {
  for (size_t i = 0; i < live_.queries.size(); ++i) {
    QuerySpec spec = live_.queries[i];
    spec.start = rows.rows.front().time;
    spec.end = rows.rows.back().time + 1;
    // As many values as ticks: this changes none, and keeps hours around the range from being read.
    spec.downsample = Downsample{rows.period, OfOneValue(spec.aggregator), Downsample::Fill::kNone};
    if (spec.rate) spec.start = std::max<Nanos>(spec.start - kSlowPeriod - rows.period, 0);
    TagFilter ours;
    ours.key = "job";
    ours.pattern = job_;
    spec.filters.push_back(std::move(ours));
    source.Query(spec, [asked, i](Result<Answer> answer) { asked->Put(i, std::move(answer)); });
  }
}

void LiveFeed::Finish(const DataSource& source, const LiveRows& rows, const Asked& asked,
                      std::string text, const Done& done) {
  if (!asked.failure.ok()) AppendErrorEvent(asked.failure, text);
  for (const LiveRows::Row& row : rows.rows) {
    AppendTickEvent({job_, row, rows, asked.results}, text);
    after_ = row.time;
  }
  const Nanos now = clock_->Monotonic();
  if (now - looked_at_ >= kLookAgain || looked_at_ == 0) {
    looked_at_ = now;
    if (live_.alarms) AddAlarms(source, text);
    if (live_.notes) AddNotes(source, rows.newest, text);
  }
  done(std::move(text), false);
}

void LiveFeed::Pull(bool stopping, Done done) {
  std::string text;
  const std::shared_ptr<const DataSource> source = source_.lock();
  if (stopping || !source) {
    AppendEndEvent(job_, text);
    return done(std::move(text), true);
  }
  Result<LiveRows> read = Read(*source, text);
  if (!read.ok() || !read->running) {
    if (!read.ok()) AppendErrorEvent(read.status(), text);
    AppendEndEvent(job_, text);
    return done(std::move(text), true);
  }
  const auto asked = std::make_shared<Asked>();
  if (read->rows.empty() || live_.queries.empty()) {
    return Finish(*source, *read, *asked, std::move(text), done);
  }
  asked->left = live_.queries.size();
  asked->results.resize(asked->left);
  const auto rows = std::make_shared<const LiveRows>(*std::move(read));
  asked->then = [self = shared_from_this(), rows, raw = asked.get(), text = std::move(text),
                 done = std::move(done)] {
    if (const auto alive = self->source_.lock()) self->Finish(*alive, *rows, *raw, text, done);
  };
  Ask(*source, *rows, asked);
}

Result<JobStep> StepOf(const Context& context, const std::string& job) {
  constexpr size_t kMaxJobs = 1000;
  if (!job.empty()) return JobStep::Parse(job);
  const Result<std::vector<JobDescription>> jobs = context.source->Jobs(kMaxJobs);
  if (!jobs.ok()) return jobs.status();
  const JobDescription* running = nullptr;
  for (const JobDescription& one : *jobs) {
    if (one.end != 0) continue;
    if (running != nullptr) return Status(Code::kInvalid, "several steps run: name one by job=");
    running = &one;
  }
  if (running == nullptr) return Status(Code::kNotFound, "no step runs");
  return running->id;
}

void GetLive(const Context& context, const Request& request, Reply reply) {
  Result<LiveRequest> live = ParseLiveRequest(request);
  if (!live.ok()) return reply(ErrorResponse(live.status()));
  const Result<JobStep> id = StepOf(context, live->job);
  if (!id.ok()) return reply(ErrorResponse(id.status()));
  const auto wanted = [&](const Metric& metric) {
    return std::any_of(live->metrics.begin(), live->metrics.end(),
                       [&](const auto& pattern) { return MatchesGlob(pattern, metric.name); });
  };
  const Result<LiveRows> now = context.source->ReadLive(*id, wanted, INT64_MAX, 0);
  if (!now.ok()) return reply(ErrorResponse(now.status()));
  if (now->series.size() > kMaxLiveSeries) {
    return reply(TooMuchResponse(now->series.size(), kMaxLiveSeries, "series"));
  }
  Response response;
  response.content_type = "text/event-stream; charset=UTF-8";
  response.feed = std::make_shared<LiveFeed>(context, *std::move(live), *id);
  reply(std::move(response));
}

constexpr Route kRoutes[] = {
    {"/api/live",
     GetLive,
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

std::span<const Route> LiveRoutes() { return kRoutes; }

}  // namespace sonde::web
