#include "daemon/head/record/step_record.h"

#include <algorithm>
#include <utility>

#include "core/log.h"
#include "series/alarm/rule.h"
#include "series/store/past.h"
#include "series/store/store_reading.h"

namespace sonde::head {
namespace {

GroupStore::Options StoreOptions(StepRecord::Rows rows) {
  GroupStore::Options options;
  if (rows == StepRecord::Rows::kComeAgain) options.first_rows = options.max_rows;
  options.memory_limit = 32u << 20;
  options.late_rows = 8;            // parts of ticks that come late still find their row
  options.plain_limit = 12u << 20;  // half an hour at 1 Hz of 300 metrics
  options.column_limit = 8u << 20;  // 300 columns of an hour at 1 Hz
  return options;
}

}  // namespace

StepRecord::StepRecord(JobDescription job, Rows rows)
    : job_(std::move(job)),
      presence_(std::make_shared<const std::vector<PresenceRun>>()),
      footprint_(job_.Get()->start),
      store_(StoreOptions(rows)) {}

void StepRecord::OnSeal(std::function<void(const SealedBlock&)> f) {
  store_.OnSeal([this, f = std::move(f)](const SealedBlock& block) {
    open_.Drop(block.info.last);
    f(block);
  });
}

// Series for alarms have no spread, so spreads come as the others do.
void StepRecord::SetSeries(const std::vector<Series>& series) {
  const size_t before = series_->size();
  auto all = std::make_shared<std::vector<Series>>(*series_);
  for (size_t i = row_size_; i < series.size(); ++i) {
    if (alarms::IsDerivedName(series[i].metric.name)) continue;
    all->push_back(series[i]);
    places_.push_back(i);
  }
  row_size_ = series.size();
  if (all->size() == before) return;
  series_ = std::move(all);
  const Schema::Ptr schema = ReducedSchema(*series_);
  store_.SetSchema(schema);
  columns_.resize(schema->size());
  footprint_.Change([this](FootprintBuilder& footprint) { footprint.SetSeries(*series_); });
}

void StepRecord::Append(Nanos tick, const tree::FrameValues& row, const std::vector<Series>& series,
                        bool others) {
  version_of_rows_ = job_.version();
  {
    const std::lock_guard lock(mutex_);
    if (series.size() != row_size_) SetSeries(series);
    row_.resize(series_->size());
    for (size_t i = 0; i < row_.size(); ++i) row_[i] = row.values[places_[i]];
    spreads_.clear();
    for (const QuantileSketch& spread : row.spreads) spreads_.push_back(SpreadOf(spread));
    ToColumns(*series_, row_, spreads_, columns_);
    open_.Add(tick, row.spreads);
    store_.Append(tick, columns_);
  }
  footprint_.Change(
      [&](FootprintBuilder& footprint) { footprint.AddRow(tick, row_, spreads_, others); });
}

bool StepRecord::Amend(Nanos tick, const tree::FrameValues& late) {
  version_of_rows_ = job_.version();
  std::vector<Reduced> before;
  std::vector<Reduced> after;
  std::vector<Spread> spreads_before;
  std::vector<Spread> spreads;
  // A series that nobody else has had yet waits for its next row.
  size_t known = series_->size();
  while (known > 0 && places_[known - 1] >= late.values.size()) --known;
  const auto merge = [&](std::span<double> row) {
    FromColumns(*series_, row, before, spreads_before);
    after = before;
    spreads = spreads_before;
    for (size_t i = 0; i < known; ++i) after[i].Merge(late.values[places_[i]]);
    open_.Merge(tick, late.spreads, spreads);
    ToColumns(*series_, after, spreads, row);
  };
  {
    const std::lock_guard lock(mutex_);
    if (!store_.Amend(tick, merge)) return false;
  }
  footprint_.Change([&](FootprintBuilder& footprint) {
    footprint.AmendRow(tick, {before, spreads_before}, {after, spreads});
  });
  return true;
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
  // In the order in which things were said, in which figures are then listed.
  std::vector<Annotation> annotations = moments.annotations;
  std::stable_sort(annotations.begin(), annotations.end(),
                   [](const Annotation& a, const Annotation& b) { return a.first < b.first; });
  moments_.Change([&](MomentsBuilder& told) {
    for (const Annotation& annotation : annotations) told.Add(annotation);
    for (const NamedSketch& sketch : moments.sketches) told.Add(sketch);
    told.AddLost(moments.lost);
  });
}

void StepRecord::AddAlarm(RaisedAlarm alarm) {
  moments_.Change([&](MomentsBuilder& told) { told.AddAlarm(std::move(alarm)); });
}

void StepRecord::EndAlarm(std::string_view rule, const Tags& tags, Nanos time) {
  moments_.Change([&](MomentsBuilder& told) { told.EndAlarm(rule, tags, time); });
}

void StepRecord::EndAlarms(std::string_view rule, Nanos time) {
  moments_.Change([&](MomentsBuilder& told) { told.EndAlarms(rule, time); });
}

void StepRecord::Update(const std::function<void(JobDescription&)>& change) { job_.Change(change); }

void StepRecord::AddNote(std::string text) {
  log::Warning("{}", text);
  notes_.Change([&](StepNotes& notes) { notes.Add(std::move(text)); });
}

void StepRecord::AddNoteOfNode(uint32_t node, std::string alone, std::string rest) {
  log::Warning("{}", alone);
  notes_.Change(
      [&](StepNotes& notes) { notes.AddOfNode(node, std::move(alone), std::move(rest)); });
}

void StepRecord::AddLost(uint32_t node, std::string why, bool counted) {
  notes_.Change([&](StepNotes& notes) { notes.AddLost(node, std::move(why), counted); });
}

void StepRecord::SetCounted(uint32_t node, bool counted) {
  notes_.Change([&](StepNotes& notes) { notes.SetCounted(node, counted); });
}

void StepRecord::UpdateCost(const std::function<void(OwnCost&)>& change) { cost_.Change(change); }

void StepRecord::SetCoverage(const Coverage& coverage) {
  coverage_.Change([&](Coverage& known) { known = coverage; });
}

void StepRecord::SetPresence(std::vector<PresenceRun> runs) {
  version_of_rows_ = job_.version();
  auto now = std::make_shared<const std::vector<PresenceRun>>(std::move(runs));
  presence_.Change([&](PresenceRuns& known) { known = std::move(now); });
}

StepRecord::View::View(const StepRecord& record)
    : job_(record.job_.Get()),
      notes_(record.notes_.Get()),
      cost_(record.cost_.Get()),
      coverage_(record.coverage_.Get()),
      presence_(record.presence_.Get()),
      footprint_(record.footprint_.Get()),
      moments_(record.moments_.Get()) {}

std::vector<std::string> StepRecord::View::Notes() const {
  std::vector<std::string> notes = job_->notes;
  for (std::string& note : notes_->Texts(job_->nodes)) notes.push_back(std::move(note));
  for (std::string& note : AlarmNotes(moments_->alarms(), *job_)) notes.push_back(std::move(note));
  std::string missing = MissingMoments(moments_->lost(), moments_->left_out());
  if (!missing.empty()) notes.push_back(std::move(missing));
  return notes;
}

JobDescription StepRecord::View::Description() const {
  JobDescription job = *job_;
  job.notes = Notes();
  job.figures = moments_->figures();
  job.coverage = *coverage_;
  job.presence = **presence_;
  return job;
}

Profile StepRecord::View::Snapshot() const {
  return {Description(), footprint_->Entries(), *cost_, Moments()};
}

std::string StepRecord::Host(uint32_t node) const {
  const auto job = job_.Get();
  return node < job->nodes.size() ? job->nodes[node].host : std::string();
}

std::vector<OpenPhase> StepRecord::OpenPhases() const { return moments_.Get()->OpenPhases(); }

void StepRecord::Continue(const std::vector<OpenPhase>& open) {
  moments_.Change([&](MomentsBuilder& told) { told.Continue(open); });
}

std::vector<Figure> StepRecord::Figures() const { return moments_.Get()->figures(); }

StepMoments StepRecord::Moments() const { return moments_.Get()->Moments(); }

std::vector<SeriesData> StepRecord::Read(const std::function<bool(const Series&)>& wanted,
                                         Nanos start, Nanos end, PresenceRuns* presence) const {
  GroupReading reading(wanted, start, end);
  for (bool done = false; !done;) {
    {
      const std::lock_guard lock(mutex_);
      reading.Share(store_);
    }
    reading.Choose();
    const std::lock_guard lock(mutex_);
    done = reading.TakeOpen(store_);
    if (presence != nullptr) *presence = PresenceNow();
  }
  return reading.Finish();
}

Nanos StepRecord::NewestRow() const {
  const std::lock_guard lock(mutex_);
  return store_.last_time();
}

std::shared_ptr<const std::vector<Series>> StepRecord::AllSeries() const {
  const std::lock_guard lock(mutex_);
  return series_;
}

bool StepRecord::Counts(std::string_view metric) const {
  const auto all = AllSeries();
  return std::any_of(all->begin(), all->end(), [&](const Series& series) {
    return series.metric.name == metric && IsCounting(series.metric.type);
  });
}

bool StepRecord::HasPast(std::string_view metric) const {
  const auto all = AllSeries();
  return std::any_of(all->begin(), all->end(),
                     [&](const Series& series) { return CountsPastOf(metric, series); });
}

}  // namespace sonde::head
