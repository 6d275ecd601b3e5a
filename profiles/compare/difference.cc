#include "profiles/compare/difference.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <utility>

namespace sonde {

std::vector<Band> BandsOf(const std::vector<std::vector<double>>& runs) {
  size_t bins = 0;
  for (const auto& run : runs) bins = std::max(bins, run.size());
  std::vector<Band> bands;
  bands.reserve(bins);
  for (size_t i = 0; i < bins; ++i) {
    std::vector<double> values;
    values.reserve(runs.size());
    for (const auto& run : runs) values.push_back(i < run.size() ? run[i] : std::nan(""));
    bands.push_back(BandOf(std::move(values)));
  }
  return bands;
}

std::string NoiseStory(const Difference& diff) {
  const auto& rows = diff.comparison.rows;
  const bool by_runs = std::any_of(rows.begin(), rows.end(), [](const CompareRow& row) {
    return row.basis == NoiseBasis::kRuns;
  });
  if (!by_runs) {
    return fmt::format(
        "Noise is a rule of thumb, as too few runs of this command are in the archive: {:.0f} %, "
        "or twice what the ups and downs within the runs make likely.",
        100 * kNoiseRule);
  }
  return fmt::format(
      "Noise is what {} runs tell{}: by how much two such groups differ by chance once in 20 "
      "times, at least {:.1f} %.",
      diff.comparison.known_runs,
      diff.besides > 0 ? fmt::format(", {} others of the same command among them", diff.besides)
                       : "",
      100 * kNoiseLeast);
}

}  // namespace sonde
