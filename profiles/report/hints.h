// What to change in a step, as reports tell it. insight/hints finds it.
//
// Thread safety: values and functions without state.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "profiles/json/writer.h"

namespace sonde {

struct ReportHint {
  std::string name;    // of its rule
  bool limit = false;  // no mistake, but what the step is limited by
  double worth = 0;    // 0 to 1: the share of the step's cost that it is about
  std::string says;
  std::string why;
  std::string change;
};

// Paragraphs of lines of at most `width` characters: what is wrong, the figures, the change.
std::string HintsText(std::span<const ReportHint> hints, size_t width);

// As an array.
void WriteHints(JsonWriter& json, std::span<const ReportHint> hints);

}  // namespace sonde
