#include "web/proxy/runs.h"

#include <algorithm>
#include <cmath>

namespace sonde::web {
namespace {

constexpr uint64_t kDefaultProfiles = 10'000;
constexpr uint64_t kMaxProfiles = 100'000;
constexpr uint64_t kDefaultRuns = 100;  // profiles, each read as a whole
constexpr uint64_t kMaxRuns = 1000;

void AddRun(const Profile& profile, Runs& runs) {
  const uint32_t tasks = profile.job.expected_tasks;
  for (const FootprintEntry& entry : profile.footprint) {
    const double value = IsCounting(entry.series.metric.type) ? entry.last : entry.mean;
    if (!std::isfinite(value)) continue;
    runs.points[SeriesName(entry.series.metric.name, entry.series.tags)].emplace_back(tasks, value);
  }
  std::vector<std::pair<uint32_t, double>>& walltimes = runs.points[std::string(kWalltime)];
  if (walltimes.size() == runs.count) walltimes.emplace_back(tasks, WalltimeOf(profile.job));
  ++runs.count;
}

}  // namespace

double WalltimeOf(const JobDescription& job) {
  return static_cast<double>(job.end - job.start) / kSecond;
}

Task<Result<std::vector<JobDescription>>> FinishedSteps(const Context& context,
                                                        const Request& request) {
  const Result<uint64_t> limit = NumberParam(request, "limit", kDefaultProfiles, 1, kMaxProfiles);
  if (!limit.ok()) co_return limit.status();
  Result<std::vector<JobDescription>> jobs =
      co_await Ask(*context.history, &StepHistory::Jobs, *limit);
  if (!jobs.ok()) co_return jobs;
  std::erase_if(*jobs, [](const JobDescription& job) { return job.state == EndState::kRunning; });
  co_return jobs;
}

Result<std::string> AskedStep(const Request& request) {
  if (const std::string* step = request.Param("jobid")) return *step;
  return Status(Code::kInvalid, "parameter jobid is missing: the job and step, such as 4711.0");
}

Task<Result<Profile>> AskedProfile(const Context& context, const Request& request) {
  const Result<std::string> step = AskedStep(request);
  if (!step.ok()) co_return step.status();
  co_return co_await Ask(*context.history, &StepHistory::GetProfile, JobStep::Parse(*step));
}

Task<Result<Runs>> RunsOf(const Context& context, const Request& request, std::string command,
                          RunEnd end) {
  const Result<uint64_t> most = NumberParam(request, "runs", kDefaultRuns, 1, kMaxRuns);
  if (!most.ok()) co_return most.status();
  Result<std::vector<JobDescription>> jobs = co_await FinishedSteps(context, request);
  if (!jobs.ok()) co_return jobs.status();
  std::erase_if(*jobs, [&](const JobDescription& job) {
    return job.command != command ||
           (end == RunEnd::kCompleted && job.state != EndState::kCompleted);
  });
  if (jobs->size() > *most) jobs->resize(*most);
  std::stable_sort(jobs->begin(), jobs->end(), [](const auto& a, const auto& b) {
    return a.expected_tasks < b.expected_tasks;
  });
  Runs runs;
  for (const JobDescription& job : *jobs) {
    const Result<Profile> profile =
        co_await Ask(*context.history, &StepHistory::GetProfile, job.id);
    if (profile.ok()) AddRun(*profile, runs);
  }
  co_return runs;
}

}  // namespace sonde::web
