// The pieces of Prometheus' text formats: names, labels, numbers and the head of a family, both for
// scraped pages and for files.
//
// Formats: https://prometheus.io/docs/instrumenting/exposition_formats/ (0.0.4) and
// https://prometheus.io/docs/specs/om/open_metrics_spec/ (1.0.0).
//
// Thread safety: functions without state.
#pragma once

#include <string>
#include <string_view>

#include "core/metric.h"

namespace sonde::prometheus {

// Letters, digits, '_' and ':' stay, all else becomes '_'; a name that begins with a digit gets '_'
// before it. A metric of an application may have '.' and '-', which Prometheus does not take.
std::string Name(std::string_view name);

// {a="1",b="2"}; {} if there are none.
std::string Labels(const Tags& tags);

// `quote`: escapes the quote as well, as in label values, and in OpenMetrics everywhere.
void AppendEscaped(std::string_view text, bool quote, std::string& out);

// The shortest text that reads back as the same number; +Inf, -Inf. Nothing for NaN, a missing
// value.
void AppendNumber(double value, std::string& out);

// A counter's samples are called NAME_total; OpenMetrics knows its family as NAME. Any other name
// stays.
inline constexpr std::string_view kTotal = "_total";
std::string_view FamilyOf(const std::string& sample, MetricType type);

// # TYPE, # UNIT and # HELP of OpenMetrics. A counter whose samples do not end in _total is of
// unknown type there; the unit is told where the family's name ends in it.
void AppendOpenMetricsHead(std::string_view family, std::string_view sample, MetricType type,
                           std::string_view unit, std::string_view help, std::string& out);

}  // namespace sonde::prometheus
