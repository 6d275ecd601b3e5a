// Series of several runs on one axis of time: aligned by their starts, or by when each first was in
// a phase, and put into bins of equal length. Counters are rates per second.
//
// Only bins are kept, so a run of days takes no more memory than one of seconds.
//
// Thread safety: functions without state.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "profiles/archive/archive.h"
#include "profiles/compare/compare.h"

namespace sonde {

// The axis: seconds before and behind what the runs are aligned by.
struct Axis {
  double before = 0;
  double behind = 0;
  size_t bins = 0;
  double Width() const { return (before + behind) / static_cast<double>(bins); }
};

// When a run is at zero: its start or, with a phase, its first begin. kNotFound: it was never in
// it.
Result<Nanos> ZeroOf(const Profile& profile, const std::string& phase);
// Long enough for all of them, with at most `bins`.
Axis AxisOf(const std::vector<const Profile*>& profiles, const std::vector<Nanos>& zeros,
            size_t bins);

// A series of the whole step in bins; NaN: nothing was measured in it.
struct BinnedSeries {
  Series series;
  std::string suffix;  // behind the metric's name
  std::vector<double> bins;
  bool PerSecond() const { return series.metric.type != MetricType::kGauge; }
};
using BinnedRun = std::map<std::string, BinnedSeries>;  // by series' names
// Reads the run's reduced series.
Result<BinnedRun> ReadBins(const Archive& archive, const ProfileEntry& entry, Nanos zero,
                           const Axis& axis);

// All series of a metric, added up.
std::vector<double> SumOf(const BinnedRun& run, std::string_view metric);
// What ComparedRun::variation is: of each metric the standard error of its mean over the run, by
// the mean. It is told from how neighbouring bins differ, so that phases of a run, in which it does
// different things, are no noise.
std::map<std::string, double, std::less<>> VariationOf(const BinnedRun& run);

}  // namespace sonde
