// Metrics of the application that come over HTTP: which were registered, and where each is
// recorded.
//
// A metric is recorded by one node, the first that was there when it was registered; when that node
// is gone, by another one.
//
// Thread safety: every method from any thread.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <string>

#include "core/job.h"
#include "core/status.h"
#include "web/source/pushed_value.h"

namespace sonde::head {

class PushedMetrics {
 public:
  // `send`: hands bytes to a node; from any thread.
  using Send = std::function<void(uint32_t node, std::string bytes)>;
  explicit PushedMetrics(Send send) : send_(std::move(send)) {}

  // kInvalid: not registered. kLimit: too many. kUnavailable: no node is there.
  Status Push(const JobDescription& job, const web::PushedValue& value);

 private:
  struct Known {
    Series series;
    uint32_t node = 0;
  };

  const Send send_;
  std::mutex mutex_;
  std::map<std::string, Known> known_;  // by SeriesName
};

}  // namespace sonde::head
