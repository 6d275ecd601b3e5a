// The small languages in the parameters of OpenTSDB's GET requests.
#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <limits>

#include "web/opentsdb/request.h"

namespace sonde::web {
namespace {

Status Bad(std::string_view text, std::string_view why) {
  return {Code::kInvalid,
          fmt::format("m: '{}': {}; expected aggregator:[rate[{{counter,max,reset}}]:][1m-avg:]"
                      "[explicit_tags:]metric[{{key=value,...}}[{{key=filter(...),...}}]]",
                      text.substr(0, 128), why)};
}

// The end of the first part of `text`: the first of `ends` outside brackets.
size_t EndOfPart(std::string_view text, std::string_view ends) {
  int depth = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '(') ++depth;
    if (text[i] == ')') --depth;
    if (depth <= 0 && ends.find(text[i]) != std::string_view::npos) return i;
  }
  return text.size();
}

bool ReadWhole(std::string_view text, double& out) {
  if (text.empty()) return true;
  int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  out = static_cast<double>(number);
  return error == std::errc() && end == text.data() + text.size();
}

// "rate", "rate{counter}", "rate{dropcounter,MAX,RESET}"
bool ReadRate(std::string_view text, QuerySpec& spec) {
  spec.rate = true;
  text.remove_prefix(std::string_view("rate").size());
  if (text.empty()) return true;
  if (text.size() < 2 || text.front() != '{' || text.back() != '}') return false;
  text = text.substr(1, text.size() - 2);
  std::string_view parts[3];
  for (size_t i = 0; i < 3; ++i) {
    const size_t comma = text.find(',');
    parts[i] = text.substr(0, comma);
    if (comma == std::string_view::npos) {
      text = "";
      break;
    }
    text.remove_prefix(comma + 1);
    if (i == 2) return false;
  }
  spec.rate_options.counter = parts[0].ends_with("counter");
  spec.rate_options.drop_resets = parts[0] == "dropcounter";
  return ReadWhole(parts[1], spec.rate_options.counter_max) &&
         ReadWhole(parts[2], spec.rate_options.reset_value);
}

// "key=value,..." of one pair of braces.
Status ReadFilters(std::string_view m, std::string_view list, bool group_by, QuerySpec& spec) {
  while (!list.empty()) {
    const size_t end = EndOfPart(list, ",");
    const std::string_view pair = list.substr(0, end);
    const size_t eq = pair.find('=');
    if (eq == std::string_view::npos || eq == 0 || eq + 1 == pair.size()) {
      return Bad(m, fmt::format("'{}' is not key=value", pair.substr(0, 64)));
    }
    if (spec.filters.size() == kMaxFilters) return Bad(m, "it has too many filters");
    spec.filters.push_back(FilterOfTag(pair.substr(0, eq), pair.substr(eq + 1)));
    spec.filters.back().group_by = group_by;
    list.remove_prefix(std::min(end + 1, list.size()));
  }
  return {};
}

// "metric{...}{...}"
Status ReadMetric(std::string_view m, std::string_view text, QuerySpec& spec) {
  const size_t brace = text.find('{');
  spec.metric = text.substr(0, brace);
  if (spec.metric.empty()) return Bad(m, "it names no metric");
  std::string_view rest = brace == std::string_view::npos ? "" : text.substr(brace);
  for (const bool group_by : {true, false}) {
    if (rest.empty()) break;
    const size_t close = EndOfPart(rest, "}");
    if (rest.front() != '{' || close == rest.size()) return Bad(m, "braces do not match");
    SONDE_RETURN_IF_ERROR(ReadFilters(m, rest.substr(1, close - 1), group_by, spec));
    rest.remove_prefix(close + 1);
  }
  return rest.empty() ? Status() : Bad(m, "something follows the last brace");
}

bool IsOption(std::string_view part, std::string_view name) {
  return part == name || (part.starts_with(name) && part.substr(name.size()).starts_with('{'));
}

}  // namespace

Result<QuerySpec> ParseQueryExpression(std::string_view m, bool calendar) {
  QuerySpec spec;
  size_t colon = m.find(':');
  if (colon == std::string_view::npos) return Bad(m, "it names no aggregator");
  const Result<Aggregator> aggregator = ParseAggregator(m.substr(0, colon));
  if (!aggregator.ok()) return aggregator.status();
  spec.aggregator = *aggregator;
  std::string_view rest = m.substr(colon + 1);
  // A part that is no option is the metric, whose name may have a colon.
  for (; (colon = rest.find(':')) != std::string_view::npos; rest.remove_prefix(colon + 1)) {
    const std::string_view part = rest.substr(0, colon);
    if (IsOption(part, "rate")) {
      if (!ReadRate(part, spec)) return Bad(m, "its rate is not rate{counter,max,reset}");
    } else if (!part.empty() && part.front() >= '0' && part.front() <= '9') {
      const Result<Downsample> downsample = ParseDownsample(part, calendar);
      if (!downsample.ok()) return downsample.status();
      spec.downsample = *downsample;
    } else if (part == "explicit_tags") {
      spec.explicit_tags = true;
    } else {
      break;
    }
  }
  if (const Status read = ReadMetric(m, rest, spec); !read.ok()) return read;
  return spec;
}

Result<OpenTsdbLookup> ParseLookupExpression(std::string_view text) {
  OpenTsdbLookup lookup;
  const size_t brace = text.find('{');
  lookup.metric = text.substr(0, brace);
  if (brace == std::string_view::npos) return lookup;
  if (text.back() != '}') return Status(Code::kInvalid, "m: a '}' is missing at the end");
  std::string_view list = text.substr(brace + 1, text.size() - brace - 2);
  while (!list.empty()) {
    const size_t end = list.find(',');
    const std::string_view pair = list.substr(0, end);
    const size_t eq = pair.find('=');
    if (eq == std::string_view::npos || lookup.tags.size() == kMaxFilters) {
      return Status(Code::kInvalid, fmt::format("m: '{}' is not key=value, or there are more than "
                                                "{}",
                                                pair, kMaxFilters));
    }
    lookup.tags.emplace_back(pair.substr(0, eq), pair.substr(eq + 1));
    if (end == std::string_view::npos) break;
    list.remove_prefix(end + 1);
  }
  return lookup;
}

}  // namespace sonde::web
