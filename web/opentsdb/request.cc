#include "web/opentsdb/request.h"

#include <fmt/core.h>

#include <cmath>
#include <set>
#include <utility>

#include "web/http/json_input.h"

namespace sonde::web {
namespace {

namespace json = boost::json;

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

Status NoTsuids() {
  return {Code::kInvalid,
          "queries by tsuid are not supported; name the metric and filter its tags"};
}

// Whether a sub-query's field asks for a histogram's numbers. Those of the metric itself would be
// taken for them.
bool AsksForHistogram(std::string_view key, const json::value& value) {
  if (key == "percentiles") return !(value.is_array() && value.get_array().empty());
  return key == "showHistogramBuckets" && value != json::value(false);
}

// One field of a sub-query; unknown ones are passed over, as OpenTSDB does.
Status ReadField(std::string_view key, const json::value& value, bool calendar, QuerySpec& spec) {
  if (key == "metric") return ReadText(value, "metric", spec.metric);
  if (key == "filters") return ReadFilters(value, spec.filters);
  if (key == "tags") return ReadTags(value, spec.filters);
  if (key == "rateOptions") return ReadRateOptions(value, spec.rate_options);
  if (value.is_null()) return {};
  if (key == "tsuids" && !(value.is_array() && value.get_array().empty())) return NoTsuids();
  if (AsksForHistogram(key, value)) {
    return {
        Code::kInvalid,
        fmt::format("{}: there are no histograms; of nodes and tasks the aggregators p50 to p999 "
                    "give percentiles",
                    key)};
  }
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
    const Result<Downsample> downsample = ParseDownsample(text, calendar);
    if (!downsample.ok()) return downsample.status();
    spec.downsample = *downsample;
  }
  return {};
}

Status NoDeleting() {
  return {Code::kInvalid, "deleting data is not enabled: nothing is deleted by a query"};
}

// The zone and the calendar with which dates are read.
struct Place {
  std::string name;  // of the zone
  TimeZone zone;
  bool calendar = false;  // all downsampling is by the calendar, even if it does not say so
};

Status SetZone(std::string_view name, Place& place) {
  Result<TimeZone> zone = TimeZone::Load(name);
  if (!zone.ok()) return zone.status().Within("timezone");
  place.name = name;
  place.zone = *std::move(zone);
  return {};
}

// Finishes a query of either form.
Status FinishQuery(const Place& place, OpenTsdbQuery& query) {
  if (query.end <= query.start) {
    return {Code::kInvalid, fmt::format("end time {} must be greater than the start time {} (ms)",
                                        query.end / kMillisecond, query.start / kMillisecond)};
  }
  // Equal queries are asked once.
  std::set<std::string> known;
  std::vector<QuerySpec> queries;
  for (QuerySpec& spec : query.queries) {
    spec.start = query.start;
    spec.end = query.end;
    if (spec.downsample) {
      SONDE_RETURN_IF_ERROR(
          ResolveCalendar(place.zone, place.name, spec.start, spec.end, *spec.downsample));
    }
    SONDE_RETURN_IF_ERROR(CheckQuery(spec));
    std::string bytes;
    EncodeQuery(spec, bytes);
    if (known.insert(std::move(bytes)).second) queries.push_back(std::move(spec));
  }
  query.queries = std::move(queries);
  return {};
}

Result<QuerySpec> ReadSubQuery(const json::value& value, bool calendar) {
  const json::object* object = value.if_object();
  if (object == nullptr) return Wrong("queries", "objects");
  QuerySpec spec;
  bool aggregated = false;
  // In the order of the text: the later one of filters and tags counts.
  for (const auto& [key, field] : *object) {
    SONDE_RETURN_IF_ERROR(ReadField(View(key), field, calendar, spec));
    aggregated = aggregated || (View(key) == "aggregator" && !field.is_null());
  }
  if (spec.metric.empty()) return Status(Code::kInvalid, "a query without metric");
  if (!aggregated) return Status(Code::kInvalid, "a query without aggregator");
  return spec;
}

// `timezone` and `useCalendar`, which change the meaning of other fields.
Status ReadPlace(const json::object& object, Place& place) {
  if (const json::value* zone = object.if_contains("timezone");
      zone != nullptr && !zone->is_null()) {
    std::string name;
    SONDE_RETURN_IF_ERROR(ReadText(*zone, "timezone", name));
    SONDE_RETURN_IF_ERROR(SetZone(name, place));
  }
  const json::value* calendar = object.if_contains("useCalendar");
  if (calendar == nullptr || calendar->is_null()) return {};
  return ReadBool(*calendar, "useCalendar", place.calendar);
}

// The fields besides `queries`; unknown ones are passed over.
Status ReadOptions(const json::object& object, Nanos now, const TimeZone& zone,
                   OpenTsdbQuery& query) {
  bool started = false;
  query.end = now;
  bool remove = false;
  for (const auto& [name, value] : object) {
    const std::string_view key = View(name);
    if (value.is_null()) continue;
    Status read;
    if (key == "start") {
      started = true;
      read = ReadTime(value, key, now, query.start, zone);
    } else if (key == "end") {
      const json::string* text = value.if_string();
      if (text == nullptr || !text->empty()) {
        read = ReadTime(value, key, now, query.end, zone);
      }
    } else if (key == "msResolution") {
      read = ReadBool(value, key, query.milliseconds);
    } else if (key == "showQuery") {
      read = ReadBool(value, key, query.show_query);
    } else if (key == "noAnnotations") {
      read = ReadBool(value, key, query.no_annotations);
    } else if (key == "globalAnnotations") {
      read = ReadBool(value, key, query.global_annotations);
    } else if (key == "delete") {
      read = ReadBool(value, key, remove);
    }
    if (!read.ok()) return read;
  }
  if (remove) return NoDeleting();
  return started ? Status() : Status(Code::kInvalid, "start is missing");
}

Result<OpenTsdbQuery> ReadQuery(const json::object& object, Nanos now) {
  OpenTsdbQuery query;
  Place place;
  SONDE_RETURN_IF_ERROR(ReadPlace(object, place));
  SONDE_RETURN_IF_ERROR(ReadOptions(object, now, place.zone, query));
  const json::value* queries = object.if_contains("queries");
  const json::array* list = queries == nullptr ? nullptr : queries->if_array();
  if (list == nullptr || list->empty() || list->size() > kMaxSubQueries) {
    return Wrong("queries", fmt::format("a list of 1 to {}", kMaxSubQueries));
  }
  for (const json::value& item : *list) {
    Result<QuerySpec> spec = ReadSubQuery(item, place.calendar);
    if (!spec.ok()) return spec.status();
    query.queries.push_back(*std::move(spec));
  }
  if (const Status bad = FinishQuery(place, query); !bad.ok()) return bad;
  return query;
}

Result<OpenTsdbLookup> ReadLookup(const json::object& object) {
  OpenTsdbLookup lookup;
  for (const auto& [name, value] : object) {
    if (View(name) == "metric") SONDE_RETURN_IF_ERROR(ReadText(value, "metric", lookup.metric));
    if (View(name) == "limit") SONDE_RETURN_IF_ERROR(ReadCount(value, "limit", lookup.limit));
    if (View(name) == "startIndex") {
      SONDE_RETURN_IF_ERROR(ReadCount(value, "startIndex", lookup.start_index));
    }
    bool meta = false;  // names are looked up whether or not there were meta data
    if (View(name) == "useMeta") SONDE_RETURN_IF_ERROR(ReadBool(value, "useMeta", meta));
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

}  // namespace

Result<OpenTsdbQuery> ParseOpenTsdbQuery(std::string_view body, Nanos now) {
  return WithObject<OpenTsdbQuery>(
      body, [now](const json::object& object) { return ReadQuery(object, now); });
}

Result<OpenTsdbQuery> ParseOpenTsdbQuery(const Request& request, Nanos now) {
  const auto flag = [&](std::string_view name) {
    const std::string* text = request.Param(name);
    return text != nullptr && *text != "false";
  };
  if (flag("delete")) return NoDeleting();
  if (request.Param("tsuid") != nullptr) return NoTsuids();
  OpenTsdbQuery query;
  const std::string* start = request.Param("start");
  if (start == nullptr) return Status(Code::kInvalid, "start is missing");
  Place place;
  if (const std::string* zone = request.Param("timezone")) {
    SONDE_RETURN_IF_ERROR(SetZone(*zone, place));
  }
  place.calendar = flag("use_calendar");
  const Result<Nanos> first = ParseOpenTsdbTime(*start, now, place.zone);
  if (!first.ok()) return first.status().Within("start");
  query.start = *first;
  query.end = now;
  if (const std::string* end = request.Param("end"); end != nullptr && !end->empty()) {
    const Result<Nanos> last = ParseOpenTsdbTime(*end, now, place.zone);
    if (!last.ok()) return last.status().Within("end");
    query.end = *last;
  }
  query.milliseconds = flag("ms");
  query.show_query = flag("show_query");
  query.no_annotations = flag("no_annotations");
  query.global_annotations = flag("global_annotations");
  for (const auto& [name, m] : request.params) {
    if (name != "m") continue;
    if (query.queries.size() == kMaxSubQueries) {
      return Status(Code::kInvalid, fmt::format("more than {} parameters m", kMaxSubQueries));
    }
    Result<QuerySpec> spec = ParseQueryExpression(m, place.calendar);
    if (!spec.ok()) return spec.status();
    query.queries.push_back(*std::move(spec));
  }
  if (query.queries.empty()) return Status(Code::kInvalid, "parameter m is missing");
  if (const Status bad = FinishQuery(place, query); !bad.ok()) return bad;
  return query;
}

Result<OpenTsdbLookup> ParseLookupBody(std::string_view body) {
  return WithObject<OpenTsdbLookup>(body, ReadLookup);
}

Result<OpenTsdbSuggest> ParseSuggestBody(std::string_view body) {
  return WithObject<OpenTsdbSuggest>(body, ReadSuggest);
}

}  // namespace sonde::web
