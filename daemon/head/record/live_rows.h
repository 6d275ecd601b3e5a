// Rows of a step's reduced series out of its record, for live events.
//
// Thread safety: functions without state.
#pragma once

#include <vector>

#include "series/block/schema.h"
#include "series/store/store.h"
#include "web/source/step_series.h"

namespace sonde::head {

// Puts the columns of reduced series, which have the tag `stat`, together: fills the rows, the
// first `limit` of them, and their series, which come by name and tags. Rows have the times of all
// points.
void PutTogether(const std::vector<SeriesData>& columns, size_t limit, web::LiveRows& rows);

}  // namespace sonde::head
