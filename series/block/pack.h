// Bytes as one zstd frame that states its unfolded size: schemas and texts on links and in files.
//
// Thread safety: functions without state.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "core/status.h"

namespace sonde {

std::string Pack(std::string_view plain);
// kCorrupt unless `packed` is one whole frame of at most `limit` bytes unfolded. `what` is named in
// messages.
Result<std::string> Unpack(std::string_view packed, size_t limit, std::string_view what);

}  // namespace sonde
