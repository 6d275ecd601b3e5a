// Parameters that are lists.
//
// Thread safety: a function without state.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/status.h"
#include "web/http/http.h"

namespace sonde::web {

// The parts of a parameter between commas, whichever of several parameters of that name they are
// in.
// kInvalid: one is empty, or there are more than `most`.
Result<std::vector<std::string>> PartsOf(const Request& request, std::string_view name,
                                         size_t most);

}  // namespace sonde::web
