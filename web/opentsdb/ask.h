// The client side of OpenTSDB's API: writes a query as JSON for a server, and reads the answer.
// `sonde serve` asks the heads of running steps this way.
//
// Thread safety: functions without state.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "series/query/part.h"
#include "series/query/query.h"

namespace sonde::web {

// The body for POST /api/query?arrays=true. Times are whole milliseconds. With a grid it is the
// body for POST /api/v1/part, whose answer is bytes for DecodePart.
std::string QueryToJson(const QuerySpec& spec, const QueryGrid* grid = nullptr);
// Headers of both answers: how many nodes answered, and how many should have. With several queries
// the numbers are those of the query that lacks the most nodes.
inline constexpr std::string_view kNodesAnswered = "Sonde-Nodes-Answered";
inline constexpr std::string_view kNodesExpected = "Sonde-Nodes-Expected";
// Answer::rows_only, where it is not empty; of several queries the first that has it.
inline constexpr std::string_view kRowsOnly = "Sonde-Rows-Only";
// Words of a failure may name anything; a header holds only so much.
std::string HeaderValue(std::string text);
// Reads that answer, with NaN as text or null. Trusts nothing.
Result<std::vector<QueryResult>> ResultsFromJson(std::string_view body);

}  // namespace sonde::web
