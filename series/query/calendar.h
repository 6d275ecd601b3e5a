// Downsampling by the calendar: days, weeks, months and years of a time zone, which are not all of
// one length ("1dc", "1nc").
//
// The process that is asked works out once where the buckets begin, and sends that with the query:
// nodes need no time zones, and all of them use the same buckets. The rules are OpenTSDB's: the
// first bucket is the one in which the range begins, and the others follow it.
//
// Thread safety: functions without state; a Calendar does not change once it is in a query.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "core/status.h"
#include "core/time.h"
#include "core/time_zone.h"

namespace sonde {

struct Calendar {
  static constexpr size_t kMaxBuckets = 8191;  // with their end as many as a question's times

  enum class Unit : uint8_t { kMillis, kSeconds, kMinutes, kHours, kDays, kWeeks, kMonths, kYears };

  int64_t count = 1;  // units in a bucket
  Unit unit = Unit::kDays;
  std::string zone;          // as asked for; "": UTC. Like the two above, not sent to nodes
  std::vector<Nanos> edges;  // bucket i is [i, i + 1); ascending. Empty until the range is known

  // The start of the bucket in which `time` lies; it lies in one.
  Nanos BucketOf(Nanos time) const;
};

// The starts of the buckets that hold [start, end]. kLimit if they are too many.
Result<std::vector<Nanos>> CalendarEdges(const Calendar& calendar, const TimeZone& zone,
                                         Nanos start, Nanos end);
// Whether they are ascending and hold [start, end].
bool EdgesHold(const std::vector<Nanos>& edges, Nanos start, Nanos end);

}  // namespace sonde
