#include "insight/hints/job_facts.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <string>

#include "insight/hints/step_facts.h"
#include "profiles/archive/node_rows.h"
#include "profiles/model/summary.h"
#include "profiles/report/used.h"

namespace sonde::insight {
namespace {

class WholeJob {
 public:
  Status Add(const Archive& archive, const ProfileEntry& entry) {
    const auto profile = archive.Load(entry.key);
    if (!profile.ok()) return profile.status();
    const auto rows = ReadNodeRows(archive, entry.key, profile->job);
    if (!rows.ok()) return rows.status();
    const Summary summary = Summarize(*profile, *rows, profile->job.end);
    end_ = std::max(end_, profile->job.end);
    memory_ = std::fmax(memory_, summary.memory_peak.value);
    for (const FootprintEntry& one : profile->footprint) {
      const std::string* gpu = one.series.tags.Find("gpu");
      if (one.series.metric.name != "gpu_utilization_ratio" || gpu == nullptr) continue;
      gpus_.insert(*gpu);
      if (one.max > kIdleGpu) busy_.insert(*gpu);
    }
    return {};
  }
  void Set(const JobDescription& job, Facts& facts) const {
    const Nanos begun = job.request ? job.request->begun : 0;
    if (begun > 0 && begun < end_) {
      facts.Set("job_time_used", static_cast<double>(end_ - begun) / kSecond);
    }
    facts.Set("job_memory_peak", memory_);
    if (gpus_.empty()) return;
    facts.Set("job_gpus", static_cast<double>(gpus_.size()));
    facts.Set("job_gpus_idle", static_cast<double>(gpus_.size() - busy_.size()));
  }

 private:
  Nanos end_ = 0;
  double memory_ = kMissing;
  std::set<std::string> gpus_, busy_;
};

}  // namespace

Status AddJobFacts(const Archive& archive, const Profile& profile, Nanos now, Facts& facts) {
  const JobDescription& job = profile.job;
  if (!job.request || !job.array_job.empty()) return {};
  const auto steps = archive.Find({job.id.job, ""});
  if (!steps.ok()) return steps.status();
  if (steps->size() > kMostSteps) return {};
  const Nanos limit = job.request->time_limit;
  bool over = limit > 0 && limit != JobRequest::kNoLimit && job.request->begun > 0 &&
              now > job.request->begun + limit;
  for (const ProfileEntry& entry : *steps) {
    // An array's tasks are jobs of their own, which have the same limits.
    if (entry.running || entry.job.id.job != job.id.job) return {};
    over |= entry.job.id.step == "batch" && entry.job.start <= job.start;
  }
  // Of a script alone it is not known whether it had steps that were not watched.
  const bool alone = std::all_of(steps->begin(), steps->end(),
                                 [](const ProfileEntry& entry) { return entry.job.id.IsScript(); });
  if (!over || alone) return {};
  WholeJob whole;
  for (const ProfileEntry& entry : *steps) SONDE_RETURN_IF_ERROR(whole.Add(archive, entry));
  whole.Set(job, facts);
  return {};
}

}  // namespace sonde::insight
