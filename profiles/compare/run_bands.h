// Series of many runs as bands: at each moment the median of the runs, the middle 80 % of them, the
// least and the greatest. Moments are seconds since each run's start, or shares of each run.
//
// One run after the other is read; of each only the series that are asked for are kept, in bins.
//
// Thread safety: values and functions without state.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/status.h"
#include "profiles/compare/binned.h"
#include "profiles/compare/many_runs.h"

namespace sonde {

inline constexpr size_t kMostBandMetrics = 16;
inline constexpr size_t kMostBandSeries = 64;

enum class BandAxis : unsigned char {
  kTime,   // seconds since the start
  kShare,  // of the run, 0 to 1
};
// "time" or "share".
Result<BandAxis> ParseBandAxis(std::string_view text);

// Lists have an entry for each bin; NaN: no run has a value there or, of shares, fewer than half of
// the runs that have the series.
struct RunBand {
  Series series;
  std::string suffix;  // behind the metric's name
  bool per_second = false;
  std::vector<size_t> count;  // of runs that have a value
  std::vector<double> min, p10, median, p90, max;
};

struct RunBands {
  BandAxis axis = BandAxis::kTime;
  double end = 0;  // of the axis, which begins at 0
  size_t bins = 0;
  size_t runs = 0;
  std::vector<RunBand> series;  // by name
  size_t left_out = 0;          // series beyond kMostBandSeries
};
// kInvalid: no metric, or more than kMostBandMetrics.
Result<RunBands> LoadRunBands(const Archive& archive, const FoundRuns& found,
                              const std::vector<std::string>& metrics, BandAxis axis);

// docs/endpoints.md describes it.
std::string RunBandsToJson(const RunBands& bands);

}  // namespace sonde
