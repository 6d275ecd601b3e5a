// What a trace of metric-proxy's is of: a step, or "main", all running steps together.
//
// Thread safety: functions without state.
#pragma once

#include <string>
#include <vector>

#include "profiles/json/writer.h"
#include "profiles/model/profile.h"
#include "web/route/gather.h"

namespace sonde::web {

struct Traced {
  Profile profile;
  std::string steps;  // their ids, with | between them, as a filter has them
};

// kNotFound for an unknown step, and for main while none runs.
Task<Result<Traced>> TracedSteps(const Context& context, std::string job);
// What to say to a request without a job.
Status NoTracedJob();

// The sum of running steps, from the start of the first one on.
Profile MainOf(const std::vector<Profile>& running);

// Bytes of its record.
uint64_t TraceSize(const Profile& profile);

// {"desc": ..., "size": bytes, "lastwrite": s}
void WriteTraceInfo(const Profile& profile, Nanos now, JsonWriter& json);

}  // namespace sonde::web
