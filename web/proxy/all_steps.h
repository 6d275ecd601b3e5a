// metric-proxy's jobs besides the steps: "main", the sum over all running steps, and "Node: NAME",
// the values of these steps on one node.
//
// Thread safety: functions without state.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "profiles/model/profile.h"
#include "web/route/gather.h"

namespace sonde::web {

inline constexpr std::string_view kNodeJob = "Node: ";

// The node in a job's name; nothing if the name is not of a node's job.
std::optional<std::string> NodeOfJob(std::string_view job);
JobDescription MainDescription();
JobDescription NodeDescription(const std::string& host);

// The profiles of the running steps. A step that ends meanwhile is left out.
Task<Result<std::vector<Profile>>> RunningProfiles(const StepHistory& history);
// Counters and gauges that are amounts are added; of other gauges the number is the mean, the least
// or the most, as the metric declares. Of all gauges the least and the most of any step stay.
Profile SumOf(const std::vector<Profile>& steps);
// The nodes of the steps, each once, by name.
std::vector<std::string> NodesOf(const std::vector<Profile>& steps);

// The values of each node now: makes the query, and reads the answers.
class NodeValues {
 public:
  struct Value {
    std::string job;
    std::string host;
    const Metric* metric = nullptr;
    Tags tags;  // the series' own
    double value = 0;
  };
  static constexpr size_t kMaxValues = 200'000;

  // The query for one host, or for all (""). A step that ended counts with its last values. kLimit
  // if the answer would be too large.
  static Result<NodeValues> Make(std::vector<Profile> steps, const std::string& host, Nanos now);
  const std::vector<QuerySpec>& specs() const { return specs_; }
  const std::vector<Profile>& steps() const { return steps_; }
  std::vector<Value> Read(const Answers& answers) const;

 private:
  std::vector<Profile> steps_;
  std::vector<QuerySpec> specs_;
  std::vector<const Metric*> metrics_;  // of steps_, by spec
};

// The profile of a node's job, made from its values.
Profile NodeProfile(const std::string& host, const std::vector<NodeValues::Value>& values);

}  // namespace sonde::web
