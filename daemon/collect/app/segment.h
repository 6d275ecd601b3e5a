// Reading the memory of one application process (libclient/layout.h).
//
// Nothing in it is trusted: the process may write whatever it likes at any moment. Every number is
// read once, a record is copied before it is looked at, and no address is computed from what the
// process wrote without a check. The process cannot make the mapping fault: its size is sealed.
//
// Thread safety: none; the daemon's one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "core/metric.h"
#include "core/status.h"
#include "core/time.h"
#include "libclient/layout.h"

namespace sonde::collect {

// Reads memory that its process may write at this moment: once, and whole.
template <typename T>
T LoadRelaxed(const T* from) {
  T value;
  __atomic_load(from, &value, __ATOMIC_RELAXED);
  return value;
}

Result<client::Hello> ParseHello(std::string_view packet);

// One metric as its process registered it.
struct AppMetric {
  Series series;  // without the tag `task`
  uint32_t slot = 0;
};

// Whether an application's metric has percentiles over tasks: all gauges, and of MPI's counters the
// time in which a rank waits for others.
bool AppHasSpread(MetricType type, std::string_view name);

// `bytes` is one whole record.
Result<AppMetric> ParseRecord(std::string_view bytes);

struct AppGauge {
  double value = 0;
  Nanos time = 0;  // 0: none of its own
};

// Reads a segment that lies somewhere in memory and stays there.
class AppSegment {
 public:
  explicit AppSegment(const char* base) : base_(base) {}

  Status CheckHeader() const;

  // Appends what was registered since the last call, `limit` metrics at most, to `out`.
  // After an error the process has broken the layout and must not be read further.
  Status ReadNew(size_t limit, std::vector<AppMetric>& out);

  // Whether more was registered than has been read.
  bool HasNew() const;

  AppGauge ReadGauge(uint32_t slot) const;

  // Adds every shard's counters to totals[slot]; slots at or above totals.size() are left out.
  void AddCounters(std::span<client::Count> totals) const;

 private:
  const client::Header* header() const { return reinterpret_cast<const client::Header*>(base_); }

  const char* base_;
  size_t read_ = 0;  // bytes of records
};

// Maps the memory that a process sent, after a check that its size cannot change.
class AppMapping {
 public:
  static Result<AppMapping> Make(int fd);
  const char* base() const { return base_.get(); }

 private:
  struct Unmap {
    void operator()(const char* base) const;
  };
  explicit AppMapping(const char* base) : base_(base) {}

  std::unique_ptr<const char, Unmap> base_;
};

}  // namespace sonde::collect
