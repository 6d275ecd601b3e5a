// Event sets may come from a site's directory: whatever a file holds, it is refused with a line's
// number or becomes a set whose formulas can be evaluated, and /proc/cpuinfo may be anything.
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <string_view>
#include <vector>

#include "daemon/collect/counters/event_set.h"

namespace {

void Check(bool good) {
  if (!good) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace sonde::collect;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  ParseProcessor(text);
  const sonde::Result<EventSet> set = ParseEventSet(text, "input");
  if (!set.ok()) {
    Check(set.status().message().starts_with("input:"));
    return 0;
  }
  for (const EventSet::Binding& binding : set->formulas) {
    const std::vector<double> values(binding.formula.names().size(), 3);
    const double value = binding.formula.Evaluate(values);
    Check(std::isnan(value) || std::isfinite(value));
  }
  set->IsFor({"GenuineIntel", 6, 0x55});
  return 0;
}
