// The title of a metric, for people who do not know its name: "CPU time by mode" for
// node_cpu_seconds_total. All pages and answers take it from here.
//
// It is made of the help text that the metric was declared with: the first sentence without its
// full stop and without what stands behind a semicolon, a colon or in brackets, or, if it is long,
// behind a comma. A few that stand at the top of every page have shorter ones. Where the help is
// too long for a heading, or speaks of another metric ("Those of them that failed"), the name
// stands in words: "Vmstat thp fault fallback".
//
// Thread safety: a function without state.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace sonde {

inline constexpr size_t kMaxTitle = 64;  // bytes

std::string MetricTitle(std::string_view name, std::string_view help);

}  // namespace sonde
