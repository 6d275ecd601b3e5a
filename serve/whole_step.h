// Answers about one step of many nodes whose head does not answer: from the rows of the whole step,
// and where these are not right from the nodes' series (series/query/pieces/pieces.h).
//
// Where the series cannot be read, are too much, or lack what the rows have, rows answer alone, and
// the answer says so.
//
// Thread safety: functions without state.
#pragma once

#include "core/status.h"
#include "profiles/archive/archive.h"
#include "series/query/query.h"
#include "web/source/step_series.h"

namespace sonde::serve {

// So many points are read for one query: in memory 512 MiB.
inline constexpr size_t kMaxReadPoints = 32u << 20;
// kLimit if these are more.
Status CheckRead(const std::vector<SeriesData>& series);

// Reads the step's series that the query asks for, as they are stored, with the tag `job`.
Result<std::vector<SeriesData>> ReadSeries(const Archive& archive, const ProfileEntry& step,
                                           SeriesScope scope, const QuerySpec& spec,
                                           const SeriesFilter& filter, const TimeRange& range,
                                           Earlier earlier);

// The query's plan says that rows may answer (series/query/plan.h). Of percentiles nothing if none
// are recorded.
Result<web::Answer> AnswerWholeStep(const Archive& archive, const ProfileEntry& step,
                                    const QuerySpec& spec, const SeriesFilter& filter);

}  // namespace sonde::serve
