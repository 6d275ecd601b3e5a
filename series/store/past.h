// Values of the past: what an application told of times that had passed (sonde_set_past).
//
// Rows are reduced over the nodes tick by tick, and those of past ticks have been. So such values
// are in no row of the whole step: they stay in a group of their own at their node, whose blocks
// come as they are told and not in the order of time. They belong to the series of that name of the
// application's group, and count in place of what it has at their ticks. Of a metric that has any,
// no row of the whole step is right (series/query/pieces/pieces.h): the nodes' series answer, as
// far as they can. A counter of how many values of the past a metric got, which is reduced as any
// other, tells where that is so.
//
// Thread safety: functions without state.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/metric.h"
#include "series/store/store.h"

namespace sonde {

inline constexpr std::string_view kPastGroup = "past";
// Whether blocks of that group may follow one another in any order of time.
bool IsPastGroup(std::string_view group);

// The counter, and the tag that names the metric.
inline constexpr std::string_view kPastCounter = "sonde_past_values_total";
inline constexpr std::string_view kPastMetricTag = "metric";
Series PastCounterOf(const std::string& metric);
// Whether a series is the counter of that metric; of a reduced one any of its columns.
bool CountsPastOf(std::string_view metric, const Series& series);

// Puts points, in the order in which they were told, among a series' own.
void PutPast(std::vector<Point> past, std::vector<Point>& points);
// The same for all series that were read of a node: each goes to the one of its name.
void PutPast(std::vector<SeriesData> past, std::vector<SeriesData>& series);

}  // namespace sonde
