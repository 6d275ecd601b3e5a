#include "web/source/running_step.h"

#include <algorithm>

namespace sonde::web {
namespace {

constexpr size_t kMaxJobs = 1000;

}  // namespace

Task<Result<std::vector<JobDescription>>> RunningSteps(const StepHistory& history) {
  Result<std::vector<JobDescription>> jobs = co_await Ask(history, &StepHistory::Jobs, kMaxJobs);
  if (jobs.ok()) std::erase_if(*jobs, [](const JobDescription& job) { return job.end != 0; });
  co_return jobs;
}

Task<Result<JobStep>> RunningStep(const StepHistory& history, std::string target) {
  if (!target.empty() && target != kMainJob) co_return JobStep::Parse(target);
  const Result<std::vector<JobDescription>> jobs = co_await RunningSteps(history);
  if (!jobs.ok()) co_return jobs.status();
  if (jobs->empty()) co_return Status(Code::kNotFound, "no step runs");
  if (jobs->size() > 1) {
    co_return Status(Code::kInvalid,
                     "several steps run: name one, as in job=" + jobs->front().id.ToString());
  }
  co_return jobs->front().id;
}

Task<std::vector<Result<Profile>>> ProfilesOf(const StepHistory& history,
                                              std::vector<JobStep> ids) {
  co_return co_await AskEach<Result<Profile>>(ids.size(),
                                              [&](size_t i, StepHistory::ProfileCallback callback) {
                                                history.GetProfile(ids[i], std::move(callback));
                                              });
}

}  // namespace sonde::web
