// What OpenTSDB's HTTP API tells beside data: names, series, aggregators, filters, its version; and
// the paths of the whole API.
#include <fmt/format.h>

#include <set>
#include <string>

#include "web/opentsdb/aliases.h"
#include "web/opentsdb/docs.h"
#include "web/opentsdb/handlers.h"
#include "web/opentsdb/request.h"
#include "web/router.h"

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

void Suggest(const Context& context, const OpenTsdbSuggest& suggest, const Reply& reply) {
  const bool metrics = suggest.type == "metrics", keys = suggest.type == "tagk";
  if (!metrics && !keys && suggest.type != "tagv") {
    return reply(ErrorResponse(400, "type: expected metrics, tagk or tagv"));
  }
  const Result<SeriesNames> names = NamesAndAliases(*context.source);
  if (!names.ok()) return reply(ErrorResponse(names.status()));
  Response response;
  JsonWriter json(response.body);
  WriteNames(metrics ? names->metrics : keys ? names->keys : names->values, suggest, json);
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

// How many there are.
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

// Of a lookup that found nothing: whether it asked for a name that nothing has.
Status UnknownTag(const DataSource& source, const OpenTsdbLookup& lookup) {
  if (lookup.tags.empty()) return {};
  const Result<SeriesNames> names = NamesAndAliases(source);
  if (!names.ok()) return names.status();
  const auto check = [](const std::string& name, const std::set<std::string>& known,
                        const char* kind) -> Status {
    if (IsFree(name) || known.contains(name)) return {};
    return {Code::kNotFound, fmt::format("No such name for '{}': '{}'", kind, name)};
  };
  for (const auto& [key, value] : lookup.tags) {
    SONDE_RETURN_IF_ERROR(check(key, names->keys, "tagk"));
    SONDE_RETURN_IF_ERROR(check(value, names->values, "tagv"));
  }
  return {};
}

void Lookup(const Context& context, const OpenTsdbLookup& lookup, const Reply& reply) {
  const std::string metric = lookup.metric == "*" ? "" : lookup.metric;
  const Result<std::vector<Series>> series =
      ListSeriesAndAliases(*context.source, metric, kMaxListed + 1);
  if (!series.ok()) return reply(ErrorResponse(series.status()));
  if (series->size() > kMaxListed) {
    return reply(TooMuchResponse(series->size(), kMaxListed, "series to look through"));
  }
  if (series->empty() && !metric.empty()) {
    return reply(ErrorResponse(404, "No such name for 'metrics': '" + metric + "'"));
  }
  Response response;
  JsonWriter json(response.body);
  if (WriteLookup(lookup, *series, json) == 0) {
    if (const Status unknown = UnknownTag(*context.source, lookup); !unknown.ok()) {
      return reply(ErrorResponse(unknown));
    }
  }
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
  const Result<uint64_t> first = NumberParam(request, "start_index", 0, 0, UINT64_MAX);
  if (!first.ok()) return reply(ErrorResponse(first.status()));
  lookup->start_index = *first;
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
  json.BeginObject().Field("version", "2.4.1").Field("repo", "sonde " SONDE_VERSION).EndObject();
  reply(std::move(response));
}

constexpr Route kRoutes[] = {
    {"/api/query", GetQuery, PostQuery, kQueryDoc, kPostQueryDoc},
    {"/api/put", nullptr, PostPut, kPutDoc},
    {"/api/annotation", GetAnnotation, PostAnnotation, kAnnotationDoc, kPostAnnotationDoc,
     PutAnnotation, DeleteAnnotation, kRemoveAnnotationDoc},
    {"/api/annotations", GetAnnotations, PostAnnotations, kAnnotationsDoc, kPostAnnotationsDoc,
     PutAnnotations, DeleteAnnotations, kRemoveAnnotationsDoc},
    {"/api/annotation/bulk", GetAnnotations, PostAnnotations, kAnnotationsDoc, kPostAnnotationsDoc,
     PutAnnotations, DeleteAnnotations, kRemoveAnnotationsDoc},
    {"/api/suggest", GetSuggest, PostSuggest, kSuggestDoc, kPostSuggestDoc},
    {"/api/search/lookup", GetLookup, PostLookup, kLookupDoc, kPostLookupDoc},
    {"/api/aggregators", GetAggregators, nullptr, kAggregatorsDoc},
    {"/api/config/filters", GetFilters, nullptr, kFiltersDoc},
    {"/api/version", GetVersion, nullptr, kVersionDoc},
};

}  // namespace

std::span<const Route> OpenTsdbRoutes() { return kRoutes; }

}  // namespace sonde::web
