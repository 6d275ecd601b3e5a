// Reading small files of the kernel and of administrators.
//
// Thread safety: a function without state.
#pragma once

#include <cstddef>
#include <string>

#include "core/status.h"

namespace sonde::launch {

// A whole file of at most so many MiB.
Result<std::string> ReadFile(const std::string& path, size_t most_mib = 1);

}  // namespace sonde::launch
