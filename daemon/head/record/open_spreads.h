// The sketches of the ticks whose rows are not sealed: a part that comes late is merged into its
// tick's, and the percentiles are told anew.
//
// They are kept as bytes, some hundred for a tick, until the block is sealed.
//
// Thread safety: none.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "core/time.h"
#include "series/sketch/quantile_sketch.h"
#include "series/store/reduced.h"

namespace sonde::head {

class OpenSpreads {
 public:
  // The most that is kept; percentiles of older ticks then stay as they are.
  static constexpr size_t kMaxBytes = 8u << 20;

  // Ticks in their order.
  void Add(Nanos tick, std::span<const QuantileSketch> spreads);
  // Merges into those of the tick, and sets the percentiles of what has changed. `spreads`: of all
  // series that have them.
  void Merge(Nanos tick, std::span<const QuantileSketch> late, std::vector<Spread>& spreads);
  // The rows up to this tick are sealed.
  void Drop(Nanos until);

 private:
  struct Tick {
    Nanos tick = 0;
    std::string bytes;
  };

  std::vector<Tick> ticks_;  // the first `used_`; the others keep their memory
  size_t used_ = 0;
  size_t bytes_ = 0;
  QuantileSketch sketch_;
  std::string merged_;
};

}  // namespace sonde::head
