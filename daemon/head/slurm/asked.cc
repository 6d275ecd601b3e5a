#include "daemon/head/slurm/asked.h"

#include <charconv>
#include <string>

namespace sonde::head {
namespace {

std::string_view Variable(const JobDescription& job, const char* name) {
  const auto at = job.environment.find(name);
  return at == job.environment.end() ? std::string_view() : at->second;
}

Nanos SinceEpoch(std::string_view seconds) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(seconds.data(), seconds.data() + seconds.size(), value);
  constexpr int64_t kLast = 9'000'000'000;  // of what nanoseconds can say
  const bool good = error == std::errc() && end == seconds.data() + seconds.size();
  return good && value > 0 && value < kLast ? value * kSecond : 0;
}

}  // namespace

std::optional<JobRequest> RequestOfVariables(const JobDescription& job, Nanos time_limit) {
  JobRequest request;
  request.time_limit = time_limit;
  request.begun = SinceEpoch(Variable(job, "SLURM_JOB_START_TIME"));
  request.qos = Variable(job, "SLURM_JOB_QOS");
  if (request == JobRequest()) return {};
  return request;
}

void Complete(const JobRequest& told, JobRequest& request) {
  const auto take = [](const auto& from, auto& to) {
    if (from != std::remove_cvref_t<decltype(from)>()) to = from;
  };
  take(told.time_limit, request.time_limit);
  take(told.submitted, request.submitted);
  take(told.begun, request.begun);
  take(told.cpus, request.cpus);
  take(told.qos, request.qos);
  take(told.features, request.features);
  take(told.gres, request.gres);
}

EndState WhyKilledByTime(const std::optional<JobRequest>& request, Nanos now) {
  if (!request || request->begun == 0 || request->time_limit <= 0 ||
      request->time_limit == JobRequest::kNoLimit) {
    return EndState::kCancelled;
  }
  // Slurm's times are whole seconds, and it looks at limits only now and then, later than this.
  return now >= request->begun + request->time_limit - kSecond ? EndState::kTimeout
                                                               : EndState::kCancelled;
}

}  // namespace sonde::head
