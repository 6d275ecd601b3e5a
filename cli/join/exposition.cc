#include "cli/join/exposition.h"

#include <fmt/core.h>

#include <charconv>
#include <cmath>
#include <limits>

#include "core/text/names.h"

namespace sonde::join {
namespace {

constexpr size_t kMaxFamilies = 65536;

std::string_view WithoutBlanks(std::string_view text) {
  const size_t first = text.find_first_not_of(" \t");
  return first == std::string_view::npos ? std::string_view() : text.substr(first);
}

// Takes the text before the next blank off the front.
std::string_view TakeWord(std::string_view& text) {
  text = WithoutBlanks(text);
  const size_t end = std::min(text.find_first_of(" \t"), text.size());
  const std::string_view word = text.substr(0, end);
  text.remove_prefix(end);
  return word;
}

// As both formats write numbers: a decimal one, or Inf and NaN in any case.
std::optional<double> ParseValue(std::string_view text) {
  if (!text.empty() && text.front() == '+') text.remove_prefix(1);
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (end != text.data() + text.size() || text.empty()) return {};
  if (error == std::errc::result_out_of_range) return std::numeric_limits<double>::infinity();
  if (error != std::errc()) return {};
  return value;
}

std::string Unescape(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\\' || i + 1 == text.size()) {
      out.push_back(text[i]);
      continue;
    }
    ++i;
    out.push_back(text[i] == 'n' ? '\n' : text[i]);
  }
  return out;
}

// The end of the labels that begin behind `text[0] == '{'`: the index of their '}'.
size_t EndOfLabels(std::string_view text) {
  bool quoted = false;
  for (size_t i = 1; i < text.size(); ++i) {
    if (quoted && text[i] == '\\') {
      ++i;
    } else if (text[i] == '"') {
      quoted = !quoted;
    } else if (!quoted && text[i] == '}') {
      return i;
    }
  }
  return std::string_view::npos;
}

bool EndsWith(std::string_view name, std::string_view suffix, std::string_view* family) {
  if (name.size() <= suffix.size() || !name.ends_with(suffix)) return false;
  *family = name.substr(0, name.size() - suffix.size());
  return true;
}

// name="value", name="value",
Status ParseLabels(std::string_view text, std::vector<std::pair<std::string, std::string>>& out) {
  const Status wrong(Code::kCorrupt, R"(expected labels such as {name="value",other="value"})");
  while (!(text = WithoutBlanks(text)).empty()) {
    const size_t equals = text.find('=');
    if (equals == std::string_view::npos) return wrong;
    std::string_view name = text.substr(0, equals);
    name = name.substr(0, std::min(name.find_last_not_of(" \t") + 1, name.size()));
    text = WithoutBlanks(text.substr(equals + 1));
    if (!names::IsTagKey(name) || text.empty() || text.front() != '"') return wrong;
    size_t end = 1;
    while (end < text.size() && text[end] != '"') end += text[end] == '\\' ? 2 : 1;
    if (end >= text.size()) return wrong;
    out.emplace_back(name, Unescape(text.substr(1, end - 1)));
    text = WithoutBlanks(text.substr(end + 1));
    if (text.empty()) break;
    if (text.front() != ',') return wrong;
    text.remove_prefix(1);
  }
  return {};
}

}  // namespace

Status Exposition::Wrong(std::string_view what) const {
  return {Code::kCorrupt, fmt::format("line {}: {}", line_, what)};
}

Result<std::optional<Sample>> Exposition::Next() {
  while (!rest_.empty()) {
    const size_t end = std::min(rest_.find('\n'), rest_.size());
    std::string_view line = rest_.substr(0, end);
    rest_.remove_prefix(std::min(end + 1, rest_.size()));
    ++line_;
    Status status;
    if (line.size() > kMaxLine) {
      status = Wrong(fmt::format("{} bytes; at most {} are read", line.size(), kMaxLine));
    }
    if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
    line = WithoutBlanks(line);
    if (line == "# EOF") rest_ = {};
    if (status.ok() && !line.empty() && line.front() == '#') {
      status = Comment(line);
    } else if (status.ok() && !line.empty()) {
      Result<Sample> sample = ParseSample(line);
      if (sample.ok()) return std::optional(*sample);
      status = sample.status();
    }
    if (!status.ok()) {
      rest_ = {};
      return status;
    }
  }
  return std::optional<Sample>();
}

// "# TYPE name type", "# HELP name text", "# UNIT name unit"; all others are remarks.
Status Exposition::Comment(std::string_view line) {
  line.remove_prefix(1);
  const std::string_view what = TakeWord(line);
  if (what != "TYPE" && what != "HELP" && what != "UNIT") return {};
  const std::string_view name = TakeWord(line);
  if (!names::IsMetricName(name))
    return Wrong(fmt::format("expected a metric's name after {}", what));
  if (families_.size() >= kMaxFamilies && !families_.contains(name)) {
    return Wrong(fmt::format("more than {} metrics", kMaxFamilies));
  }
  Family& family = families_[name];
  const std::string_view text = WithoutBlanks(line);
  if (what == "HELP") {
    family.help = text;
  } else if (what == "UNIT") {
    family.unit = text;
  } else if (text == "counter") {
    family.kind = Kind::kCounter;
  } else if (text == "histogram") {
    family.kind = Kind::kHistogram;
  } else if (text == "summary") {
    family.kind = Kind::kSummary;
  }
  return {};
}

Result<Sample> Exposition::ParseSample(std::string_view line) const {
  const size_t name_end = line.find_first_of("{ \t");
  if (name_end == std::string_view::npos || !names::IsMetricName(line.substr(0, name_end))) {
    return Wrong("expected a metric's name, labels and a value");
  }
  size_t series_end = name_end;
  if (line[name_end] == '{') {
    const size_t labels_end = EndOfLabels(line.substr(name_end));
    if (labels_end == std::string_view::npos) return Wrong("labels without an end");
    series_end += labels_end + 1;
  }
  std::string_view rest = line.substr(series_end);
  const std::optional<double> value = ParseValue(TakeWord(rest));
  if (!value) return Wrong("expected a number after the metric");
  return Sample{line.substr(0, series_end), *value};
}

// The family of a sample with this name, and the sample's type in it.
const Exposition::Family* Exposition::FamilyOf(std::string_view name, MetricType* type) const {
  *type = MetricType::kGauge;
  const auto find = [&](std::string_view family) {
    const auto found = families_.find(family);
    return found == families_.end() ? nullptr : &found->second;
  };
  if (const Family* family = find(name)) {
    if (family->kind == Kind::kCounter) *type = MetricType::kCounter;
    return family;
  }
  std::string_view stem;
  for (const std::string_view suffix : {"_total", "_bucket", "_count", "_sum"}) {
    if (!EndsWith(name, suffix, &stem)) continue;
    const Family* family = find(stem);
    if (family == nullptr) return nullptr;
    const bool counts = suffix == "_total" ? family->kind == Kind::kCounter
                        : suffix == "_bucket"
                            ? family->kind == Kind::kHistogram
                            : family->kind == Kind::kHistogram || family->kind == Kind::kSummary;
    if (counts) *type = MetricType::kCounter;
    return family;
  }
  return nullptr;
}

Result<Meaning> Exposition::Explain(const Sample& sample) const {
  Meaning meaning;
  const size_t name_end = std::min(sample.series.find('{'), sample.series.size());
  meaning.name = sample.series.substr(0, name_end);
  if (name_end < sample.series.size()) {
    const std::string_view labels = sample.series.substr(name_end + 1);
    const Status status = ParseLabels(labels.substr(0, labels.size() - 1), meaning.labels);
    if (!status.ok()) return Wrong(status.message());
  }
  if (const Family* family = FamilyOf(meaning.name, &meaning.type)) {
    meaning.help = Unescape(family->help);
    meaning.unit = family->unit;
  }
  return meaning;
}

}  // namespace sonde::join
