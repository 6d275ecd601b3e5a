// OpenTSDB's HTTP API as Grafana uses it: query, suggest, lookup and what they need.
#include <charconv>
#include <cmath>
#include <set>

#include "profiles/json_writer.h"
#include "web/gather.h"
#include "web/opentsdb_aliases.h"
#include "web/opentsdb_request.h"
#include "web/router.h"

namespace sonde::web {
namespace {

constexpr size_t kMaxListed = 1u << 20;   // series looked through for names
constexpr size_t kMaxPoints = 4'000'000;  // in one response: some 100 MB of JSON
constexpr uint64_t kMaxSuggestions = 100'000;

// The key of a point as it stands in the answer.
int64_t TimeKey(Nanos time, bool milliseconds) {
  return milliseconds ? time / kMillisecond : time / kSecond;
}

// A missing point of a downsample that fills: null is a gap, NaN the text that OpenTSDB writes.
void WriteNumber(double value, bool null, JsonWriter& json) {
  if (std::isfinite(value)) {
    json.Value(value);
  } else if (null) {
    json.Null();
  } else {
    json.Value(std::isnan(value) ? "NaN" : value > 0 ? "Infinity" : "-Infinity");
  }
}

void WritePoints(const QueryResult& result, const QuerySpec& spec, bool milliseconds, bool arrays,
                 JsonWriter& json) {
  const bool null = spec.downsample && spec.downsample->fill == Downsample::Fill::kNull;
  const std::vector<Point>& points = result.points;
  arrays ? json.BeginArray() : json.BeginObject();
  for (size_t i = 0; i < points.size(); ++i) {
    const int64_t key = TimeKey(points[i].time, milliseconds);
    // Of several points within one second the last counts: a key must not stand twice.
    if (i + 1 < points.size() && TimeKey(points[i + 1].time, milliseconds) == key) continue;
    if (arrays) {
      json.BeginArray().Value(key);
      WriteNumber(points[i].value, null, json);
      json.EndArray();
    } else {
      char text[24];
      const auto [end, error] = std::to_chars(text, text + sizeof(text), key);
      json.Key({text, static_cast<size_t>(end - text)});
      WriteNumber(points[i].value, null, json);
    }
  }
  arrays ? json.EndArray() : json.EndObject();
}

std::string_view FilterTypeName(TagFilter::Type type) {
  for (const FilterName& filter : FilterNames()) {
    if (filter.type == type) return filter.name;
  }
  return "";
}

void WriteQuery(const QuerySpec& spec, size_t index, JsonWriter& json) {
  json.Key("query").BeginObject();
  json.Field("aggregator", ToString(spec.aggregator)).Field("metric", spec.metric);
  json.Field("rate", spec.rate).Field("index", index);
  json.Key("filters").BeginArray();
  for (const TagFilter& filter : spec.filters) {
    json.BeginObject().Field("tagk", filter.key).Field("filter", filter.pattern);
    json.Field("type", FilterTypeName(filter.type)).Field("group_by", filter.group_by).EndObject();
  }
  json.EndArray().EndObject();
}

void WriteResult(const QueryResult& result, JsonWriter& json) {
  json.Field("metric", result.metric);
  json.Key("tags").BeginObject();
  for (const auto& [key, value] : result.tags.pairs()) json.Field(key, value);
  json.EndObject();
  json.Key("aggregateTags").BeginArray();
  for (const std::string& key : result.aggregate_tags) json.Value(key);
  json.EndArray();
}

// Why a query has no answer: a name that does not exist is an error, no data in the range is not.
Status CheckNames(const DataSource& source, const QuerySpec& spec) {
  const Result<std::vector<Series>> series = ListSeriesAndAliases(source, spec.metric, kMaxListed);
  if (!series.ok()) return series.status();
  if (series->empty()) {
    return {Code::kInvalid, "No such name for 'metrics': '" + spec.metric + "'"};
  }
  for (const TagFilter& filter : spec.filters) {
    bool found = false;
    for (const Series& one : *series) found = found || one.tags.Find(filter.key) != nullptr;
    if (!found) return {Code::kInvalid, "No such name for 'tagk': '" + filter.key + "'"};
  }
  return {};
}

Response QueryResponse(const DataSource& source, const OpenTsdbQuery& query, bool arrays,
                       const Answers& answers) {
  size_t points = 0;
  for (const Answer& answer : answers) {
    for (const QueryResult& result : answer.results) points += result.points.size();
  }
  if (points > kMaxPoints) {
    return ErrorResponse(413, "the answer has " + std::to_string(points) +
                                  " points; ask for a downsample or a shorter range");
  }
  Response response;
  JsonWriter json(response.body);
  json.BeginArray();
  for (size_t i = 0; i < answers.size(); ++i) {
    if (answers[i].results.empty()) {
      if (const Status named = CheckNames(source, query.queries[i]); !named.ok()) {
        return ErrorResponse(named);
      }
    }
    for (const QueryResult& result : answers[i].results) {
      if (result.points.empty()) continue;
      json.BeginObject();
      WriteResult(result, json);
      if (query.show_query) WriteQuery(query.queries[i], i, json);
      json.Key("dps");
      WritePoints(result, query.queries[i], query.milliseconds, arrays, json);
      json.EndObject();
    }
  }
  json.EndArray();
  return response;
}

bool Flag(const Request& request, std::string_view name) {
  const std::string* text = request.Param(name);
  return text != nullptr && *text != "false";
}

void PostQuery(const Context& context, const Request& request, Reply reply) {
  Result<OpenTsdbQuery> parsed = ParseOpenTsdbQuery(request.body, context.clock->Now());
  if (!parsed.ok()) return reply(ErrorResponse(parsed.status()));
  const auto query = std::make_shared<const OpenTsdbQuery>(*std::move(parsed));
  const bool arrays = Flag(request, "arrays");
  const auto plan = std::make_shared<const OpenTsdbPlan>(*context.source, query->queries);
  GatherAndReply(
      context, plan->specs(), std::move(reply),
      [weak = std::weak_ptr(context.source), query, plan, arrays](const Answers& answers) {
        const std::shared_ptr<const DataSource> source = weak.lock();
        if (!source) return ErrorResponse(503, "the server is stopping");
        const Result<Answers> folded = plan->Fold(answers);
        if (!folded.ok()) return ErrorResponse(folded.status());
        return QueryResponse(*source, *query, arrays, *folded);
      });
}

void WriteNames(const std::set<std::string>& names, const OpenTsdbSuggest& suggest,
                JsonWriter& json) {
  uint64_t count = 0;
  json.BeginArray();
  for (auto at = names.lower_bound(suggest.prefix);
       at != names.end() && at->starts_with(suggest.prefix) && count < suggest.max; ++at, ++count) {
    json.Value(*at);
  }
  json.EndArray();
}

void Suggest(const Context& context, const OpenTsdbSuggest& suggest, const Reply& reply) {
  const bool metrics = suggest.type == "metrics", keys = suggest.type == "tagk";
  if (!metrics && !keys && suggest.type != "tagv") {
    return reply(ErrorResponse(400, "type: expected metrics, tagk or tagv"));
  }
  const Result<std::vector<Series>> series = ListSeriesAndAliases(*context.source, "", kMaxListed);
  if (!series.ok()) return reply(ErrorResponse(series.status()));
  std::set<std::string> names;
  for (const Series& one : *series) {
    if (metrics) {
      names.insert(one.metric.name);
      continue;
    }
    for (const auto& [key, value] : one.tags.pairs()) names.insert(keys ? key : value);
  }
  Response response;
  JsonWriter json(response.body);
  WriteNames(names, suggest, json);
  reply(std::move(response));
}

void GetSuggest(const Context& context, const Request& request, Reply reply) {
  OpenTsdbSuggest suggest;
  if (const std::string* type = request.Param("type")) suggest.type = *type;
  if (const std::string* prefix = request.Param("q")) suggest.prefix = *prefix;
  const Result<uint64_t> max = NumberParam(request, "max", suggest.max, 1, kMaxSuggestions);
  if (!max.ok()) return reply(ErrorResponse(max.status()));
  suggest.max = *max;
  Suggest(context, suggest, reply);
}

void PostSuggest(const Context& context, const Request& request, Reply reply) {
  const Result<OpenTsdbSuggest> suggest = ParseSuggestBody(request.body);
  if (!suggest.ok()) return reply(ErrorResponse(suggest.status()));
  Suggest(context, *suggest, reply);
}

bool Matches(const OpenTsdbLookup& lookup, const Series& series) {
  if (!lookup.metric.empty() && lookup.metric != "*" && series.metric.name != lookup.metric) {
    return false;
  }
  const auto free = [](const std::string& text) { return text.empty() || text == "*"; };
  for (const auto& [key, value] : lookup.tags) {
    bool found = false;
    for (const auto& [k, v] : series.tags.pairs()) {
      found = found || ((free(key) || key == k) && (free(value) || value == v));
    }
    if (!found) return false;
  }
  return true;
}

void WriteLookup(const OpenTsdbLookup& lookup, const std::vector<Series>& series,
                 JsonWriter& json) {
  uint64_t total = 0;
  json.BeginObject().Field("type", "LOOKUP").Field("metric", lookup.metric);
  json.Key("tags").BeginArray();
  for (const auto& [key, value] : lookup.tags) {
    json.BeginObject().Field("key", key).Field("value", value).EndObject();
  }
  json.EndArray().Field("limit", lookup.limit).Field("time", 0);
  json.Key("results").BeginArray();
  for (const Series& one : series) {
    if (!Matches(lookup, one) || (total++ >= lookup.limit && lookup.limit != 0)) continue;
    json.BeginObject().Field("tsuid", SeriesName(one.metric.name, one.tags));
    json.Field("metric", one.metric.name).Key("tags").BeginObject();
    for (const auto& [key, value] : one.tags.pairs()) json.Field(key, value);
    json.EndObject().EndObject();
  }
  json.EndArray().Field("startIndex", 0).Field("totalResults", total).EndObject();
}

void Lookup(const Context& context, const OpenTsdbLookup& lookup, const Reply& reply) {
  const std::string metric = lookup.metric == "*" ? "" : lookup.metric;
  const Result<std::vector<Series>> series =
      ListSeriesAndAliases(*context.source, metric, kMaxListed);
  if (!series.ok()) return reply(ErrorResponse(series.status()));
  if (series->empty() && !metric.empty()) {
    return reply(ErrorResponse(404, "No such name for 'metrics': '" + metric + "'"));
  }
  Response response;
  JsonWriter json(response.body);
  WriteLookup(lookup, *series, json);
  reply(std::move(response));
}

void GetLookup(const Context& context, const Request& request, Reply reply) {
  const std::string* expression = request.Param("m");
  if (expression == nullptr) return reply(ErrorResponse(400, "parameter m is missing"));
  Result<OpenTsdbLookup> lookup = ParseLookupExpression(*expression);
  if (!lookup.ok()) return reply(ErrorResponse(lookup.status()));
  const Result<uint64_t> limit = NumberParam(request, "limit", lookup->limit, 0, UINT64_MAX);
  if (!limit.ok()) return reply(ErrorResponse(limit.status()));
  lookup->limit = *limit;
  Lookup(context, *lookup, reply);
}

void PostLookup(const Context& context, const Request& request, Reply reply) {
  const Result<OpenTsdbLookup> lookup = ParseLookupBody(request.body);
  if (!lookup.ok()) return reply(ErrorResponse(lookup.status()));
  Lookup(context, *lookup, reply);
}

void GetAggregators(const Context&, const Request&, Reply reply) {
  Response response;
  JsonWriter json(response.body);
  json.BeginArray();
  for (const std::string_view name : AggregatorNames()) json.Value(name);
  json.EndArray();
  reply(std::move(response));
}

void GetFilters(const Context&, const Request&, Reply reply) {
  Response response;
  JsonWriter json(response.body);
  json.BeginObject();
  for (const FilterName& filter : FilterNames()) {
    json.Key(filter.name).BeginObject();
    json.Field("examples", filter.example).Field("description", filter.description).EndObject();
  }
  json.EndObject();
  reply(std::move(response));
}

void GetVersion(const Context&, const Request&, Reply reply) {
  Response response;
  JsonWriter json(response.body);
  // The version of the API that is spoken, and by whom.
  json.BeginObject().Field("version", "2.3.0").Field("repo", "sonde " SONDE_VERSION).EndObject();
  reply(std::move(response));
}

constexpr Route kRoutes[] = {
    {"/api/query", nullptr, PostQuery},
    {"/api/suggest", GetSuggest, PostSuggest},
    {"/api/search/lookup", GetLookup, PostLookup},
    {"/api/aggregators", GetAggregators},
    {"/api/config/filters", GetFilters},
    {"/api/version", GetVersion},
};

}  // namespace

std::span<const Route> OpenTsdbRoutes() { return kRoutes; }

}  // namespace sonde::web
