// Lines of sonde.conf that name receivers, records of what was sent, and receivers' answers.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "forward/formats/destination.h"
#include "forward/formats/encoder.h"
#include "forward/record.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace sonde::forward;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto to = ParseDestination(text);
  if (to.ok()) {
    if (to->url.empty() || to->batch == 0 || to->batch > kMaxBatch) std::abort();
    (void)Wants(*to, "node_load1");
    if (!IsFile(to->protocol)) (void)Encoder::Make(*to)->MakeProbe(to->url);
  }
  const auto record = ParseRecord(text);
  if (record.ok() && record->split && record->marks.size() > size) std::abort();
  for (const auto& encoder : {MakeRemoteWrite(), MakeInflux(), MakeOpenTsdb()}) {
    const Verdict verdict = encoder->Judge({size > 0 ? 200 + data[0] : 400, 0, std::string(text)});
    if (!sonde::names::IsPlainText(verdict.why)) std::abort();
  }
  return 0;
}
