// The file of peaks that were measured, and /proc/cpuinfo: whatever they hold is peaks within their
// bounds or an error, and peaks come back from their own text.
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "core/machine/processor_type.h"
#include "insight/steps/peaks_file.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace sonde;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const ProcessorType type = ParseProcessorType(text);
  if (type.model.size() > kMaxProcessorModel) std::abort();
  const auto all = insight::PeaksFromJson(text, "peaks.json");
  if (!all.ok()) return 0;
  for (const insight::NodePeaks& one : *all) {
    const auto roof = insight::RoofOf(one, one.allowed);
    if (!roof.ok() || !(roof->flops > 0) || !std::isfinite(roof->Ridge())) std::abort();
    if (!one.type.known() || one.allowed > one.type.cpus) std::abort();
  }
  const auto again = insight::PeaksFromJson(insight::PeaksToJson(*all), "peaks.json");
  if (!again.ok() || *again != *all) std::abort();
  return 0;
}
