#include "web/opentsdb_request.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json.hpp>
#include <charconv>
#include <cmath>
#include <ctime>
#include <exception>
#include <new>

namespace sonde::web {
namespace {

namespace json = boost::json;

constexpr Nanos kMaxTime = Nanos{9'000'000'000} * kSecond;  // a Nanos holds it

std::string_view View(const json::string& text) { return {text.data(), text.size()}; }
std::string_view View(json::string_view text) { return {text.data(), text.size()}; }

Status Wrong(std::string_view key, std::string_view expected) {
  return {Code::kInvalid, fmt::format("{}: expected {}", key, expected)};
}

constexpr size_t kMaxText = 4096;

Status ReadText(const json::value& value, std::string_view key, std::string& out,
                size_t limit = kMaxText) {
  const json::string* text = value.if_string();
  if (text == nullptr || text->size() > limit) {
    return Wrong(key, fmt::format("a text of at most {} bytes", limit));
  }
  out = View(*text);
  return {};
}

Status ReadBool(const json::value& value, std::string_view key, bool& out) {
  if (!value.is_bool()) return Wrong(key, "true or false");
  out = value.get_bool();
  return {};
}

// Numbers arrive as texts from some versions of Grafana.
Status ReadNumber(const json::value& value, std::string_view key, double& out) {
  if (const json::string* text = value.if_string()) {
    const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), out);
    if (error == std::errc() && end == text->data() + text->size() && std::isfinite(out)) return {};
  } else if (value.is_number()) {
    out = value.to_number<double>();
    return {};
  }
  return Wrong(key, "a number");
}

Status ReadCount(const json::value& value, std::string_view key, uint64_t& out) {
  json::error_code error;
  out = value.is_int64() || value.is_uint64() ? value.to_number<uint64_t>(error) : 0;
  if (error || !(value.is_int64() || value.is_uint64())) return Wrong(key, "a whole number");
  return {};
}

Status ReadTime(const json::value& value, std::string_view key, Nanos now, Nanos& out) {
  std::string text;
  if (value.is_int64() || value.is_uint64()) {
    text = std::to_string(value.to_number<int64_t>());
  } else if (value.is_double()) {
    // Seconds with decimals, or milliseconds that went through a float.
    const double number = value.get_double();
    if (!(number >= 0 && number < 1e15)) return Wrong(key, "a time");
    out = number < 1e10 ? static_cast<Nanos>(std::llround(number * 1e3)) * kMillisecond
                        : static_cast<Nanos>(number) * kMillisecond;
    return {};
  } else {
    SONDE_RETURN_IF_ERROR(ReadText(value, key, text));
  }
  const Result<Nanos> time = ParseOpenTsdbTime(text, now);
  if (!time.ok()) return time.status().Within(key);
  out = *time;
  return {};
}

const FilterName* FindFilter(std::string_view name) {
  for (const FilterName& filter : FilterNames()) {
    if (filter.name == name) return &filter;
  }
  return nullptr;
}

// `tags` is the older form: "*", "web*", "a|b", or a filter's name with its pattern in brackets.
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

Status ReadTags(const json::value& value, std::vector<TagFilter>& out) {
  out.clear();
  if (value.is_null()) return {};
  const json::object* object = value.if_object();
  if (object == nullptr || object->size() > kMaxFilters) return Wrong("tags", "an object of texts");
  for (const auto& [key, pattern] : *object) {
    std::string text;
    SONDE_RETURN_IF_ERROR(ReadText(pattern, "tags", text, kMaxPatternLength));
    out.push_back(FilterOfTag(View(key), text));
  }
  return {};
}

Status ReadFilter(const json::object& object, TagFilter& filter) {
  bool typed = false;
  for (const auto& [key, value] : object) {
    if (View(key) == "type") {
      std::string name;
      SONDE_RETURN_IF_ERROR(ReadText(value, "filters.type", name));
      const FilterName* named = FindFilter(name);
      if (named == nullptr) {
        return {Code::kInvalid, fmt::format("there is no filter '{}'; /api/config/filters lists "
                                            "them",
                                            name)};
      }
      filter.type = named->type;
      typed = true;
    } else if (View(key) == "tagk") {
      SONDE_RETURN_IF_ERROR(ReadText(value, "filters.tagk", filter.key));
    } else if (View(key) == "filter") {
      SONDE_RETURN_IF_ERROR(ReadText(value, "filters.filter", filter.pattern, kMaxPatternLength));
    } else if (View(key) == "groupBy") {
      SONDE_RETURN_IF_ERROR(ReadBool(value, "filters.groupBy", filter.group_by));
    }
  }
  if (!typed || filter.key.empty()) return Wrong("filters", "type and tagk in each");
  return {};
}

Status ReadFilters(const json::value& value, std::vector<TagFilter>& out) {
  out.clear();
  if (value.is_null()) return {};
  const json::array* array = value.if_array();
  if (array == nullptr || array->size() > kMaxFilters) {
    return Wrong("filters", fmt::format("a list of at most {}", kMaxFilters));
  }
  for (const json::value& item : *array) {
    const json::object* object = item.if_object();
    if (object == nullptr) return Wrong("filters", "objects");
    TagFilter filter;
    SONDE_RETURN_IF_ERROR(ReadFilter(*object, filter));
    out.push_back(std::move(filter));
  }
  return {};
}

Status ReadRateOptions(const json::value& value, RateOptions& out) {
  if (value.is_null()) return {};
  const json::object* object = value.if_object();
  if (object == nullptr) return Wrong("rateOptions", "an object");
  for (const auto& [name, option] : *object) {
    const std::string_view key = View(name);
    if (option.is_null()) continue;
    if (key == "counter") {
      SONDE_RETURN_IF_ERROR(ReadBool(option, "rateOptions.counter", out.counter));
    } else if (key == "counterMax") {
      SONDE_RETURN_IF_ERROR(ReadNumber(option, "rateOptions.counterMax", out.counter_max));
    } else if (key == "resetValue") {
      SONDE_RETURN_IF_ERROR(ReadNumber(option, "rateOptions.resetValue", out.reset_value));
    } else if (key == "dropResets") {
      SONDE_RETURN_IF_ERROR(ReadBool(option, "rateOptions.dropResets", out.drop_resets));
    } else {
      return {Code::kInvalid, fmt::format("rateOptions has no field '{}'", key)};
    }
  }
  return {};
}

// One field of a sub-query; unknown ones are passed over, as OpenTSDB does.
Status ReadField(std::string_view key, const json::value& value, QuerySpec& spec) {
  if (key == "metric") return ReadText(value, "metric", spec.metric);
  if (key == "filters") return ReadFilters(value, spec.filters);
  if (key == "tags") return ReadTags(value, spec.filters);
  if (key == "rateOptions") return ReadRateOptions(value, spec.rate_options);
  if (value.is_null()) return {};
  if (key == "rate") return ReadBool(value, "rate", spec.rate);
  if (key == "explicitTags") return ReadBool(value, "explicitTags", spec.explicit_tags);
  std::string text;
  if (key == "aggregator") {
    SONDE_RETURN_IF_ERROR(ReadText(value, key, text));
    const Result<Aggregator> aggregator = ParseAggregator(text);
    if (!aggregator.ok()) return aggregator.status();
    spec.aggregator = *aggregator;
  } else if (key == "downsample") {
    SONDE_RETURN_IF_ERROR(ReadText(value, key, text));
    if (text.empty()) return {};
    const Result<Downsample> downsample = ParseDownsample(text);
    if (!downsample.ok()) return downsample.status();
    spec.downsample = *downsample;
  }
  return {};
}

Result<QuerySpec> ReadSubQuery(const json::value& value) {
  const json::object* object = value.if_object();
  if (object == nullptr) return Wrong("queries", "objects");
  QuerySpec spec;
  bool aggregated = false;
  // In the order of the text: of filters and tags the later one counts.
  for (const auto& [key, field] : *object) {
    SONDE_RETURN_IF_ERROR(ReadField(View(key), field, spec));
    aggregated = aggregated || (View(key) == "aggregator" && !field.is_null());
  }
  if (spec.metric.empty()) return Status(Code::kInvalid, "a query without metric");
  if (!aggregated) return Status(Code::kInvalid, "a query without aggregator");
  return spec;
}

Result<OpenTsdbQuery> ReadQuery(const json::object& object, Nanos now) {
  OpenTsdbQuery query;
  Nanos start = -1, end = now;
  const json::array* list = nullptr;
  for (const auto& [name, value] : object) {
    const std::string_view key = View(name);
    if (key == "start") SONDE_RETURN_IF_ERROR(ReadTime(value, key, now, start));
    if (key == "end" && !value.is_null()) SONDE_RETURN_IF_ERROR(ReadTime(value, key, now, end));
    if (key == "msResolution") SONDE_RETURN_IF_ERROR(ReadBool(value, key, query.milliseconds));
    if (key == "showQuery") SONDE_RETURN_IF_ERROR(ReadBool(value, key, query.show_query));
    if (key == "queries") list = value.if_array();
  }
  if (start < 0) return Status(Code::kInvalid, "start is missing");
  if (end <= start) return Status(Code::kInvalid, "end must lie after start");
  if (list == nullptr || list->empty() || list->size() > kMaxSubQueries) {
    return Wrong("queries", fmt::format("a list of 1 to {}", kMaxSubQueries));
  }
  for (const json::value& item : *list) {
    Result<QuerySpec> spec = ReadSubQuery(item);
    if (!spec.ok()) return spec.status();
    spec->start = start;
    spec->end = end;
    SONDE_RETURN_IF_ERROR(CheckQuery(*spec));
    query.queries.push_back(*std::move(spec));
  }
  return query;
}

Result<OpenTsdbLookup> ReadLookup(const json::object& object) {
  OpenTsdbLookup lookup;
  for (const auto& [name, value] : object) {
    if (View(name) == "metric") SONDE_RETURN_IF_ERROR(ReadText(value, "metric", lookup.metric));
    if (View(name) == "limit") SONDE_RETURN_IF_ERROR(ReadCount(value, "limit", lookup.limit));
    if (View(name) != "tags") continue;
    const json::array* tags = value.if_array();
    if (tags == nullptr || tags->size() > kMaxFilters) return Wrong("tags", "a list of objects");
    for (const json::value& item : *tags) {
      const json::object* tag = item.if_object();
      if (tag == nullptr) return Wrong("tags", "a list of objects");
      auto& [key, pattern] = lookup.tags.emplace_back();
      if (const json::value* k = tag->if_contains("key")) {
        SONDE_RETURN_IF_ERROR(ReadText(*k, "tags.key", key));
      }
      if (const json::value* v = tag->if_contains("value")) {
        SONDE_RETURN_IF_ERROR(ReadText(*v, "tags.value", pattern));
      }
    }
  }
  return lookup;
}

Result<OpenTsdbSuggest> ReadSuggest(const json::object& object) {
  OpenTsdbSuggest suggest;
  for (const auto& [name, value] : object) {
    if (View(name) == "type") SONDE_RETURN_IF_ERROR(ReadText(value, "type", suggest.type));
    if (View(name) == "q") SONDE_RETURN_IF_ERROR(ReadText(value, "q", suggest.prefix));
    if (View(name) == "max") SONDE_RETURN_IF_ERROR(ReadCount(value, "max", suggest.max));
  }
  return suggest;
}

// Parses a body that must be an object and hands it on; no exception leaves it.
template <typename T, typename Read>
Result<T> WithObject(std::string_view body, Read read) try {
  json::error_code error;
  json::monotonic_resource arena;
  const json::value value = json::parse({body.data(), body.size()}, error, &arena);
  if (error) return Status(Code::kInvalid, "the body is no JSON: " + error.message());
  const json::object* object = value.if_object();
  if (object == nullptr) return Status(Code::kInvalid, "the body must be a JSON object");
  return read(*object);
} catch (const std::bad_alloc&) {
  return Status(Code::kLimit, "read the body: out of memory");
} catch (const std::exception& e) {
  return Status(Code::kInvalid, std::string("read the body: ") + e.what());
}

bool AllDigits(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

Result<Nanos> BadTime(std::string_view text) {
  return Status(Code::kInvalid,
                fmt::format("'{}' is no time; expected seconds or milliseconds since 1970, now, "
                            "5m-ago or 2026/01/31-10:00:30",
                            text));
}

// The unit of a relative time as OpenTSDB has it: a year is 365 days, a month 30.
Nanos UnitOf(std::string_view unit) {
  constexpr Nanos kDay = 86400 * kSecond;
  if (unit == "ms") return kMillisecond;
  if (unit == "s") return kSecond;
  if (unit == "m") return 60 * kSecond;
  if (unit == "h") return 3600 * kSecond;
  if (unit == "d") return kDay;
  if (unit == "w") return 7 * kDay;
  if (unit == "n") return 30 * kDay;
  if (unit == "y") return 365 * kDay;
  return 0;
}

Result<Nanos> ParseAgo(std::string_view text, Nanos now) {
  const std::string_view span = text.substr(0, text.size() - 4);  // without "-ago"
  int64_t count = 0;
  const auto [end, error] = std::from_chars(span.data(), span.data() + span.size(), count);
  const Nanos unit = UnitOf(span.substr(static_cast<size_t>(end - span.data())));
  if (error != std::errc() || count < 0 || unit == 0) return BadTime(text);
  if (count > now / unit) return Nanos{0};
  return now - count * unit;
}

Result<Nanos> ParseDate(std::string_view text) {
  std::string copy(text);
  std::replace(copy.begin(), copy.end(), '-', ' ');
  for (const char* format : {"%Y/%m/%d %H:%M:%S", "%Y/%m/%d %H:%M", "%Y/%m/%d"}) {
    std::tm parts{};
    const char* end = strptime(copy.c_str(), format, &parts);
    if (end == nullptr || *end != '\0') continue;
    const int64_t seconds = timegm(&parts);
    if (seconds < 0 || seconds > kMaxTime / kSecond) break;
    return seconds * kSecond;
  }
  return BadTime(text);
}

Result<Nanos> ParseNumericTime(std::string_view digits, std::string_view text, bool milliseconds) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (error != std::errc()) return BadTime(text);
  const Nanos unit = milliseconds || digits.size() > 10 ? kMillisecond : kSecond;
  if (value > kMaxTime / unit) return BadTime(text);
  return value * unit;
}

}  // namespace

Result<Nanos> ParseOpenTsdbTime(std::string_view text, Nanos now) {
  if (text == "now") return now;
  if (text.ends_with("-ago")) return ParseAgo(text, now);
  if (text.find('/') != std::string_view::npos) return ParseDate(text);
  if (text.ends_with("ms") && AllDigits(text.substr(0, text.size() - 2))) {
    return ParseNumericTime(text.substr(0, text.size() - 2), text, true);
  }
  if (AllDigits(text)) return ParseNumericTime(text, text, false);
  // "1700000000.123"
  const size_t dot = text.find('.');
  if (dot == std::string_view::npos) return BadTime(text);
  const std::string_view decimals = text.substr(dot + 1);
  if (dot > 10 || decimals.size() > 3 || !AllDigits(text.substr(0, dot)) || !AllDigits(decimals)) {
    return BadTime(text);
  }
  std::string thousandths(decimals);
  thousandths.resize(3, '0');
  const Result<Nanos> whole = ParseNumericTime(text.substr(0, dot), text, false);
  if (!whole.ok()) return whole;
  return *whole + std::stoll(thousandths) * kMillisecond;
}

Result<OpenTsdbQuery> ParseOpenTsdbQuery(std::string_view body, Nanos now) {
  return WithObject<OpenTsdbQuery>(
      body, [now](const json::object& object) { return ReadQuery(object, now); });
}

Result<OpenTsdbLookup> ParseLookupBody(std::string_view body) {
  return WithObject<OpenTsdbLookup>(body, ReadLookup);
}

Result<OpenTsdbSuggest> ParseSuggestBody(std::string_view body) {
  return WithObject<OpenTsdbSuggest>(body, ReadSuggest);
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
  };
  return names;
}

}  // namespace sonde::web
