// The rules that every step has unless they are switched off (alarm.NAME = off in sonde.conf) or
// replaced by others of the same name.
//
// Bounds are chosen so that a healthy step raises no alarm; docs/alarms.md tells what each rule is
// about.
//
// Thread safety: a function without state.
#pragma once

#include <vector>

#include "series/alarm/rule.h"

namespace sonde::alarms {

// 1 for each node whose sample a row lacks; the head's own series, not recorded.
inline constexpr std::string_view kNodeMissing = "sonde_node_missing";

std::vector<Rule> DefaultRules();
// The same rules as text, one "NAME: RULE" per line.
std::string_view DefaultRulesText();

}  // namespace sonde::alarms
