// GET /api/live: the events of a running step, as server-sent events, until the step ends.
//
//   step    the step: {"job", "period"}
//   tick    a row of the step: {"job", "time", "series": [...], "queries": [...]}; its id is the
//           tick in nanoseconds, from which Last-Event-ID goes on, as far as rows are still held
//   lost    ticks that this reader has not got, for it reads too slowly or came back too late:
//           {"ticks", "from", "to"}
//   alarm   one that was raised, or is over; the first event has all raised ones
//   note    a phase or a remark, as /api/annotations has them
//   end     the step has ended, and where its profile is: {"job", "profile"}
//
// A reader is sent nothing more until it has taken the last events, so a slow reader costs one
// batch of rows.
//
// Thread safety: as EventFeed and Handler.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/job.h"
#include "series/query/query.h"
#include "web/route/route.h"

namespace sonde::web {

struct LiveRequest {
  std::string job;                   // "": the only running one
  std::vector<std::string> metrics;  // patterns with * and ?
  std::vector<QuerySpec> queries;    // without times
  Nanos after = 0;                   // the last tick that the reader has; 0: none
  bool alarms = true;
  bool notes = true;
};

inline constexpr size_t kMaxLiveMetrics = 64;
inline constexpr size_t kMaxLiveQueries = 16;
inline constexpr size_t kMaxLiveSeries = 2000;

Result<LiveRequest> ParseLiveRequest(const Request& request);

// The tick of a Last-Event-ID; "" is 0.
Result<Nanos> ParseEventId(std::string_view text);

// Whether a name matches a pattern: * for any text, ? for one character.
bool MatchesGlob(std::string_view pattern, std::string_view name);

std::span<const Route> LiveRoutes();

}  // namespace sonde::web
