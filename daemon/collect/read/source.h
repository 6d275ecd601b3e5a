// A source of samples: one file of daemon/collect/ each.
//
// A source keeps its descriptors open, reads with pread and parses by hand; Sample allocates
// nothing unless its series change. What it cannot read is NaN (missing), never zero, and one
// failed read must not stop it for good. When series change (a device appears, a task starts) the
// generation rises and series() and values() have their new size.
//
// Thread safety: none; the daemon's one thread.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/metric.h"
#include "core/time.h"

namespace sonde::collect {

// The groups of series that share rows and blocks.
enum class Group : uint8_t { kOs = 0, kTask = 1, kApp = 2 };
inline constexpr size_t kGroups = 3;
inline constexpr std::string_view kGroupNames[kGroups] = {"os", "task", "app"};

// Where the kernel's files lie; a test injects a tree of its own.
struct Roots {
  std::string proc = "/proc";
  std::string sys = "/sys";
};

class Source {
 public:
  virtual ~Source() = default;

  virtual std::string_view name() const = 0;
  virtual Group group() const = 0;
  // Counters of this source started before the step: the sampler subtracts what they had when a
  // series was first read.
  virtual bool counts_from_boot() const = 0;
  // Reads everything once.
  virtual void Sample(Nanos now) = 0;
  // The same at the beginning and the end of the step, also by a source that else does not read at
  // every tick.
  virtual void SampleLast(Nanos now) { Sample(now); }

  const std::vector<Series>& series() const { return series_; }
  std::span<const double> values() const { return values_; }
  uint32_t generation() const { return generation_; }
  // What a reader of the profile must know about this source, such as an event that could not be
  // opened and why; each is given once.
  std::vector<std::string> TakeNotes() { return std::exchange(notes_, {}); }

 protected:
  std::vector<Series> series_;
  std::vector<double> values_;
  std::vector<std::string> notes_;
  uint32_t generation_ = 0;
};

}  // namespace sonde::collect
