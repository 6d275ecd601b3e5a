#include "profiles/model/moments.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>

namespace sonde {

std::vector<PhaseTotal> PhaseTotals(const StepMoments& moments, Nanos end, bool running) {
  std::vector<PhaseTotal> totals;
  std::map<std::string_view, size_t> index;
  for (const Phase& phase : moments.phases) {
    const auto [at, added] = index.try_emplace(phase.name, totals.size());
    if (added) totals.push_back({phase.name, 0, 0, 0});
    PhaseTotal& total = totals[at->second];
    const bool open = phase.end == 0 || (running && phase.ended < phase.began);
    const Nanos until = open ? std::max({end, phase.begin, phase.end}) : phase.end;
    total.seconds += static_cast<double>(until - phase.begin - phase.pauses) / kSecond;
    total.began += phase.began;
    total.ended += phase.ended;
  }
  std::stable_sort(totals.begin(), totals.end(),
                   [](const PhaseTotal& a, const PhaseTotal& b) { return a.seconds > b.seconds; });
  return totals;
}

std::string MissingMoments(uint64_t lost, uint64_t left_out) {
  std::string text;
  if (lost != 0) {
    text = fmt::format(
        "{} remarks, phases, figures or parts of histograms came faster than they could be taken "
        "and are missing",
        lost);
  }
  if (left_out != 0) {
    if (!text.empty()) text += "; ";
    text += fmt::format("{} more had no room in the profile", left_out);
  }
  return text;
}

}  // namespace sonde
