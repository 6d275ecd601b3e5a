// What OpenTSDB's HTTP API is asked: JSON bodies and the small languages inside them, as the types
// of series/query.h. Everything here comes from outside and is checked.
//
// Thread safety: functions without state.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/status.h"
#include "core/time.h"
#include "series/query.h"

namespace sonde::web {

struct OpenTsdbQuery {
  std::vector<QuerySpec> queries;
  bool milliseconds = false;  // keys of dps
  bool show_query = false;
};

inline constexpr size_t kMaxSubQueries = 64;

// The body of POST /api/query; `now` is the end where none is given and what "5m-ago" refers to.
Result<OpenTsdbQuery> ParseOpenTsdbQuery(std::string_view body, Nanos now);

// A time: seconds (up to 10 digits) or milliseconds, "now", "5m-ago", "2026/01/31-10:00:30" (UTC;
// the time of day may be shorter or absent).
Result<Nanos> ParseOpenTsdbTime(std::string_view text, Nanos now);

struct OpenTsdbLookup {
  std::string metric;                                     // "" : any
  std::vector<std::pair<std::string, std::string>> tags;  // "" or "*" matches everything
  uint64_t limit = 25;                                    // 0: all
};
// "metric{key=value,...}" and the JSON body of the same question.
Result<OpenTsdbLookup> ParseLookupExpression(std::string_view text);
Result<OpenTsdbLookup> ParseLookupBody(std::string_view body);

struct OpenTsdbSuggest {
  std::string type;  // metrics, tagk, tagv
  std::string prefix;
  uint64_t max = 25;
};
Result<OpenTsdbSuggest> ParseSuggestBody(std::string_view body);

// The filters of series/query.h by their name in the API.
struct FilterName {
  std::string_view name;
  TagFilter::Type type;
  std::string_view example;
  std::string_view description;
};
const std::vector<FilterName>& FilterNames();

}  // namespace sonde::web
