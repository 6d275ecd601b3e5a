#include "daemon/collect/app/past.h"

#include <fmt/core.h>

namespace sonde::collect {

Status AppPast::Check(const PastValue& value) const {
  if (value.time < begin_ - kMostBefore) {
    return {Code::kInvalid, "one is from more than a day before the step"};
  }
  if (values_.size() >= kMaxValues) {
    return {Code::kLimit, fmt::format("the processes of this node told more than {} between two "
                                      "samples",
                                      kMaxValues)};
  }
  return {};
}

uint32_t AppPast::CounterOf(const std::string& metric) const {
  const auto found = counters_.find(metric);
  return found == counters_.end() ? kNone : found->second;
}

}  // namespace sonde::collect
