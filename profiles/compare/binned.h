// Series of several runs on one axis of time, in bins of equal length. The runs are aligned by
// their starts, or by when each run first was in a phase. Counters are rates per second.
//
// Only bins are kept, so a run of days takes no more memory than one of seconds.
//
// Thread safety: functions without state.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "profiles/archive/archive.h"
#include "profiles/compare/compare.h"

namespace sonde {

// The axis: seconds before and after the point by which the runs are aligned.
struct Axis {
  double before = 0;
  double behind = 0;
  size_t bins = 0;
  double Width() const { return (before + behind) / static_cast<double>(bins); }
};

// The time at which a run's axis is zero: its start or, with a phase, the phase's first begin.
// kNotFound: the run was never in that phase.
Result<Nanos> ZeroOf(const Profile& profile, const std::string& phase);
// An axis long enough for all runs, with at most `bins`.
Axis AxisOf(const std::vector<const Profile*>& profiles, const std::vector<Nanos>& zeros,
            size_t bins);

// A series of the whole step in bins; NaN: nothing was measured in it.
struct BinnedSeries {
  Series series;
  std::string suffix;  // behind the metric's name
  std::vector<double> bins;
  bool PerSecond() const { return IsCounting(series.metric.type); }
};
using BinnedRun = std::map<std::string, BinnedSeries>;  // by series' names
// Which metrics are read, and what one run taught about the next: blocks whose schemas have none of
// them are not decoded.
struct WantedMetrics {
  std::function<bool(const Metric&)> wanted;  // nullptr: all
  std::set<uint64_t> without;                 // schemas' ids
};
// Reads the run's reduced series.
Result<BinnedRun> ReadBins(const Archive& archive, const ProfileEntry& entry, Nanos zero,
                           const Axis& axis, WantedMetrics& metrics);

// The sum of all series of a metric.
std::vector<double> SumOf(const BinnedRun& run, std::string_view metric);
// The values for ComparedRun::variation: for each metric, the standard error of its mean over the
// run, divided by that mean. It is computed from how neighbouring bins differ, so phases in which a
// run does different things are no noise.
std::map<std::string, double, std::less<>> VariationOf(const BinnedRun& run);

}  // namespace sonde
