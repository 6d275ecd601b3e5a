#include "web/running_step.h"

#include <algorithm>

#include "profiles/json_writer.h"

namespace sonde::web {
namespace {

constexpr size_t kMaxJobs = 1000;

}  // namespace

Result<std::vector<JobDescription>> RunningSteps(const DataSource& source) {
  Result<std::vector<JobDescription>> jobs = source.Jobs(kMaxJobs);
  if (jobs.ok()) std::erase_if(*jobs, [](const JobDescription& job) { return job.end != 0; });
  return jobs;
}

Result<JobStep> RunningStep(const DataSource& source, std::string_view target) {
  if (!target.empty() && target != kMainJob) return JobStep::Parse(target);
  const Result<std::vector<JobDescription>> jobs = RunningSteps(source);
  if (!jobs.ok()) return jobs.status();
  if (jobs->empty()) return Status(Code::kNotFound, "no step runs");
  if (jobs->size() > 1) {
    return Status(Code::kInvalid,
                  "several steps run: name one, as in job=" + jobs->front().id.ToString());
  }
  return jobs->front().id;
}

Response ProxyError(const Status& status) {
  Response response = ErrorResponse(status);
  std::string body;
  JsonWriter(body)
      .BeginObject()
      .Field("operation", Shortened(status.message()))
      .Field("success", false);
  // ErrorResponse has one member, error.
  response.body = body + "," + response.body.substr(1);
  return response;
}

}  // namespace sonde::web
