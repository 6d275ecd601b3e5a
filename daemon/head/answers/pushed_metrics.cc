#include "daemon/head/answers/pushed_metrics.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

namespace sonde::head {
namespace {

bool IsThere(const NodeInfo& node) { return !node.IsGone() && !node.host.empty(); }

}  // namespace

Status PushedMetrics::Push(const JobDescription& job, const web::PushedValue& value) {
  using Kind = web::PushedValue::Kind;
  const auto there = std::find_if(job.nodes.begin(), job.nodes.end(), IsThere);
  if (there == job.nodes.end()) {
    return {Code::kUnavailable, "step " + job.id.ToString() + " has no node that records it"};
  }
  std::string name = SeriesName(value.series.metric.name, value.series.tags);
  web::PushedValue sent = value;
  const std::lock_guard lock(mutex_);
  auto at = known_.find(name);
  if (at == known_.end()) {
    if (value.kind != Kind::kRegister) {
      return {Code::kInvalid, fmt::format("No such key {} cannot set it: /push it first", name)};
    }
    if (known_.size() >= web::kMaxPushedMetrics) {
      return {Code::kLimit, fmt::format("{} metrics were pushed already", known_.size())};
    }
    const auto first = static_cast<uint32_t>(there - job.nodes.begin());
    at = known_.emplace(std::move(name), Known{value.series, first}).first;
  }
  Known& known = at->second;
  if (!IsThere(job.nodes[known.node])) {
    known.node = static_cast<uint32_t>(there - job.nodes.begin());
  }
  sent.series = known.series;
  send_(known.node, web::EncodePushed(sent));
  return {};
}

}  // namespace sonde::head
