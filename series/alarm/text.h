// Alarms in words.
//
// Thread safety: functions without state.
#pragma once

#include <string>
#include <string_view>

#include "series/alarm/evaluator.h"

namespace sonde::alarms {

// "3.2 GiB", "12.5 %", "0.98": by the unit of a metric.
std::string Quantity(double value, std::string_view unit);

// The text of a raised alarm: the rule's message, or the rule itself. In a message {value} is the
// value, {left} the time that is left, such as "42 s", or "not long", and {NAME} the tag of that
// name; other text in braces stays. Plain text, cut to kMaxRemarkLength - 64 bytes.
std::string Describe(const Rule& rule, const Event& event);

}  // namespace sonde::alarms
