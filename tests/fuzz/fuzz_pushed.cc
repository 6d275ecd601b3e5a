// Values that are pushed over HTTP, exporters that are to be scraped, what Prometheus says that it
// takes, and what a head answers to `sonde serve`.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "web/opentsdb/ask.h"
#include "web/prometheus/exposition_text.h"
#include "web/source/pushed_value.h"
#include "web/source/scrape_target.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto series = sonde::web::ParsePushedKey(text); series.ok()) {
    sonde::web::PushedValue value;
    value.series = *series;
    const auto back = sonde::web::DecodePushed(sonde::web::EncodePushed(value));
    if (!back.ok() || !(*back == value)) __builtin_trap();
  }
  if (const auto value = sonde::web::DecodePushed(text); value.ok()) {
    if (!std::isfinite(value->value)) __builtin_trap();
    if (!sonde::CheckMetricName(value->series.metric.name).ok()) __builtin_trap();
    const auto again = sonde::web::DecodePushed(sonde::web::EncodePushed(*value));
    if (!again.ok() || !(*again == *value)) __builtin_trap();
  }
  if (const auto target = sonde::web::DecodeScrape(text); target.ok()) {
    const auto again = sonde::web::DecodeScrape(sonde::web::EncodeScrape(*target));
    if (!again.ok() || again->Url() != target->Url() || again->every != target->every) {
      __builtin_trap();
    }
  }
  sonde::web::ChooseFormat(text);
  if (const auto results = sonde::web::ResultsFromJson(text); results.ok()) {
    for (const auto& result : *results) {
      for (const auto& point : result.points) {
        if (point.time < 0 || point.time > sonde::kMaxQueryTime) __builtin_trap();
      }
    }
  }
  return 0;
}
