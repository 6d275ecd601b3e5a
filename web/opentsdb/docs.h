// The OpenAPI descriptions of the routes of OpenTSDB's API (web/route/route_doc.h).
//
// Thread safety: constants.
#pragma once

#include "web/route/route_doc.h"

namespace sonde::web {

inline constexpr RouteParam kArraysParam = {"arrays", "points as pairs in a list", kFlag};
inline constexpr RouteParam kNanParam = {"nan", "how NaN and infinity are written",
                                         R"({"type":"string","enum":["null","text"]})"};

inline constexpr RouteParam kUnknownParam = {"unknown",
                                             "what names are that do not exist: an error if absent",
                                             R"({"type":"string","enum":["error","none"]})"};

inline constexpr RouteDoc kQueryDoc = {
    .about = "Series as OpenTSDB 2.4 answers them",
    .params = {{"start", "a time: 1h-ago, seconds or milliseconds since 1970", kText, true},
               {"end", "now if absent"},
               {"m", "AGGREGATOR:[rate:][DOWNSAMPLE:]METRIC[{FILTERS}[{FILTERS}]]; may be repeated",
                kText, true},
               {"timezone", "of dates and calendars, such as Europe/Berlin; UTC if absent"},
               {"use_calendar", "downsample by the calendar, as 1dc-avg does", kFlag},
               kArraysParam,
               kNanParam,
               kUnknownParam,
               {"ms", "times in milliseconds", kFlag},
               {"show_query", "each result with its query", kFlag},
               {"no_annotations", "without annotations", kFlag},
               {"global_annotations", "with those of all steps", kFlag}},
    .answer = "[#QueryResult]",
    .example = "?start=2h-ago&m=sum:rate:1m-avg:node_network_receive_bytes_total%7Bhost=*%7D"};
inline constexpr RouteDoc kPostQueryDoc = {
    .about = "Series as OpenTSDB 2.4 answers them",
    .params = {kArraysParam, kNanParam, kUnknownParam},
    .answer = "[#QueryResult]",
    .body = "#Query",
    .example = "?arrays=true",
    .example_body =
        R"({"start": "2h-ago", "showQuery": true, "globalAnnotations": true, "queries": )"
        R"([{"metric": "node_load1", "aggregator": "max", "downsample": "1m-avg", )"
        R"("filters": [{"type": "wildcard", "tagk": "host", "filter": "*", )"
        R"("groupBy": true}]}]})"};

inline constexpr RouteDoc kPutDoc = {
    .about = "Takes points into a store in memory; others answer 403",
    .params = {{"summary", "tell how many were taken", kFlag},
               {"details", "tell what is wrong with which point", kFlag}},
    .answer = "#PutSummary",
    .body = R"({"oneOf":[{"$ref":"#/components/schemas/PutPoint"},)"
            R"({"type":"array","items":{"$ref":"#/components/schemas/PutPoint"}}]})",
    .example = "?details",
    .example_body = R"([{"metric": "load", "timestamp": 1700000000, "value": 3, )"
                    R"("tags": {"host": "n1"}}])",
    .also = 204};

inline constexpr RouteDoc kAnnotationDoc = {
    .about = "An annotation",
    .params = {{"start_time", "when it begins", kText, true}, {"tsuid", "of which series"}},
    .answer = "#Annotation",
    .example = "?start_time=1700000000"};
inline constexpr RouteDoc kPostAnnotationDoc = {
    .about = "Takes an annotation into a store in memory; others answer 403",
    .answer = "#Annotation",
    .body = "#Annotation",
    .example_body = R"({"startTime": 1700000000, "description": "checkpoint"})"};
inline constexpr RouteDoc kRemoveAnnotationDoc = {
    .about = "Forgets an annotation of a store in memory; others answer 403",
    .params = {{"start_time", "when it begins", kText, true}, {"tsuid", "of which series"}},
    .example = "?start_time=1700000000",
    .also = 204};
inline constexpr RouteDoc kAnnotationsDoc = {
    .about = "The annotations of a range of time",
    .params = {{"start_time", "its first time", kText, true}, {"end_time", "now if absent"}},
    .answer = "[#Annotation]",
    .example = "?start_time=2h-ago"};
inline constexpr RouteDoc kPostAnnotationsDoc = {
    .about = "Takes annotations into a store in memory; others answer 403",
    .answer = "[#Annotation]",
    .body = "[#Annotation]",
    .example_body = R"([{"startTime": 1700000100, "description": "checkpoint"}])"};
inline constexpr RouteDoc kRemoveAnnotationsDoc = {
    .about = "Forgets the annotations of a range of time; stores other than in memory answer 403",
    .params = {{"start_time", "its first time", kText, true},
               {"end_time", "now if absent"},
               {"tsuids", "of these series, with commas between them"},
               {"global", "those of no series", kFlag}},
    .answer = R"({"type":"object","required":["tsuids","global","startTime","endTime",)"
              R"("totalDeleted"],"properties":{"tsuids":{"type":"array","items":)"
              R"({"type":"string"}},"global":{"type":"boolean"},"startTime":{"type":"integer"},)"
              R"("endTime":{"type":"integer"},"totalDeleted":{"type":"integer"}}})",
    .example = "?start_time=1700000100&end_time=1700000101&global=true"};

inline constexpr RouteDoc kSuggestDoc = {
    .about = "Names that begin so",
    .params = {{"type", "of what", R"({"type":"string","enum":["metrics","tagk","tagv"]})", true},
               {"q", "how they begin"},
               {"max", "how many at most; 25 if absent", kCount}},
    .answer = R"({"type":"array","items":{"type":"string"}})",
    .example = "?type=metrics&q=node_&max=5"};
inline constexpr RouteDoc kPostSuggestDoc = {
    .about = "Names that begin so",
    .answer = R"({"type":"array","items":{"type":"string"}})",
    .body = R"({"type":"object","required":["type"],"properties":{"type":{"type":"string",)"
            R"("enum":["metrics","tagk","tagv"]},"q":{"type":"string"},"max":{"type":"integer"}}})",
    .example_body = R"({"type": "tagk", "q": "ho"})"};

inline constexpr RouteDoc kLookupDoc = {
    .about = "Series by their metric and tags",
    .params = {{"m", "METRIC{key=value,...}", kText, true},
               {"limit", "how many at most, 0 for all; 25 if absent", kCount},
               {"start_index", "how many are passed over", kCount},
               {"use_meta", "taken for OpenTSDB's sake: names are always looked up", kFlag}},
    .answer = "#Lookup",
    .example = "?m=node_load1%7Bhost=n1%7D"};
inline constexpr RouteDoc kPostLookupDoc = {
    .about = "Series by their metric and tags",
    .answer = "#Lookup",
    .body =
        R"({"type":"object","properties":{"metric":{"type":"string"},"limit":)"
        R"({"type":"integer"},"startIndex":{"type":"integer"},"useMeta":{"type":"boolean"},"tags":{"type":"array","items":{"type":"object","properties":)"
        R"({"key":{"type":"string"},"value":{"type":"string"}}}}}})",
    .example_body = R"({"metric": "node_load1", "tags": [{"key": "host", "value": "*"}]})"};

inline constexpr RouteDoc kAggregatorsDoc = {
    .about = "Names of the aggregators", .answer = R"({"type":"array","items":{"type":"string"}})"};
inline constexpr RouteDoc kFiltersDoc = {
    .about = "The filters by their name",
    .answer = R"({"type":"object","additionalProperties":{"type":"object","required":)"
              R"(["examples","description"],"properties":{"examples":{"type":"string"},)"
              R"("description":{"type":"string"}}}})"};
inline constexpr RouteDoc kVersionDoc = {
    .about = "Of OpenTSDB's API, and of Sonde",
    .answer = R"({"type":"object","required":["version","short_revision","full_revision","repo"],)"
              R"("properties":{"version":{"type":"string"},"short_revision":{"type":"string"},)"
              R"("full_revision":{"type":"string"},"repo":{"type":"string"}}})"};

}  // namespace sonde::web
