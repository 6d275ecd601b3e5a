#include "cli/archive_source.h"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <iterator>

#include "profiles/keys.h"
#include "profiles/select.h"
#include "series/aggregate.h"
#include "series/query_steps.h"

namespace sonde::cli {
namespace {

constexpr size_t kWorkers = 4;                // those that ask a head mostly wait
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

// The steps a query is about, newest first: its filters on the tag `job`, its range.
Result<std::vector<ProfileEntry>> SelectSteps(const Archive& archive, const QuerySpec& spec) {
  QuerySpec by_job;
  by_job.metric = spec.metric;
  for (const TagFilter& filter : spec.filters) {
    if (filter.key == kJobTag) by_job.filters.push_back(filter);
  }
  const Result<SeriesFilter> filter = SeriesFilter::Make(by_job);
  if (!filter.ok()) return filter.status();
  const auto matches = [&](const JobStep& id) {
    return filter->Matches(spec.metric, {{std::string(kJobTag), id.ToString()}});
  };
  const TimeRange range = DataRange(spec);
  std::vector<ProfileEntry> entries;
  const std::vector<std::string> named = NamedSteps(spec);
  for (const std::string& name : named) {
    Result<std::vector<ProfileEntry>> found = archive.Find(JobStep::Parse(name));
    if (!found.ok()) return found.status();
    for (ProfileEntry& entry : *found) {
      const JobDescription& job = entry.job;
      const bool over = !entry.running && job.end != 0 && job.end < range.first;
      // Find gives every step of a job, and tasks of an array.
      if (over || job.start > range.last || job.id.ToString() != name || !matches(job.id)) continue;
      entries.push_back(std::move(entry));
    }
  }
  if (!named.empty()) {
    std::sort(entries.begin(), entries.end(), [](const ProfileEntry& a, const ProfileEntry& b) {
      return a.job.start != b.job.start ? a.job.start > b.job.start : a.key < b.key;
    });
    return entries;
  }
  Selection selection;
  selection.until = range.last;
  selection.lasting_to = range.first;
  const auto listed = archive.Select(selection, Clock::System().Now());
  if (!listed.ok()) return listed.status();
  for (const ListedProfile& one : *listed) {
    const auto known = keys::DescribeKey(one.key);
    if (!known || !matches(known->id)) continue;
    Result<ProfileEntry> entry = archive.Entry(one.key);
    if (entry.ok()) entries.push_back(*std::move(entry));
  }
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

void Append(std::vector<QueryResult> results, std::vector<SeriesData>& out) {
  for (QueryResult& result : results) {
    SeriesData& data = out.emplace_back();
    data.series.metric.name = std::move(result.metric);
    data.series.tags = std::move(result.tags);
    data.points = std::move(result.points);
  }
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
  for (const Task& task : queue_) task(Status(Code::kUnavailable, "the server is stopping"));
}

void ArchiveSource::Post(Task task) const {
  {
    const std::lock_guard lock(mutex_);
    queue_.push_back(std::move(task));
  }
  wake_.notify_one();
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
  // Find("4711") gives every step of the job, and a job that was requeued has several of one step;
  // "4711_3.0" is a step whose job has another id.
  if (!entries->empty()) return Load(entries->front());
  return Status(Code::kNotFound, "the archive has no step " + id.ToString());
}

Result<Profile> ArchiveSource::Load(const ProfileEntry& entry) const {
  if (RunningHeads::Has(entry)) {
    Result<Profile> profile = heads_.GetProfile(entry);
    if (profile.ok()) return profile;
  }
  return archive_->Load(entry.key);
}

// With the tag host.
Result<std::vector<Series>> ArchiveSource::SeriesOf(const ProfileEntry& entry) const {
  if (!RunningHeads::Has(entry)) return archive_->AllSeries(entry.key, Archive::Scope::kNodes);
  const Result<Profile> profile = heads_.GetProfile(entry);
  if (!profile.ok()) return archive_->AllSeries(entry.key, Archive::Scope::kNodes);
  std::vector<Series> all;
  for (const FootprintEntry& one : profile->footprint) {
    for (const NodeInfo& node : profile->job.nodes) {
      if (node.host.empty()) continue;
      all.push_back(one.series);
      all.back().tags.Set("host", node.host);
    }
  }
  return all;
}

Result<std::vector<Series>> ArchiveSource::ListSeries(std::string_view metric, size_t limit) const {
  const Result<std::vector<ProfileEntry>> entries = archive_->List(kListedSteps);
  if (!entries.ok()) return entries.status();
  std::vector<Series> list;
  for (const ProfileEntry& entry : *entries) {
    Result<std::vector<Series>> series = SeriesOf(entry);
    // A step that cannot be read must not hide the others.
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

// Step by step, for the series of all of them may be very many.
void ArchiveSource::AddNames(const ProfileEntry& entry, web::SeriesNames& names) const {
  const Result<std::vector<Series>> series = SeriesOf(entry);
  if (!series.ok() || series->empty()) return;
  for (const Series& one : *series) names.Add(one);
  names.keys.emplace(kJobTag);
  names.values.insert(entry.job.id.ToString());
}

// Every query asks for them, and those of finished steps change only with the list of these.
Result<web::SeriesNames> ArchiveSource::Names() const {
  Selection newest;
  newest.limit = kListedSteps;
  const auto listed = archive_->Select(newest, Clock::System().Now());
  if (!listed.ok()) return listed.status();
  std::vector<std::string> finished, live;
  std::string which;
  for (const ListedProfile& one : *listed) {
    (one.live ? live : finished).push_back(one.key);
    // One that went on after it was thought lost has another card.
    if (!one.live) which.append(one.key).append(1, '\0').append(one.card);
  }
  std::shared_ptr<const web::SeriesNames> known;
  {
    const std::lock_guard lock(mutex_);
    if (named_ == which) known = names_;
  }
  if (!known) {
    auto made = std::make_shared<web::SeriesNames>();
    for (const std::string& key : finished) {
      const Result<ProfileEntry> entry = archive_->Entry(key);
      if (entry.ok()) AddNames(*entry, *made);
    }
    known = std::move(made);
    const std::lock_guard lock(mutex_);
    named_ = std::move(which);
    names_ = known;
  }
  web::SeriesNames names = *known;
  for (const std::string& key : live) {
    const Result<ProfileEntry> entry = archive_->Entry(key);
    if (entry.ok()) AddNames(*entry, names);
  }
  return names;
}

void ArchiveSource::Query(const QuerySpec& spec, Callback callback) const {
  Post([this, spec, callback = std::move(callback)](const Status& stopped) {
    if (!stopped.ok()) return callback(stopped);
    try {
      callback(Evaluate(spec));
    } catch (const std::exception& e) {
      callback(Status(Code::kInternal, std::string("evaluate a query: ") + e.what()));
    }
  });
}

Result<ProfileEntry> ArchiveSource::Running(const JobStep& id) const {
  Result<std::vector<ProfileEntry>> entries = archive_->Find(id);
  if (!entries.ok()) return entries.status();
  for (ProfileEntry& entry : *entries) {
    if (RunningHeads::Has(entry)) return std::move(entry);
  }
  return Status(Code::kNotFound,
                "step " + id.ToString() + " does not run, or its head serves nothing");
}

bool ArchiveSource::Forward(const JobStep& id, const web::Request& request,
                            const web::Reply& reply) const {
  Result<ProfileEntry> entry = Running(id);
  if (!entry.ok()) return false;
  Post([this, entry = *std::move(entry), request, reply](const Status& stopped) {
    reply(stopped.ok() ? heads_.Relay(entry, request) : web::ErrorResponse(stopped));
  });
  return true;
}

std::vector<web::Note> ArchiveSource::Notes(Nanos first, Nanos last) const {
  std::vector<web::Note> notes;
  Result<std::vector<ProfileEntry>> entries = archive_->List(kListedSteps);
  if (!entries.ok()) return notes;
  std::erase_if(*entries, [&](const ProfileEntry& entry) {
    return entry.job.start > last || (entry.job.end != 0 && entry.job.end < first);
  });
  const size_t left_out = entries->size() - std::min(entries->size(), kNotedSteps);
  entries->resize(entries->size() - left_out);
  for (const ProfileEntry& entry : *entries) {
    std::vector<web::Note> more = web::NotesOf(entry.job, MomentsOf(entry), first, last);
    std::move(more.begin(), more.end(), std::back_inserter(notes));
  }
  web::Bound(left_out, first, notes);
  return notes;
}

StepMoments ArchiveSource::MomentsOf(const ProfileEntry& entry) const {
  constexpr size_t kMaxKept = 256;
  {
    const std::lock_guard lock(mutex_);
    const auto known = moments_.find(entry.key);
    if (known != moments_.end()) return known->second;
  }
  Result<Profile> profile = Load(entry);
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
    const Task task = std::move(queue_.front());
    queue_.pop_front();
    lock.unlock();
    task({});
  }
}

void ArchiveSource::Tree(const JobStep& id, TreeCallback callback) const {
  Result<ProfileEntry> entry = Running(id);
  if (!entry.ok()) return callback(entry.status());
  Post([this, entry = *std::move(entry), callback = std::move(callback)](const Status& stopped) {
    if (!stopped.ok()) return callback(stopped);
    callback(heads_.Tree(entry));
  });
}

Status ArchiveSource::ReadStep(const ProfileEntry& entry, Archive::Scope scope,
                               const QuerySpec& spec, const SeriesFilter& filter,
                               std::vector<SeriesData>& out) const {
  const std::string job = entry.job.id.ToString();
  const auto wanted = [&](const Series& series) {
    if (series.metric.name != spec.metric) return false;
    Tags tags = series.tags;
    tags.Set(kJobTag, job);
    return filter.Matches(series.metric.name, tags);
  };
  const TimeRange range = DataRange(spec);
  Result<std::vector<SeriesData>> read =
      archive_->Read(entry.key, scope, wanted, range.first, range.last, ThinnedFor(spec));
  if (!read.ok()) return read.status();
  for (SeriesData& data : *read) {
    data.series.tags.Set(kJobTag, job);
    out.push_back(std::move(data));
  }
  return {};
}

Result<web::Answer> ArchiveSource::Evaluate(const QuerySpec& spec) const {
  SONDE_RETURN_IF_ERROR(CheckQuery(spec));
  const Result<SeriesFilter> filter = SeriesFilter::Make(spec);
  if (!filter.ok()) return filter.status();
  const Result<std::vector<ProfileEntry>> steps = SelectSteps(*archive_, spec);
  if (!steps.ok()) return steps.status();
  // The head of the only step asks its nodes for no more than the answer.
  if (steps->size() == 1 && RunningHeads::Has(steps->front())) {
    Result<std::vector<QueryResult>> results = heads_.Query(steps->front(), spec);
    const auto nodes = static_cast<uint32_t>(steps->front().job.nodes.size());
    if (results.ok()) return web::Answer{*std::move(results), nodes, nodes};
    if (results.status().code() != Code::kUnavailable) return results.status();
  }
  if (steps->size() > 1 && query_steps::IsSeparateBy(spec, kJobTag)) {
    return EvaluateEach(spec, *steps, *filter);
  }
  const bool large = steps->size() == 1 && steps->front().job.nodes.size() > kReadNodesUpTo;
  if (large && SpreadAnswers(spec, steps->front().job.period)) {
    Result<web::Answer> recorded = Evaluate(spec, *steps, *filter, Archive::Scope::kReduced);
    if (recorded.ok() && !recorded->results.empty()) return recorded;
  }
  const bool reduced = large && AnswersFromReduced(spec);
  return Evaluate(spec, *steps, *filter,
                  reduced ? Archive::Scope::kReduced : Archive::Scope::kNodes);
}

// Of steps that share no result each head is asked for no more than its part of the answer.
Result<web::Answer> ArchiveSource::EvaluateEach(const QuerySpec& spec,
                                                const std::vector<ProfileEntry>& steps,
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
    std::move(at->second.begin(), at->second.end(), std::back_inserter(answer.results));
    const auto nodes = static_cast<uint32_t>(step.job.nodes.size());
    answer.nodes_expected += nodes;
    answer.nodes_answered += nodes;
  }
  if (!others.empty()) {
    Result<web::Answer> rest = Evaluate(spec, others, filter, Archive::Scope::kNodes);
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

Result<web::Answer> ArchiveSource::Evaluate(const QuerySpec& spec,
                                            const std::vector<ProfileEntry>& steps,
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
      Append(std::move(at->second), series);
    } else {
      read = ReadStep(step, scope, spec, filter, series);
    }
    size_t points = 0;
    for (const SeriesData& one : series) points += one.points.size();
    if (points > kMaxReadPoints) {
      return Status(
          Code::kLimit,
          fmt::format("the query needs more than {} points of {} series: ask for a shorter "
                      "range, or name a job or fewer hosts",
                      kMaxReadPoints, series.size()));
    }
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
