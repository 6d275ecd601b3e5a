// What to change in a step, and the figures from which that is concluded: rules (rules.h) whose
// condition holds for the step's facts (facts.h).
//
// Thread safety: functions without state; rules are used by one thread at a time.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "insight/hints/facts.h"
#include "insight/hints/rules.h"
#include "profiles/report/hints.h"

namespace sonde::insight {

struct Hint {
  std::string name;  // of its rule
  HintKind kind = HintKind::kMistake;
  double worth = 0;    // 0 to 1: the share of the step's cost that it is about
  std::string says;    // what is wrong
  std::string why;     // with its figures
  std::string change;  // what helps
};

inline constexpr size_t kMostHints = 5;

// At most `most`, the most valuable first; one of kLimit at most, as the last one. A rule whose
// condition or worth is not known, or whose texts name what is not known, gives none: there is no
// hint without evidence.
std::vector<Hint> FindHints(std::span<const HintRule> rules, const Facts& facts,
                            size_t most = kMostHints);

// As reports have them.
std::vector<ReportHint> ForReport(const std::vector<Hint>& hints);

}  // namespace sonde::insight
