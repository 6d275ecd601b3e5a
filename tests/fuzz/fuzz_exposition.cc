// What an exporter or a metric-proxy serves, as `sonde join` reads it; and what it may be pointed
// at.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "cli/join/joined.h"
#include "cli/join/proxy_snapshot.h"
#include "web/source/scrape_target.h"

namespace {

class NullSink final : public sonde::join::Sink {
 public:
  void* Register(const sonde::Series& series) override {
    if (!sonde::CheckMetricName(series.metric.name).ok()) __builtin_trap();
    for (const auto& [key, value] : series.tags.pairs()) {
      if (!sonde::CheckTag(key, value).ok()) __builtin_trap();
    }
    return this;
  }
  void Set(void* /*handle*/, double /*value*/) override {}
  void Add(void* /*handle*/, double value) override {
    if (!(value >= 0)) __builtin_trap();
  }
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  NullSink sink;
  sonde::join::Joined joined({.instance = "localhost:1", .max_series = 100}, sink);
  for (int scrape = 0; scrape < 2; ++scrape) {
    const sonde::Status status = joined.Take(text.substr(scrape), 0.1);
    if (!status.ok() && status.message().empty()) __builtin_trap();
    if (size == 0) break;
  }
  if (joined.series() > 100) __builtin_trap();
  if (sonde::join::IsSnapshot(text)) {
    const auto made = sonde::join::ExpositionOf(text);
    // What is written is read back.
    if (made.ok() && !joined.Take(*made, 0.1).ok()) __builtin_trap();
    if (!made.ok() && made.status().message().empty()) __builtin_trap();
  }
  const auto target = sonde::web::ParseScrapeTarget(text.substr(0, 300));
  if (target.ok() && sonde::web::ParseScrapeTarget(target->Url()).value().Url() != target->Url()) {
    __builtin_trap();
  }
  return 0;
}
