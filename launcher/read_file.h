// Reading small files of the kernel and of administrators.
//
// Thread safety: a function without state.
#pragma once

#include <string>

#include "core/status.h"

namespace sonde::launch {

// A whole file of at most 1 MiB.
Result<std::string> ReadFile(const std::string& path);

}  // namespace sonde::launch
