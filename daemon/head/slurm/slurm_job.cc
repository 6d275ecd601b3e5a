#include "daemon/head/slurm/slurm_job.h"

#include <utility>

#include "core/log.h"
#include "daemon/head/slurm/asked.h"

namespace sonde::head {
namespace {

// Slurm's number; "" of what is no job of Slurm's.
std::string NumberOf(const JobStep& id) {
  const bool numeric = id.job.find_first_not_of("0123456789") == std::string::npos;
  return numeric && id.job != "0" && id.step != "run" ? id.job : "";
}

}  // namespace

SlurmJob::SlurmJob(Loop& loop, const LaunchMessage& launch, const Config& config,
                   StepRecord& record)
    : loop_(loop),
      record_(record),
      job_(config.ask_slurm ? NumberOf(launch.job.id) : ""),
      at_end_(launch.role == Role::kHead && !launch.acting),
      squeue_(loop) {
  if (std::optional<JobRequest> known = RequestOfVariables(launch.job, launch.time_limit)) {
    OnRequest(*known);
  }
  if (!job_.empty()) timer_ = loop_.After(kAskAfter, [this] { Ask(); });
}

void SlurmJob::Ask() {
  timer_ = 0;
  squeue_.Ask(job_, kLimit, [this](const Result<JobNow>& now) {
    if (now.ok()) return OnRequest(now->request);
    log::Info("what job {} asked for is not known: {}", job_, now.status().message());
  });
}

void SlurmJob::OnRequest(const JobRequest& told) {
  record_.Update([&](JobDescription& j) {
    if (!j.request) j.request.emplace();
    Complete(told, *j.request);
  });
}

EndState SlurmJob::WhyKilledAsFarAsKnown(Nanos now) const {
  return WhyKilledByTime(record_.Job()->request, now);
}

void SlurmJob::WhyKilled(Nanos now, std::function<void(EndState)> done) {
  loop_.Cancel(std::exchange(timer_, 0));
  if (job_.empty() || !at_end_) return done(WhyKilledAsFarAsKnown(now));
  squeue_.Ask(job_, kLimitAtEnd, [this, now, done = std::move(done)](const Result<JobNow>& told) {
    if (told.ok()) OnRequest(told->request);
    if (!told.ok()) log::Info("why job {} ended is not known: {}", job_, told.status().message());
    const bool known = told.ok() && told->end;
    done(known ? *told->end : WhyKilledAsFarAsKnown(now));
  });
}

}  // namespace sonde::head
