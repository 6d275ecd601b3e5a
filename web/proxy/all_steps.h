// metric-proxy's jobs beside the steps: "main", the sum over all that run, and "Node: NAME", what
// they measure on one node.
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

// The node that a job's name means; nothing if it is none of these.
std::optional<std::string> NodeOfJob(std::string_view job);
JobDescription MainDescription();
JobDescription NodeDescription(const std::string& host);

// The profiles of the steps that run. One that ends meanwhile is left out.
Task<Result<std::vector<Profile>>> RunningProfiles(const StepHistory& history);
// Counters are added; so are gauges that are amounts, of others the number is the mean, the least
// or the most, as the metric says. Of all gauges the least and the most of any step stay.
Profile SumOf(const std::vector<Profile>& steps);
// The nodes that are there, each once, by name.
std::vector<std::string> NodesOf(const std::vector<Profile>& steps);

// What each node measures now: a question, and what its answers say.
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

  // Of one host, or of all (""). Of a step that ended: what it measured last. kLimit if that would
  // be too much.
  static Result<NodeValues> Make(std::vector<Profile> steps, const std::string& host, Nanos now);
  const std::vector<QuerySpec>& specs() const { return specs_; }
  const std::vector<Profile>& steps() const { return steps_; }
  std::vector<Value> Read(const Answers& answers) const;

 private:
  std::vector<Profile> steps_;
  std::vector<QuerySpec> specs_;
  std::vector<const Metric*> metrics_;  // of steps_, by spec
};

// The profile of a node's job from its values.
Profile NodeProfile(const std::string& host, const std::vector<NodeValues::Value>& values);

}  // namespace sonde::web
