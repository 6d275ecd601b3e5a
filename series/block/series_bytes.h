// One series as bytes, as schemas and messages of the tree have it. See docs/format.md: never to
// change.
//
// Thread safety: functions without state.
#pragma once

#include "core/bytes.h"
#include "core/metric.h"

namespace sonde {

// A series as it is measured has at most kMaxTags; node daemons, the tree and the archive add
// host, job, task and stat.
inline constexpr size_t kMaxSeriesTags = kMaxTags + 4;

// The fewest bytes of a series: to bound counts before anything is allocated.
inline constexpr size_t kMinSeriesBytes = 8;

void WriteSeries(const Series& series, ByteWriter& out);
// Turns `in` bad on anything that is no series: a name, tag or text that fails its check, an
// unknown type, tags out of order.
Series ReadSeries(ByteReader& in);

}  // namespace sonde
