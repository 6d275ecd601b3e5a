// OpenTSDB's HTTP API besides data: names, series, aggregators, filters, its version; and the paths
// of the whole API.
#include <fmt/core.h>

#include <set>
#include <string>

#include "web/opentsdb/aliases.h"
#include "web/opentsdb/docs.h"
#include "web/opentsdb/handlers.h"
#include "web/opentsdb/request.h"
#include "web/opentsdb/routes.h"
#include "web/route/waiting.h"

namespace sonde::web {
namespace {

constexpr uint64_t kMaxSuggestions = 100'000;

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

Task<Response> Suggest(const Context& context, OpenTsdbSuggest suggest) {
  const bool metrics = suggest.type == "metrics", keys = suggest.type == "tagk";
  if (!metrics && !keys && suggest.type != "tagv") {
    co_return ErrorResponse(400, "type: expected metrics, tagk or tagv");
  }
  const Result<SeriesNames> names = co_await NamesAndAliases(*context.series);
  if (!names.ok()) co_return ErrorResponse(names.status());
  Response response;
  JsonWriter json(response.body);
  WriteNames(metrics ? names->metrics : keys ? names->keys : names->values, suggest, json);
  co_return response;
}

// As Dragon's server has it, which knows no types: all metrics whose names contain the text.
// OpenTSDB's clients always say a type.
Task<Response> SuggestAsDragon(const Context& context, const Request& request) {
  const Result<SeriesNames> names = co_await NamesAndAliases(*context.series);
  if (!names.ok()) co_return ErrorResponse(names.status());
  const std::string* text = request.Param("q");
  Response response;
  JsonWriter json(response.body);
  json.BeginArray();
  for (const std::string& name : names->metrics) {
    if (text == nullptr || name.find(*text) != std::string::npos) json.Value(name);
  }
  json.EndArray();
  co_return response;
}

Task<Response> GetSuggest(const Context& context, const Request& request) {
  if (request.Param("type") == nullptr) co_return co_await SuggestAsDragon(context, request);
  OpenTsdbSuggest suggest;
  if (const std::string* type = request.Param("type")) suggest.type = *type;
  if (const std::string* prefix = request.Param("q")) suggest.prefix = *prefix;
  const Result<uint64_t> max = NumberParam(request, "max", suggest.max, 1, kMaxSuggestions);
  if (!max.ok()) co_return ErrorResponse(max.status());
  suggest.max = *max;
  co_return co_await Suggest(context, suggest);
}

Task<Response> PostSuggest(const Context& context, const Request& request) {
  const Result<OpenTsdbSuggest> suggest = ParseSuggestBody(request.body);
  if (!suggest.ok()) co_return ErrorResponse(suggest.status());
  co_return co_await Suggest(context, *suggest);
}

bool IsFree(const std::string& text) { return text.empty() || text == "*"; }

bool Matches(const OpenTsdbLookup& lookup, const Series& series) {
  if (!lookup.metric.empty() && lookup.metric != "*" && series.metric.name != lookup.metric) {
    return false;
  }
  for (const auto& [key, value] : lookup.tags) {
    bool found = false;
    for (const auto& [k, v] : series.tags.pairs()) {
      found = found || ((IsFree(key) || key == k) && (IsFree(value) || value == v));
    }
    if (!found) return false;
  }
  return true;
}

// Gives the number of series.
uint64_t WriteLookup(const OpenTsdbLookup& lookup, const std::vector<Series>& series,
                     JsonWriter& json) {
  uint64_t total = 0;
  json.BeginObject().Field("type", "LOOKUP").Field("metric", lookup.metric);
  json.Key("tags").BeginArray();
  for (const auto& [key, value] : lookup.tags) {
    json.BeginObject().Field("key", key).Field("value", value).EndObject();
  }
  json.EndArray().Field("limit", lookup.limit).Field("time", 0);
  const uint64_t first = lookup.start_index;
  json.Key("results").BeginArray();
  for (const Series& one : series) {
    if (!Matches(lookup, one)) continue;
    const uint64_t index = total++;
    if (index < first || (lookup.limit != 0 && index - first >= lookup.limit)) continue;
    json.BeginObject().Field("tsuid", SeriesName(one.metric.name, one.tags));
    json.Field("metric", one.metric.name).Key("tags").BeginObject();
    for (const auto& [key, value] : one.tags.pairs()) json.Field(key, value);
    json.EndObject().EndObject();
  }
  json.EndArray().Field("startIndex", first).Field("totalResults", total).EndObject();
  return total;
}

// For a lookup without results: whether it asked for a name that does not exist.
Status UnknownTag(const SeriesNames& names, const OpenTsdbLookup& lookup) {
  const auto check = [](const std::string& name, const std::set<std::string>& known,
                        const char* kind) -> Status {
    if (IsFree(name) || known.contains(name)) return {};
    return {Code::kNotFound, fmt::format("No such name for '{}': '{}'", kind, name)};
  };
  for (const auto& [key, value] : lookup.tags) {
    SONDE_RETURN_IF_ERROR(check(key, names.keys, "tagk"));
    SONDE_RETURN_IF_ERROR(check(value, names.values, "tagv"));
  }
  return {};
}

Task<Response> Lookup(const Context& context, OpenTsdbLookup lookup) {
  const std::string metric = lookup.metric == "*" ? "" : lookup.metric;
  const Result<std::vector<Series>> series =
      co_await ListSeriesAndAliases(context, metric, kMaxListed + 1);
  const bool too_much =
      series.ok() ? series->size() > kMaxListed : series.status().code() == Code::kLimit;
  if (too_much)
    co_return TooMuchResponse(kMaxListed + 1, kMaxListed, "series to look through",
                              "name a metric");
  if (!series.ok()) co_return ErrorResponse(series.status());
  if (series->empty() && !metric.empty()) {
    co_return ErrorResponse(404, "No such name for 'metrics': '" + metric + "'");
  }
  Response response;
  JsonWriter json(response.body);
  if (WriteLookup(lookup, *series, json) == 0 && !lookup.tags.empty()) {
    const Result<SeriesNames> names = co_await NamesAndAliases(*context.series);
    const Status unknown = names.ok() ? UnknownTag(*names, lookup) : names.status();
    if (!unknown.ok()) co_return ErrorResponse(unknown);
  }
  co_return response;
}

Task<Response> GetLookup(const Context& context, const Request& request) {
  const std::string* expression = request.Param("m");
  if (expression == nullptr) co_return ErrorResponse(400, "parameter m is missing");
  Result<OpenTsdbLookup> lookup = ParseLookupExpression(*expression);
  if (!lookup.ok()) co_return ErrorResponse(lookup.status());
  const Result<uint64_t> limit = NumberParam(request, "limit", lookup->limit, 0, UINT64_MAX);
  if (!limit.ok()) co_return ErrorResponse(limit.status());
  lookup->limit = *limit;
  const Result<uint64_t> first = NumberParam(request, "start_index", 0, 0, UINT64_MAX);
  if (!first.ok()) co_return ErrorResponse(first.status());
  lookup->start_index = *first;
  co_return co_await Lookup(context, *lookup);
}

Task<Response> PostLookup(const Context& context, const Request& request) {
  const Result<OpenTsdbLookup> lookup = ParseLookupBody(request.body);
  if (!lookup.ok()) co_return ErrorResponse(lookup.status());
  co_return co_await Lookup(context, *lookup);
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
  // The version of the API, and the program that serves it.
  json.BeginObject().Field("version", "2.4.1").Field("repo", "sonde " SONDE_VERSION);
  json.Field("short_revision", SONDE_VERSION).Field("full_revision", SONDE_VERSION);
  json.EndObject();
  reply(std::move(response));
}

constexpr Route kNamesRoutes[] = {
    {"/api/query", Waits<GetQuery>, Waits<PostQuery>, kQueryDoc, kPostQueryDoc},
    {"/api/put", nullptr, PostPut, kPutDoc},
    {"/api/annotation", Waits<GetAnnotation>, PostAnnotation, kAnnotationDoc, kPostAnnotationDoc,
     PutAnnotation, DeleteAnnotation, kRemoveAnnotationDoc},
    {"/api/annotations", Waits<GetAnnotations>, PostAnnotations, kAnnotationsDoc,
     kPostAnnotationsDoc, PutAnnotations, DeleteAnnotations, kRemoveAnnotationsDoc},
    {"/api/annotation/bulk", Waits<GetAnnotations>, PostAnnotations, kAnnotationsDoc,
     kPostAnnotationsDoc, PutAnnotations, DeleteAnnotations, kRemoveAnnotationsDoc},
    {"/api/suggest", Waits<GetSuggest>, Waits<PostSuggest>, kSuggestDoc, kPostSuggestDoc},
    {"/api/search/lookup", Waits<GetLookup>, Waits<PostLookup>, kLookupDoc, kPostLookupDoc},
    {"/api/aggregators", GetAggregators, nullptr, kAggregatorsDoc},
    {"/api/config/filters", GetFilters, nullptr, kFiltersDoc},
    {"/api/version", GetVersion, nullptr, kVersionDoc},
};

}  // namespace

std::span<const Route> OpenTsdbRoutes() { return kNamesRoutes; }

}  // namespace sonde::web
