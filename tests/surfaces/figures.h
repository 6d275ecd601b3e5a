// The model of a step's figures: one for each series of the whole step, from the model's rows.
//
// Thread safety: a function without state.
#pragma once

#include <cstdint>
#include <map>
#include <optional>

#include "tests/surfaces/scene.h"

namespace sonde::surfaces {

inline constexpr double kShares[] = {0.05, 0.50, 0.95, 0.99};

struct Figure {
  uint64_t ticks = 0;
  Number last;
  Number mean;
  Extreme least;
  Extreme most;
  struct Spread {
    Number last[4];
    Number mean[4];
  };
  std::optional<Spread> spread;
};

// By the series of the plan; of those that have been in a row.
std::map<size_t, Figure> FiguresOf(const Scene& scene);

}  // namespace sonde::surfaces
