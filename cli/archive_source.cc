#include "cli/archive_source.h"

#include <algorithm>
#include <exception>
#include <iterator>

namespace sonde::cli {
namespace {

constexpr size_t kWorkers = 2;
constexpr std::string_view kJobTag = "job";
// Above it a question about the whole step is answered from the reduced series, where that is
// exact.
constexpr size_t kReadNodesUpTo = 64;

// The steps a query is about: its filters on the tag `job`, its range.
Result<std::vector<ProfileEntry>> SelectSteps(const Archive& archive, const QuerySpec& spec) {
  QuerySpec by_job;
  by_job.metric = spec.metric;
  for (const TagFilter& filter : spec.filters) {
    if (filter.key == kJobTag) by_job.filters.push_back(filter);
  }
  const Result<SeriesFilter> filter = SeriesFilter::Make(by_job);
  if (!filter.ok()) return filter.status();
  Result<std::vector<ProfileEntry>> entries = archive.List();
  if (!entries.ok()) return entries;
  const TimeRange range = DataRange(spec);
  std::erase_if(*entries, [&](const ProfileEntry& entry) {
    const JobDescription& job = entry.job;
    return job.start > range.last || (job.end != 0 && job.end < range.first) ||
           !filter->Matches(spec.metric, {{std::string(kJobTag), job.id.ToString()}});
  });
  return entries;
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

// The series of one step that the query's filters accept, with the tag `job`.
Status ReadStep(const Archive& archive, const ProfileEntry& entry, Archive::Scope scope,
                const QuerySpec& spec, const SeriesFilter& filter, std::vector<SeriesData>& out) {
  const std::string job = entry.job.id.ToString();
  const auto wanted = [&](const Series& series) {
    if (series.metric.name != spec.metric) return false;
    Tags tags = series.tags;
    tags.Set(kJobTag, job);
    return filter.Matches(series.metric.name, tags);
  };
  const TimeRange range = DataRange(spec);
  Result<std::vector<SeriesData>> read =
      archive.Read(entry.key, scope, wanted, range.first, range.last, ThinnedFor(spec));
  if (!read.ok()) return read.status();
  for (SeriesData& data : *read) {
    data.series.tags.Set(kJobTag, job);
    out.push_back(std::move(data));
  }
  return {};
}

}  // namespace

ArchiveSource::ArchiveSource(std::unique_ptr<Archive> archive) : archive_(std::move(archive)) {
  for (size_t i = 0; i < kWorkers; ++i) workers_.emplace_back([this] { Work(); });
}

ArchiveSource::~ArchiveSource() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  for (std::thread& worker : workers_) worker.join();
  for (auto& [spec, callback] : queue_) {
    callback(Status(Code::kUnavailable, "the server is stopping"));
  }
}

Result<std::vector<JobDescription>> ArchiveSource::Jobs(size_t limit) const {
  Result<std::vector<ProfileEntry>> entries = archive_->List(limit);
  if (!entries.ok()) return entries.status();
  std::vector<JobDescription> jobs;
  jobs.reserve(entries->size());
  for (ProfileEntry& entry : *entries) jobs.push_back(std::move(entry.job));
  return jobs;
}

Result<Profile> ArchiveSource::GetProfile(const JobStep& id) const {
  const Result<std::vector<ProfileEntry>> entries = archive_->Find(id);
  if (!entries.ok()) return entries.status();
  // Find("4711") gives every step of the job, and a job that was requeued has several of one step.
  for (const ProfileEntry& entry : *entries) {
    if (entry.job.id == id || id.step.empty()) return archive_->Load(entry.key);
  }
  return Status(Code::kNotFound, "the archive has no step " + id.ToString());
}

Result<std::vector<Series>> ArchiveSource::ListSeries(std::string_view metric, size_t limit) const {
  const Result<std::vector<ProfileEntry>> entries = archive_->List(kListedSteps);
  if (!entries.ok()) return entries.status();
  std::vector<Series> list;
  for (const ProfileEntry& entry : *entries) {
    Result<std::vector<Series>> series = archive_->AllSeries(entry.key, Archive::Scope::kNodes);
    // A step that cannot be read, such as one that runs, must not hide the others.
    if (!series.ok()) continue;
    for (Series& one : *series) {
      if (!metric.empty() && one.metric.name != metric) continue;
      if (list.size() == limit) return list;
      one.tags.Set(kJobTag, entry.job.id.ToString());
      list.push_back(std::move(one));
    }
  }
  return list;
}

void ArchiveSource::Query(const QuerySpec& spec, Callback callback) const {
  {
    const std::lock_guard lock(mutex_);
    queue_.emplace_back(spec, std::move(callback));
  }
  wake_.notify_one();
}

std::vector<web::Note> ArchiveSource::Notes(Nanos first, Nanos last) const {
  std::vector<web::Note> notes;
  Result<std::vector<ProfileEntry>> entries = archive_->List(kListedSteps);
  if (!entries.ok()) return notes;
  std::erase_if(*entries, [&](const ProfileEntry& entry) {
    return entry.job.start > last || (entry.job.end != 0 && entry.job.end < first);
  });
  if (entries->size() > kNotedSteps) entries->resize(kNotedSteps);
  for (const ProfileEntry& entry : *entries) {
    std::vector<web::Note> more = web::NotesOf(entry.job, MomentsOf(entry), first, last);
    std::move(more.begin(), more.end(), std::back_inserter(notes));
  }
  std::stable_sort(notes.begin(), notes.end(),
                   [](const web::Note& a, const web::Note& b) { return a.start < b.start; });
  if (notes.size() > web::kMaxNotes) notes.resize(web::kMaxNotes);
  return notes;
}

StepMoments ArchiveSource::MomentsOf(const ProfileEntry& entry) const {
  constexpr size_t kMaxKept = 256;
  {
    const std::lock_guard lock(mutex_);
    const auto known = moments_.find(entry.key);
    if (known != moments_.end()) return known->second;
  }
  Result<Profile> profile = archive_->Load(entry.key);
  if (!profile.ok()) return {};
  profile->moments.distributions.clear();
  if (entry.live) return profile->moments;
  const std::lock_guard lock(mutex_);
  if (moments_.size() >= kMaxKept) moments_.clear();
  return moments_[entry.key] = std::move(profile->moments);
}

void ArchiveSource::Work() {
  for (;;) {
    std::unique_lock lock(mutex_);
    wake_.wait(lock, [this] { return stopping_ || !queue_.empty(); });
    if (stopping_) return;
    auto [spec, callback] = std::move(queue_.front());
    queue_.pop_front();
    lock.unlock();
    try {
      callback(Evaluate(spec));
    } catch (const std::exception& e) {
      callback(Status(Code::kInternal, std::string("evaluate a query: ") + e.what()));
    }
  }
}

Result<web::Answer> ArchiveSource::Evaluate(const QuerySpec& spec) const {
  SONDE_RETURN_IF_ERROR(CheckQuery(spec));
  const Result<SeriesFilter> filter = SeriesFilter::Make(spec);
  if (!filter.ok()) return filter.status();
  const Result<std::vector<ProfileEntry>> steps = SelectSteps(*archive_, spec);
  if (!steps.ok()) return steps.status();
  const bool large = steps->size() == 1 && steps->front().job.nodes.size() > kReadNodesUpTo;
  if (large && SpreadAnswers(spec, steps->front().job.period)) {
    Result<web::Answer> recorded = Evaluate(spec, *steps, *filter, Archive::Scope::kReduced);
    if (recorded.ok() && !recorded->results.empty()) return recorded;
  }
  const bool reduced = large && AnswersFromReduced(spec);
  return Evaluate(spec, *steps, *filter,
                  reduced ? Archive::Scope::kReduced : Archive::Scope::kNodes);
}

Result<web::Answer> ArchiveSource::Evaluate(const QuerySpec& spec,
                                            const std::vector<ProfileEntry>& steps,
                                            const SeriesFilter& filter,
                                            Archive::Scope scope) const {
  const bool reduced = scope == Archive::Scope::kReduced;
  web::Answer answer;
  std::vector<SeriesData> series;
  for (const ProfileEntry& step : steps) {
    const Status read = ReadStep(*archive_, step, scope, spec, filter, series);
    answer.nodes_expected += step.job.expected_nodes;
    if (read.ok()) answer.nodes_answered += static_cast<uint32_t>(step.job.nodes.size());
    if (!read.ok() && steps.size() == 1) return read;
  }
  Result<std::vector<QueryResult>> results =
      reduced ? EvaluateReduced(spec, series) : sonde::Evaluate(spec, std::move(series));
  if (!results.ok()) return results.status();
  answer.results = *std::move(results);
  return answer;
}

}  // namespace sonde::cli
