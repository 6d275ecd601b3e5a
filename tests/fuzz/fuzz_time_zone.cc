// A time zone's file, and times in what it says, of which every offset is small.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "core/time_zone.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto zone =
      sonde::TimeZone::Decode(std::string_view(reinterpret_cast<const char*>(data), size));
  if (!zone.ok()) return 0;
  constexpr int64_t kMost = int64_t{8} * 86400;
  for (int64_t time = -1'000'000'000; time < 8'000'000'000; time += 77'777'777) {
    if (std::abs(zone->OffsetAt(time)) > kMost) abort();
    (void)zone->FromLocal(time);
  }
  for (const int64_t time : {INT64_MIN / 2, INT64_MAX / 2}) (void)zone->FromLocal(time);
  return 0;
}
