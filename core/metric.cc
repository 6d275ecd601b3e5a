#include "core/metric.h"

#include <fmt/format.h>

#include <algorithm>

namespace sonde {
namespace {

bool IsLetter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool IsDigit(char c) { return c >= '0' && c <= '9'; }

// The length of the UTF-8 sequence that starts at text[i], 0 if there is none.
size_t Utf8Length(std::string_view text, size_t i) {
  const auto byte = [&](size_t k) { return static_cast<unsigned char>(text[k]); };
  const unsigned char first = byte(i);
  if (first < 0x80) return 1;
  const size_t n = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : first >= 0xc2 ? 2 : 0;
  if (n == 0 || first > 0xf4 || i + n > text.size()) return 0;
  for (size_t k = 1; k < n; ++k) {
    if ((byte(i + k) & 0xc0) != 0x80) return 0;
  }
  if (first == 0xe0 && byte(i + 1) < 0xa0) return 0;  // overlong
  if (first == 0xed && byte(i + 1) > 0x9f) return 0;  // surrogates
  if (first == 0xf0 && byte(i + 1) < 0x90) return 0;  // overlong
  if (first == 0xf4 && byte(i + 1) > 0x8f) return 0;  // beyond U+10FFFF
  return n;
}

bool IsPlainText(std::string_view text) {
  for (size_t i = 0; i < text.size();) {
    const size_t n = Utf8Length(text, i);
    if (n == 0 || static_cast<unsigned char>(text[i]) < 0x20 || text[i] == 0x7f) return false;
    i += n;
  }
  return true;
}

}  // namespace

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
  bool good =
      !name.empty() && name.size() <= kMaxNameLength && (IsLetter(name[0]) || name[0] == ':');
  for (const char c : name) {
    good = good && (IsLetter(c) || IsDigit(c) || c == ':' || c == '.' || c == '-');
  }
  if (good) return {};
  return {Code::kInvalid,
          fmt::format("'{}' is no metric name; expected 1 to {} letters, digits, '_', ':', '.' or "
                      "'-', the first a letter, '_' or ':'",
                      name.substr(0, 64), kMaxNameLength)};
}

Status CheckTag(std::string_view key, std::string_view value) {
  bool good = !key.empty() && key.size() <= kMaxNameLength && IsLetter(key[0]);
  for (const char c : key) good = good && (IsLetter(c) || IsDigit(c));
  if (!good) {
    return {Code::kInvalid,
            fmt::format("'{}' is no tag key; expected 1 to {} letters, digits or '_', the first no "
                        "digit",
                        key.substr(0, 64), kMaxNameLength)};
  }
  if (value.empty() || value.size() > kMaxNameLength || !IsPlainText(value)) {
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
  }
  return "gauge";
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
  }
  return "sum";
}

}  // namespace sonde
