// Requests of OpenTSDB's HTTP API: JSON bodies and the small languages inside them, as the types of
// series/query/query.h. Everything here comes from outside and is checked.
//
// Thread safety: functions without state.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/status.h"
#include "core/time.h"
#include "core/time_zone.h"
#include "series/query/query.h"
#include "web/http/http.h"
#include "web/source/notes.h"
#include "web/source/point_sink.h"

namespace sonde::web {

struct OpenTsdbQuery {
  std::vector<QuerySpec> queries;  // all different
  Nanos start = 0;
  Nanos end = 0;
  bool milliseconds = false;  // keys of dps
  bool show_query = false;
  bool no_annotations = false;
  bool global_annotations = false;
};

inline constexpr size_t kMaxSubQueries = 64;

// The body of POST /api/query; `now` is the default end, and the time to which "5m-ago" refers.
Result<OpenTsdbQuery> ParseOpenTsdbQuery(std::string_view body, Nanos now);
// The same from the parameters of GET /api/query.
Result<OpenTsdbQuery> ParseOpenTsdbQuery(const Request& request, Nanos now);
// One of its m: "sum:rate{counter}:1m-avg:explicit_tags:metric{host=*}{task=regexp(1.)}"; without
// times, and with calendar intervals not resolved yet; `calendar` makes all downsampling use the
// calendar.
Result<QuerySpec> ParseQueryExpression(std::string_view m, bool calendar = false);

// A time: seconds (up to 10 digits) or milliseconds, "now", "5m-ago", "2026/01/31-10:00:30" (as
// clocks of `zone` show it; the time of day may be shorter or absent).
Result<Nanos> ParseOpenTsdbTime(std::string_view text, Nanos now, const TimeZone& zone = {});
// The same, and "90m" for so long ago.
Result<Nanos> ParseTimeOrSpan(std::string_view text, Nanos now);

// Reads the points of a body of /api/put, an object or a list, and stores each of them, also those
// after a wrong point. Fails only if the body as a whole is wrong.
struct PutError {
  std::string datapoint;  // JSON
  std::string message;
};
struct PutSummary {
  size_t success = 0;
  size_t failed = 0;
  std::vector<PutError> errors;  // with `details` only
};
Result<PutSummary> PutBody(std::string_view body, bool details,
                           const std::function<Status(PutPoint)>& put);

// The body of POST /api/annotation.
Result<Note> ParseAnnotationBody(std::string_view body, Nanos now);

struct OpenTsdbLookup {
  std::string metric;                                     // "" : any
  std::vector<std::pair<std::string, std::string>> tags;  // "" or "*" matches everything
  uint64_t limit = 25;                                    // 0: all
  uint64_t start_index = 0;                               // this many are passed over
};
// "metric{key=value,...}" and the JSON body of the same request.
Result<OpenTsdbLookup> ParseLookupExpression(std::string_view text);
Result<OpenTsdbLookup> ParseLookupBody(std::string_view body);

struct OpenTsdbSuggest {
  std::string type;  // metrics, tagk, tagv
  std::string prefix;
  uint64_t max = 25;
};
Result<OpenTsdbSuggest> ParseSuggestBody(std::string_view body);

// The filters of series/query/query.h by their name in the API.
struct FilterName {
  std::string_view name;
  TagFilter::Type type;
  std::string_view example;
  std::string_view description;
};
const std::vector<FilterName>& FilterNames();
const FilterName* FindFilter(std::string_view name);
std::string_view FilterTypeName(TagFilter::Type type);
// As ParseDownsample reads it.
std::string DownsampleText(const Downsample& how);
// The older form of a filter, which groups: "*", "web*", "a|b", or a filter's name with its pattern
// in brackets.
TagFilter FilterOfTag(std::string_view key, std::string_view value);

}  // namespace sonde::web
