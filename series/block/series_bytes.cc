#include "series/block/series_bytes.h"

namespace sonde {
namespace {

constexpr size_t kMaxUnitLength = kMaxNameLength;  // as an application may register it

// Never to change: stands beside the reduction, in its byte, where a metric has its spread.
constexpr uint8_t kSpread = 16;

}  // namespace

void WriteSeries(const Series& series, ByteWriter& out) {
  const Metric& metric = series.metric;
  out.Text(metric.name);
  out.Text(metric.unit);
  out.Text(metric.help);
  out.Fixed(static_cast<uint8_t>(metric.type));
  out.Fixed(metric.level);
  out.Fixed(
      static_cast<uint8_t>(static_cast<uint8_t>(metric.reduction) | (metric.spread ? kSpread : 0)));
  out.Varint(series.tags.pairs().size());
  for (const auto& [key, value] : series.tags.pairs()) {
    out.Text(key);
    out.Text(value);
  }
}

Series ReadSeries(ByteReader& in) {
  Series series;
  Metric& metric = series.metric;
  metric.name = in.Text(kMaxNameLength);
  metric.unit = in.Text(kMaxUnitLength);
  metric.help = in.Text(kMaxTextLength);
  const auto type = in.Fixed<uint8_t>();
  metric.level = in.Fixed<uint8_t>();
  const auto how = in.Fixed<uint8_t>();
  const auto reduction = static_cast<uint8_t>(how & ~kSpread);
  metric.spread = (how & kSpread) != 0;
  metric.type = static_cast<MetricType>(type);
  metric.reduction = static_cast<Reduction>(reduction);
  // Types, levels and reductions that a later version adds are kept as the numbers that they are.
  bool good = CheckMetricName(metric.name).ok();
  const size_t tags = in.Count(4, kMaxSeriesTags);
  std::string_view previous;
  for (size_t i = 0; i < tags && good; ++i) {
    const std::string_view key = in.Text(kMaxNameLength);
    const std::string_view value = in.Text(kMaxNameLength);
    good = key > previous && CheckTag(key, value).ok();
    if (good) series.tags.Set(key, value);
    previous = key;
  }
  if (!good) in.Fail();
  return series;
}

}  // namespace sonde
