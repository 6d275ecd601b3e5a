// One request to several running steps, and their answers as one.
//
// Thread safety: functions without state.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/task.h"
#include "web/http/http.h"
#include "web/route/route.h"

namespace sonde::web {

// Asks each step for PATH?job=ID, all at the same time, since their servers may not answer. Nothing
// for a step whose server this is.
Task<std::vector<std::optional<Response>>> ForwardToEach(const Context& context, std::string path,
                                                         std::vector<JobStep> ids);

// What the answers have between their brackets, "[]" or "{}", between one pair of them. Errors and
// other answers are left out.
Response Together(const std::vector<std::optional<Response>>& answers, std::string_view brackets);

}  // namespace sonde::web
