#include "web/proxy/traces/traced.h"

#include <algorithm>

#include "web/proxy/all_steps.h"
#include "web/proxy/snapshot.h"
#include "web/source/running_step.h"

namespace sonde::web {

Profile MainOf(const std::vector<Profile>& running) {
  Profile main = SumOf(running);
  for (const Profile& step : running) {
    const JobDescription& job = step.job;
    main.job.start = main.job.start == 0 ? job.start : std::min(main.job.start, job.start);
    main.job.period = main.job.period == 0 ? job.period : std::min(main.job.period, job.period);
    main.cost.stored_bytes += step.cost.stored_bytes;
  }
  return main;
}

Task<Result<Traced>> TracedSteps(const Context& context, std::string job) {
  if (job != kMainJob) {
    const JobStep id = JobStep::Parse(job);
    Result<Profile> profile = co_await Ask(*context.history, &StepHistory::GetProfile, id);
    if (!profile.ok()) co_return profile.status();
    std::string step = profile->job.id.ToString();
    co_return Traced{*std::move(profile), std::move(step)};
  }
  const Result<std::vector<Profile>> running = co_await RunningProfiles(*context.history);
  if (!running.ok()) co_return running.status();
  if (running->empty()) co_return Status(Code::kNotFound, "no step runs");
  Traced main{MainOf(*running), {}};
  for (const Profile& step : *running) {
    main.steps += (main.steps.empty() ? "" : "|") + step.job.id.ToString();
  }
  co_return main;
}

Status NoTracedJob() {
  return {Code::kInvalid, "No job GET parameter passed: the job and step, as 4711.0"};
}

uint64_t TraceSize(const Profile& profile) {
  return static_cast<uint64_t>(std::max(profile.cost.stored_bytes, 0.0));
}

void WriteTraceInfo(const Profile& profile, Nanos now, JsonWriter& json) {
  const Nanos last = profile.job.end != 0 ? profile.job.end : now;
  json.BeginObject().Key("desc");
  WriteDescription(profile.job, json);
  json.Field("size", TraceSize(profile));
  json.Field("lastwrite", last / kSecond).EndObject();
}

}  // namespace sonde::web
