// Conditions on new values: parsing their text, and telling whether they hold.
//
// Thread safety: functions without state on the caller's values.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "libclient/sonde_query.h"

namespace sonde::client {

// A condition that owns its texts: its pointers lead into the object, so it must not be moved.
struct ParsedCondition {
  static constexpr size_t kMaxText = 2048;
  static constexpr size_t kMaxFilters = 16;

  ParsedCondition() = default;
  ParsedCondition(const ParsedCondition&) = delete;
  ParsedCondition& operator=(const ParsedCondition&) = delete;

  sonde_condition_t condition;
  sonde_filter_t filters[kMaxFilters];
  char text[kMaxText];
};

// Parses the grammar of sonde_query_watch(). False if `text` is no condition: `why`, of `size`
// bytes, then says what was expected where.
bool ParseCondition(const char* text, ParsedCondition* parsed, char* why, size_t size);

// One group of a watch: how its condition stood at its last tick.
struct GroupState {
  uint64_t group;  // see GroupOf
  int64_t last;    // the tick
  int64_t since;   // the first tick since when the comparison has held
  bool holds;
  bool told;
};

enum class Change { kNone, kBegins, kEnds };

// Takes the value of one tick. Ticks that are not newer, and NaN, change nothing.
Change Advance(const sonde_condition_t& condition, GroupState& state, int64_t time, double value);

// A number for the values of the tags that the question groups by; 0 if it groups by none.
uint64_t GroupOf(const sonde_question_t& question, const sonde_series_t& series);

}  // namespace sonde::client
