// The JSON shapes of metric-proxy v2, as its clients read jobs and profiles. Members that
// metric-proxy does not have come after its own.
//
// Thread safety: functions without state.
#pragma once

#include "profiles/json/writer.h"
#include "profiles/model/profile.h"
#include "web/http/http.h"

namespace sonde::web {

// {"jobid", "command", "size", "nodelist", "partition", "cluster", "run_dir", "start_time",
// "end_time", ...}: times in whole seconds, end_time 0 while it runs, size in tasks.
void WriteDescription(const JobDescription& job, JsonWriter& json);

// {"desc": ..., "counters": [{"name", "doc", "ctype"}]}. `now`: the time of a running step's
// counters. A metric without a number is left out: metric-proxy reads no null. A finished step has
// its kWalltime (runs.h) besides.
void WriteSnapshot(const Profile& profile, Nanos now, JsonWriter& json);

// {"Counter": {"ts", "value"}}: ts in whole microseconds since 1970.
void WriteCounter(Nanos time, double value, JsonWriter& json);

// A client that has a finished step's answer need not get it again: gives the answer, which has its
// body, an ETag and a date.
void MarkFinal(const JobDescription& job, Response& response);

}  // namespace sonde::web
