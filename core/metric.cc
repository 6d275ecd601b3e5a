#include "core/metric.h"

#include <fmt/core.h>

#include <algorithm>

namespace sonde {

Tags::Tags(std::initializer_list<Pair> pairs) {
  for (const auto& [key, value] : pairs) Set(key, value);
}

void Tags::Set(std::string_view key, std::string_view value) {
  const auto at = std::lower_bound(pairs_.begin(), pairs_.end(), key,
                                   [](const Pair& p, std::string_view k) { return p.first < k; });
  if (at != pairs_.end() && at->first == key) {
    at->second = value;
  } else {
    pairs_.insert(at, Pair(key, value));
  }
}

void Tags::Erase(std::string_view key) {
  std::erase_if(pairs_, [&](const Pair& p) { return p.first == key; });
}

const std::string* Tags::Find(std::string_view key) const {
  for (const auto& [k, v] : pairs_) {
    if (k == key) return &v;
  }
  return nullptr;
}

std::string SeriesName(std::string_view metric, const Tags& tags) {
  std::string text(metric);
  if (tags.empty()) return text;
  char separator = '{';
  for (const auto& [key, value] : tags.pairs()) {
    text += separator;
    text += key;
    text += "=\"";
    for (const char c : value) {
      if (c == '"' || c == '\\') text += '\\';
      text += c;
    }
    text += '"';
    separator = ',';
  }
  text += '}';
  return text;
}

Status CheckMetricName(std::string_view name) {
  if (names::IsMetricName(name)) return {};
  return {Code::kInvalid,
          fmt::format("'{}' is no metric name; expected 1 to {} letters, digits, '_', ':', '.' or "
                      "'-', the first a letter, '_' or ':'",
                      name.substr(0, 64), kMaxNameLength)};
}

Status CheckTag(std::string_view key, std::string_view value) {
  if (!names::IsTagKey(key)) {
    return {Code::kInvalid,
            fmt::format("'{}' is no tag key; expected 1 to {} letters, digits or '_', the first no "
                        "digit",
                        key.substr(0, 64), kMaxNameLength)};
  }
  if (!names::IsTagValue(value)) {
    return {Code::kInvalid, fmt::format("the value of tag '{}' must be 1 to {} bytes of UTF-8 text "
                                        "without control characters",
                                        key, kMaxNameLength)};
  }
  return {};
}

std::string_view ToString(MetricType type) {
  switch (type) {
    case MetricType::kGauge:
      return "gauge";
    case MetricType::kCounter:
      return "counter";
    case MetricType::kHistogram:
      return "histogram";
    case MetricType::kUnknown:
      break;
  }
  return "unknown";
}

std::string_view ToString(Reduction reduction) {
  switch (reduction) {
    case Reduction::kSum:
      return "sum";
    case Reduction::kMean:
      return "mean";
    case Reduction::kMin:
      return "min";
    case Reduction::kMax:
      return "max";
    case Reduction::kUnknown:
      break;
  }
  return "unknown";
}

}  // namespace sonde
