// Filters by their names in OpenTSDB's requests.
#include <fmt/core.h>

#include "web/opentsdb/request.h"

namespace sonde::web {

const FilterName* FindFilter(std::string_view name) {
  for (const FilterName& filter : FilterNames()) {
    if (filter.name == name) return &filter;
  }
  return nullptr;
}

std::string_view FilterTypeName(TagFilter::Type type) {
  for (const FilterName& filter : FilterNames()) {
    if (filter.type == type) return filter.name;
  }
  return "";
}

std::string DownsampleText(const Downsample& how) {
  static constexpr const char* kFills[] = {"", "-null", "-nan", "-zero"};
  static constexpr const char* kUnits[] = {"ms", "s", "m", "h", "d", "w", "n", "y"};
  const Calendar* calendar = how.calendar.get();
  const std::string interval =
      calendar != nullptr
          ? fmt::format("{}{}c", calendar->count, kUnits[static_cast<size_t>(calendar->unit)])
      : how.interval == 0           ? "0all"
      : how.interval % kSecond == 0 ? fmt::format("{}s", how.interval / kSecond)
                                    : fmt::format("{}ms", how.interval / kMillisecond);
  return fmt::format("{}-{}{}", interval, ToString(how.function),
                     kFills[static_cast<size_t>(how.fill)]);
}

TagFilter FilterOfTag(std::string_view key, std::string_view value) {
  TagFilter filter;
  filter.key = key;
  filter.group_by = true;
  filter.pattern = value;
  const size_t bracket = value.find('(');
  if (bracket != std::string_view::npos && value.back() == ')') {
    if (const FilterName* named = FindFilter(value.substr(0, bracket))) {
      filter.type = named->type;
      filter.pattern = value.substr(bracket + 1, value.size() - bracket - 2);
      return filter;
    }
  }
  if (value == "*") {
    filter.type = TagFilter::Type::kWildcard;
  } else if (value.find('*') != std::string_view::npos) {
    filter.type = TagFilter::Type::kIWildcard;
  }
  return filter;
}

const std::vector<FilterName>& FilterNames() {
  using Type = TagFilter::Type;
  static const std::vector<FilterName> names = {
      {"literal_or", Type::kLiteralOr, "host=literal_or(n1|n2)", "One of these values exactly."},
      {"iliteral_or", Type::kILiteralOr, "host=iliteral_or(N1|n2)",
       "One of these values, whatever the case."},
      {"not_literal_or", Type::kNotLiteralOr, "host=not_literal_or(n1)", "None of these values."},
      {"not_iliteral_or", Type::kNotILiteralOr, "host=not_iliteral_or(N1)",
       "None of these values, whatever the case."},
      {"wildcard", Type::kWildcard, "host=wildcard(n*)", "A pattern where * is any text."},
      {"iwildcard", Type::kIWildcard, "host=iwildcard(N*)",
       "A pattern where * is any text, whatever the case."},
      {"regexp", Type::kRegexp, "host=regexp(n[1-4])",
       "A regular expression that matches anywhere in the value."},
      {"not_key", Type::kNotKey, "host=not_key()", "The series does not have the tag."},
  };
  return names;
}

}  // namespace sonde::web
