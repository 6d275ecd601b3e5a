// Profiles as OpenMetrics text, for `promtool tsdb create-blocks-from openmetrics` and other
// readers.
//
// In this format all samples of a family are together, so the rows are read again for each group of
// families that fits into memory.
//
// Thread safety: functions without state.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "core/status.h"
#include "forward/formats/destination.h"
#include "profiles/archive/archive.h"

namespace sonde::forward {

struct Written {
  uint64_t samples = 0;
  uint64_t series = 0;
};
// Samples in memory at a time, 16 bytes each, unless one family alone has more.
inline constexpr uint64_t kMaxSamplesHeld = 4'000'000;

using TextSink = std::function<Status(std::string_view)>;
// Ends with "# EOF". `destination` says which rows and metrics.
Result<Written> WriteOpenMetrics(const Archive& archive, std::vector<ProfileEntry> profiles,
                                 const Destination& destination, const TextSink& sink,
                                 uint64_t held = kMaxSamplesHeld);

// Counts what would be sent: keeps and writes nothing.
Result<Written> CountSamples(const Archive& archive, const std::vector<ProfileEntry>& profiles,
                             const Destination& destination);

}  // namespace sonde::forward
