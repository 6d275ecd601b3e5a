// Profiles and descriptions come from files and from the head over HTTP. Whatever is accepted must
// be written and read back as the same, and must be fit to be printed.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "profiles/model/profile.h"
#include "profiles/report/report.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto job = sonde::DescriptionFromJson(text); job.ok()) {
    const std::string json = sonde::DescriptionToJson(*job);
    const auto again = sonde::DescriptionFromJson(json);
    if (!again.ok() || sonde::DescriptionToJson(*again) != json) std::abort();
  }
  if (const auto profile = sonde::ProfileFromJson(text); profile.ok()) {
    const std::string json = sonde::ProfileToJson(*profile);
    const auto again = sonde::ProfileFromJson(json);
    if (!again.ok() || sonde::ProfileToJson(*again) != json) std::abort();
    for (const char c : sonde::RenderReport(*profile, {})) {
      if (static_cast<unsigned char>(c) < 0x20 && c != '\n') std::abort();
    }
  }
  return 0;
}
