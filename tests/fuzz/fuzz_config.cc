// sonde.conf, its values, and durations: whatever a file holds is a configuration within its bounds
// or an error.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "core/config.h"
#include "core/log.h"
#include "core/time.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace sonde;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto config = ParseConfig(text, "sonde.conf"); config.ok()) {
    if (config->fanout < 2 || config->fanout > 256 || config->fabric_after < 0) std::abort();
    (void)ArchivePath(*config, "ada", 1000, "/home/ada");
  }
  if (const auto duration = ParseDuration(text); duration.ok() && *duration < 0) std::abort();
  (void)log::ParseLevel(text).ok();
  return 0;
}
