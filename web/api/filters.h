// The filters of a list of steps, as parameters of a request: those of /api/v1/steps.
//
// Thread safety: constants and a function without state.
#pragma once

#include "core/status.h"
#include "core/time.h"
#include "profiles/select/selection.h"
#include "web/http/http.h"
#include "web/route/route_doc.h"

namespace sonde::web {

inline constexpr RouteParam kFilterParams[] = {
    {"search",
     "words that must all be found, whatever their case: in the step, the job's name, the "
     "user, the command line (its first 512 bytes) or a tag, or as the name of a node"},
    {"since",
     "that began since then: so long ago (90m, 2d), seconds or milliseconds since "
     "1970, 2026/01/31-10:00 in UTC"},
    {"until", "that began by then"},
    {"cmd", "with this text in the command line"},
    {"name", "with this text in the job's name"},
    {"node", "that ran on this node"},
    {"user", "of this user"},
    {"account", "of this account"},
    {"partition", "in this partition"},
    {"state", "in this state",
     R"({"type":"string","enum":["running","completed","failed","out_of_memory",)"
     R"("cancelled","timeout","preempted","node_fail","lost","unknown"]})"},
    {"level", "recorded at this level", R"({"type":"integer","minimum":0,"maximum":4})"},
    {"tag", "with this tag, NAME or NAME=VALUE; may be given several times"}};

// The selection without order and limit; kInvalid with what was expected.
Result<Selection> FiltersOf(const Request& request, Nanos now);

}  // namespace sonde::web
