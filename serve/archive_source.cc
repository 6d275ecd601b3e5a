#include "serve/archive_source.h"

#include "core/log.h"
#include "serve/head_client.h"

namespace sonde::serve {
namespace {

constexpr size_t kWorkers = 4;

}  // namespace

ArchiveSource::ArchiveSource(std::shared_ptr<const Archive> archive,
                             std::unique_ptr<ArchiveKeeper> keeper, Nanos patience,
                             ConcludeOptions conclude)
    : archive_(std::move(archive)),
      keeper_(std::move(keeper)),
      conclude_(std::move(conclude)),
      workers_(kWorkers),
      heads_(workers_.AsExecutor(), patience),
      queries_(*archive_, heads_) {
  archive_->OnDamage([root = archive_->root()](const std::string& what) {
    log::Warning(
        "archive {} is damaged, and the rest of it is shown: {}; 'sonde archive verify' names all "
        "that is lost, 'sonde archive repair' mends the archive",
        root, what);
  });
}

// Stops before the heads end: this drops the tasks that wait for their answers.
ArchiveSource::~ArchiveSource() { workers_.Stop(); }

Task<Result<std::vector<JobDescription>>> ArchiveSource::DoJobs(size_t limit) const {
  Result<Steps> entries = archive_->ListWithRunning(limit);
  if (!entries.ok()) co_return entries.status();
  std::vector<JobDescription> jobs;
  jobs.reserve(entries->size());
  for (ProfileEntry& entry : *entries) jobs.push_back(std::move(entry.job));
  co_return jobs;
}

void ArchiveSource::Jobs(size_t limit, JobsCallback callback) const {
  workers_.Begin("list the steps", std::move(callback), DoJobs(limit));
}

Task<Result<Profile>> ArchiveSource::DoGetProfile(JobStep id) const {
  const Result<Steps> entries = archive_->Find(id);
  if (!entries.ok()) co_return entries.status();
  // Find("4711") gives every step of the job, and a job that was requeued has several of one step;
  // "4711_3.0" is a step whose job has another id.
  if (entries->empty()) {
    co_return Status(Code::kNotFound, "the archive has no step " + id.ToString());
  }
  const ProfileEntry& entry = entries->front();
  if (RunningHeads::Has(entry)) {
    Result<Profile> profile = co_await heads_.GetProfile(entry);
    if (profile.ok()) co_return profile;
  }
  co_return archive_->Load(entry.key);
}

void ArchiveSource::GetProfile(const JobStep& id, ProfileCallback callback) const {
  workers_.Begin("read a profile", std::move(callback), DoGetProfile(id));
}

Result<ProfileEntry> ArchiveSource::Running(const JobStep& id) const {
  Result<Steps> entries = archive_->Find(id);
  if (!entries.ok()) return entries.status();
  for (ProfileEntry& entry : *entries) {
    if (RunningHeads::Has(entry)) return std::move(entry);
    if (!entry.running || entry.endpoint.port == 0) continue;
    return WhereToAsk(entry.endpoint).status().Within("step " + id.ToString());
  }
  return Status(Code::kNotFound,
                "step " + id.ToString() + " does not run, or its head serves nothing");
}

Task<std::optional<web::Response>> ArchiveSource::DoForward(JobStep id,
                                                            web::Request request) const {
  const Result<ProfileEntry> entry = Running(id);
  if (!entry.ok()) co_return std::nullopt;
  co_return co_await heads_.Relay(*entry, request);
}

void ArchiveSource::Forward(const JobStep& id, const web::Request& request,
                            ForwardCallback callback) const {
  workers_.Begin("pass a request on", std::move(callback), DoForward(id, request));
}

Task<Result<std::vector<web::TreeEdge>>> ArchiveSource::DoTree(JobStep id) const {
  const Result<ProfileEntry> entry = Running(id);
  if (!entry.ok()) co_return entry.status();
  co_return co_await heads_.Tree(*entry);
}

void ArchiveSource::Tree(const JobStep& id, TreeCallback callback) const {
  workers_.Begin("ask for a tree", std::move(callback), DoTree(id));
}

}  // namespace sonde::serve
