// A random step: which daemons there are, what each of them measures, and what becomes of it on its
// way to the head. All of it follows from a seed. The campaign (main.cc) lets the product run the
// step, and the models (rows.h, algebra.h) say from the same plan what every reader must show.
//
// Values are whole multiples of 1/8, so that their sums are exact in a double, but for those of the
// series that count near 2^63.
//
// Thread safety: values, and a function without state.
#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "core/metric.h"
#include "core/time.h"

namespace sonde::surfaces {

inline constexpr uint32_t kNobody = 0xffffffff;

struct SeriesPlan {
  Series series;          // without the tags host and task
  bool of_tasks = false;  // each task has one
  bool slow = false;      // sampled at slow ticks only (core/time.h), and when all is
  bool large = false;     // whole numbers near 2^63
};

// A column of what a daemon measures.
struct Column {
  size_t series = 0;  // of StepPlan::series
  uint32_t task = kNobody;
};

struct Sample {
  Nanos time = 0;
  bool tick = false;           // else it is the daemon's first or last one, beside the ticks
  std::vector<double> values;  // by the daemon's columns; NaN is missing
};

struct Daemon {
  std::string host;
  uint32_t first_rank = 0;
  uint32_t tasks = 0;
  uint32_t parent = kNobody;  // the daemon that it sends to; kNobody: the head
  std::vector<Column> columns;
  // From the one at which it joins to the one at which it ends. A lost daemon has no last one.
  std::vector<Sample> samples;
  bool lost = false;
  // Its link takes nothing from the tick of this index on, for so many ticks; 0: never.
  size_t stuck_from = 0;
  size_t stuck_for = 0;
  size_t replaces = SIZE_MAX;  // the daemon that was there before on the same host

  Nanos joined() const { return samples.front().time; }
  Nanos last() const { return samples.back().time; }
};

struct StepPlan {
  uint64_t seed = 0;
  Nanos period = kSecond;
  Nanos start = 0;
  std::vector<Nanos> ticks;
  std::vector<SeriesPlan> series;
  std::vector<Daemon> daemons;  // in the order in which they join
  std::vector<std::string> hosts;
  bool tree = false;     // some daemons have parents
  bool changes = false;  // a node comes late, ends early, is lost, or misses a tick
  bool fails = false;    // some gauges cannot be read at some ticks
  // The wall clock of the head's host is set by so much before the tick of this index.
  size_t clock_at = SIZE_MAX;
  Nanos clock_by = 0;
  std::vector<size_t> asked_after;  // ticks, by index, after which the running step is asked
};

// Draws whole numbers the same everywhere, other than the standard library's distributions.
class Chance {
 public:
  explicit Chance(uint64_t seed) : random_(seed) {}
  size_t Below(size_t n) { return n == 0 ? 0 : random_() % n; }
  size_t From(size_t least, size_t most) { return least + Below(most - least + 1); }
  bool Of(size_t one_in) { return Below(one_in) == 0; }
  template <typename T>
  const T& Any(const std::vector<T>& of) {
    return of[Below(of.size())];
  }

 private:
  std::mt19937_64 random_;
};

StepPlan MakePlan(uint64_t seed);

}  // namespace sonde::surfaces
