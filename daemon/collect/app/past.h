// Values of the past (series/store/past.h) that the application's processes told since they were
// taken last.
//
// They are bounded: a process that tells without end costs the daemon no more memory than that.
//
// Thread safety: none; the daemon's one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/status.h"
#include "core/time.h"

namespace sonde::collect {

struct PastValue {
  Nanos time;       // by the clock of the node
  uint32_t column;  // of the application's series
  double value;
};

class AppPast {
 public:
  static constexpr size_t kMaxValues = 262'144;  // that wait to be taken
  static constexpr size_t kMaxMetrics = 256;     // names
  // So long before the step began.
  static constexpr Nanos kMostBefore = 86'400 * kSecond;

  // Since when times are taken; the first call counts.
  void Begin(Nanos now) {
    if (begin_ == 0) begin_ = now;
  }
  // Whether it may be added; else why not.
  Status Check(const PastValue& value) const;
  void Add(const PastValue& value) { values_.push_back(value); }
  // In the order of telling.
  std::vector<PastValue> Take() { return std::exchange(values_, {}); }

  // The column that counts values of the past of a metric; kNone if there is none yet.
  static constexpr uint32_t kNone = UINT32_MAX;
  uint32_t CounterOf(const std::string& metric) const;
  bool HasRoom() const { return counters_.size() < kMaxMetrics; }
  void AddCounter(const std::string& metric, uint32_t column) { counters_[metric] = column; }

 private:
  Nanos begin_ = 0;
  std::vector<PastValue> values_;
  std::unordered_map<std::string, uint32_t> counters_;
};

}  // namespace sonde::collect
