#include "daemon/head/step_record.h"

#include <algorithm>
#include <utility>

#include "series/alarm_rule.h"
#include "series/store_reading.h"

namespace sonde::head {
namespace {

GroupStore::Options StoreOptions() {
  GroupStore::Options options;
  options.memory_limit = 32u << 20;
  options.late_rows = 8;            // parts of ticks that come late still find their row
  options.plain_limit = 12u << 20;  // half an hour at 1 Hz of 300 metrics
  options.column_limit = 8u << 20;  // 300 columns of an hour at 1 Hz
  return options;
}

}  // namespace

StepRecord::StepRecord(JobDescription job)
    : job_(std::move(job)), store_(StoreOptions()), footprint_(job_.start) {}

void StepRecord::OnSeal(std::function<void(const SealedBlock&)> f) {
  store_.OnSeal([this, f = std::move(f)](const SealedBlock& block) {
    open_.Drop(block.info.last);
    f(block);
  });
}

// Series for alarms have no spread, so spreads come as the others do.
void StepRecord::SetSeries(const std::vector<Series>& series) {
  const size_t before = series_.size();
  for (size_t i = row_size_; i < series.size(); ++i) {
    if (alarms::IsDerivedName(series[i].metric.name)) continue;
    series_.push_back(series[i]);
    places_.push_back(i);
  }
  row_size_ = series.size();
  if (series_.size() == before) return;
  const Schema::Ptr schema = ReducedSchema(series_);
  store_.SetSchema(schema);
  columns_.resize(schema->size());
  footprint_.SetSeries(series_);
}

void StepRecord::Append(Nanos tick, const tree::FrameValues& row,
                        const std::vector<Series>& series) {
  const std::lock_guard lock(mutex_);
  if (series.size() != row_size_) SetSeries(series);
  row_.resize(series_.size());
  for (size_t i = 0; i < series_.size(); ++i) row_[i] = row.values[places_[i]];
  spreads_.clear();
  for (const QuantileSketch& spread : row.spreads) spreads_.push_back(SpreadOf(spread));
  ToColumns(series_, row_, spreads_, columns_);
  open_.Add(tick, row.spreads);
  store_.Append(tick, columns_);
  footprint_.AddRow(tick, row_, spreads_);
}

bool StepRecord::Amend(Nanos tick, const tree::FrameValues& late) {
  const std::lock_guard lock(mutex_);
  std::vector<Reduced> before;
  std::vector<Reduced> after;
  std::vector<Spread> spreads_before;
  std::vector<Spread> spreads;
  // A series that nobody else has had yet waits for its next row.
  size_t known = series_.size();
  while (known > 0 && places_[known - 1] >= late.values.size()) --known;
  const bool amended = store_.Amend(tick, [&](std::span<double> row) {
    FromColumns(series_, row, before, spreads_before);
    after = before;
    spreads = spreads_before;
    for (size_t i = 0; i < known; ++i) after[i].Merge(late.values[places_[i]]);
    open_.Merge(tick, late.spreads, spreads);
    ToColumns(series_, after, spreads, row);
  });
  if (amended) footprint_.AmendRow(tick, {before, spreads_before}, {after, spreads});
  return amended;
}

void StepRecord::Seal() {
  const std::lock_guard lock(mutex_);
  store_.Seal();
}

std::vector<SealedBlock> StepRecord::OpenRows() const {
  const std::lock_guard lock(mutex_);
  return store_.Open();
}

void StepRecord::AddMoments(const collect::Moments& moments) {
  const std::lock_guard lock(mutex_);
  // In the order in which things were said, in which figures are then listed.
  std::vector<Annotation> annotations = moments.annotations;
  std::stable_sort(annotations.begin(), annotations.end(),
                   [](const Annotation& a, const Annotation& b) { return a.first < b.first; });
  for (const Annotation& annotation : annotations) moments_.Add(annotation);
  for (const NamedSketch& sketch : moments.sketches) moments_.Add(sketch);
  moments_.AddLost(moments.lost);
}

void StepRecord::AddAlarm(RaisedAlarm alarm) {
  const std::lock_guard lock(mutex_);
  moments_.AddAlarm(std::move(alarm));
}

void StepRecord::EndAlarm(std::string_view rule, const Tags& tags, Nanos time) {
  const std::lock_guard lock(mutex_);
  moments_.EndAlarm(rule, tags, time);
}

void StepRecord::EndAlarms(std::string_view rule, Nanos time) {
  const std::lock_guard lock(mutex_);
  moments_.EndAlarms(rule, time);
}

void StepRecord::Update(const std::function<void(JobDescription&)>& change) {
  const std::lock_guard lock(mutex_);
  change(job_);
}

void StepRecord::AddNote(std::string text) {
  const std::lock_guard lock(mutex_);
  notes_.Add(std::move(text));
}

void StepRecord::AddNoteOfNode(uint32_t node, std::string alone, std::string rest) {
  const std::lock_guard lock(mutex_);
  notes_.AddOfNode(node, std::move(alone), std::move(rest));
}

void StepRecord::UpdateCost(const std::function<void(OwnCost&)>& change) {
  const std::lock_guard lock(mutex_);
  change(cost_);
}

JobDescription StepRecord::Described() const {
  JobDescription job = job_;
  for (std::string& note : notes_.Texts(job.nodes)) job.notes.push_back(std::move(note));
  for (std::string& note : AlarmNotes(moments_.alarms(), job)) {
    job.notes.push_back(std::move(note));
  }
  std::string missing = MissingMoments(moments_.lost(), moments_.left_out());
  if (!missing.empty()) job.notes.push_back(std::move(missing));
  job.figures = moments_.figures();
  return job;
}

JobDescription StepRecord::Description() const {
  const std::lock_guard lock(mutex_);
  return Described();
}

std::string StepRecord::Host(uint32_t node) const {
  const std::lock_guard lock(mutex_);
  return node < job_.nodes.size() ? job_.nodes[node].host : std::string();
}

Profile StepRecord::Snapshot() const {
  const std::lock_guard lock(mutex_);
  return {Described(), footprint_.Entries(), cost_, moments_.Moments()};
}

std::vector<OpenPhase> StepRecord::OpenPhases() const {
  const std::lock_guard lock(mutex_);
  return moments_.OpenPhases();
}

void StepRecord::Continue(const std::vector<OpenPhase>& open) {
  const std::lock_guard lock(mutex_);
  moments_.Continue(open);
}

StepMoments StepRecord::Moments() const {
  const std::lock_guard lock(mutex_);
  return moments_.Moments();
}

std::vector<SeriesData> StepRecord::Read(const std::function<bool(const Series&)>& wanted,
                                         Nanos start, Nanos end) const {
  GroupReading reading(wanted, start, end);
  for (bool done = false; !done;) {
    {
      const std::lock_guard lock(mutex_);
      reading.Share(store_);
    }
    reading.Choose();
    const std::lock_guard lock(mutex_);
    done = reading.TakeOpen(store_);
  }
  return reading.Finish();
}

Nanos StepRecord::NewestRow() const {
  const std::lock_guard lock(mutex_);
  return store_.last_time();
}

std::vector<Series> StepRecord::AllSeries() const {
  const std::lock_guard lock(mutex_);
  return series_;
}

}  // namespace sonde::head
