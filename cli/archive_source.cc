#include "cli/archive_source.h"

#include <algorithm>
#include <exception>
#include <iterator>

#include "profiles/select.h"

namespace sonde::cli {
namespace {

constexpr size_t kWorkers = 4;  // those that ask a head mostly wait
constexpr std::string_view kJobTag = "job";
}  // namespace

ArchiveSource::ArchiveSource(std::unique_ptr<Archive> archive)
    : archive_(std::move(archive)), queries_(*archive_, heads_) {
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
      callback(queries_.Evaluate(spec));
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

}  // namespace sonde::cli
