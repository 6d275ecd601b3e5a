// The plot of a roofline for terminals: both axes logarithmic, the roof as a line of braille dots
// or, where the terminal knows no such letters, of '/' and '-', and phases as letters.
//
// Thread safety: functions without state.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "insight/hardware/roofline.h"

namespace sonde::cli {

struct PlottedPhase {
  char letter = 'A';
  double intensity = 0;  // FLOP per byte
  double flops = 0;      // per second
};

struct PlotSize {
  size_t width = 80;   // of all, with the axis
  size_t height = 16;  // lines of the plot, without the axis
};

// Phases whose numbers are not above 0 and finite are left out. "" if the roof is not known.
// A letter whose place is taken stands in the next free place to the right.
std::string RooflinePlot(std::span<const PlottedPhase> phases, const insight::Roof& roof,
                         const PlotSize& size, bool unicode);

}  // namespace sonde::cli
