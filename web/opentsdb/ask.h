// The other side of OpenTSDB's API: a query as the JSON that a server is asked with, and what it
// answers. `sonde serve` asks the heads of running steps so.
//
// Thread safety: functions without state.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "series/query/part.h"
#include "series/query/query.h"

namespace sonde::web {

// The body for POST /api/query?arrays=true. Times are whole milliseconds. With a grid it is that of
// POST /api/v1/part, whose answer is bytes for DecodePart.
std::string QueryToJson(const QuerySpec& spec, const QueryGrid* grid = nullptr);
// Headers of both answers: how many nodes they are of, and should be. Of several queries those of
// the one that lacks the most.
inline constexpr std::string_view kNodesAnswered = "Sonde-Nodes-Answered";
inline constexpr std::string_view kNodesExpected = "Sonde-Nodes-Expected";
// The answer to that, with NaN as text or null. Trusts nothing.
Result<std::vector<QueryResult>> ResultsFromJson(std::string_view body);

}  // namespace sonde::web
