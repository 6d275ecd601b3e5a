#include "web/source/pushed_value.h"

#include <fmt/core.h>

#include <cmath>

#include "core/bytes.h"
#include "series/alarm/rule.h"

namespace sonde::web {
namespace {

constexpr size_t kMaxPushedTags = 8;

Status CheckPushed(const Series& series) {
  SONDE_RETURN_IF_ERROR(CheckMetricName(series.metric.name));
  if (series.tags.pairs().size() > kMaxPushedTags) {
    return {Code::kInvalid, fmt::format("key: more than {} tags", kMaxPushedTags)};
  }
  for (const auto& [key, value] : series.tags.pairs()) {
    SONDE_RETURN_IF_ERROR(CheckTag(key, value));
    for (const std::string_view own : {"host", "job", "task", "stat"}) {
      if (key == own) {
        return {Code::kInvalid, fmt::format("key: the tag {} is given by Sonde itself", key)};
      }
    }
  }
  return {};
}

}  // namespace

Result<Series> ParsePushedKey(std::string_view key) {
  if (key.empty() || key.size() > kMaxPushedKey) {
    return Status(
        Code::kInvalid,
        fmt::format("key: expected a metric, NAME or NAME{{key=\"value\",...}}, of at most "
                    "{} bytes",
                    kMaxPushedKey));
  }
  Series series;
  series.metric.type = MetricType::kCounter;
  SONDE_RETURN_IF_ERROR(alarms::ParseSelector(key, series.metric.name, series.tags).Within("key"));
  SONDE_RETURN_IF_ERROR(CheckPushed(series));
  return series;
}

std::string EncodePushed(const PushedValue& value) {
  std::string bytes;
  ByteWriter out(bytes);
  out.Fixed(static_cast<uint8_t>(value.kind));
  out.Fixed(static_cast<uint8_t>(value.series.metric.type));
  out.Fixed(value.value);
  out.Text(value.series.metric.name);
  out.Text(value.series.metric.help);
  out.Varint(value.series.tags.pairs().size());
  for (const auto& [key, tag] : value.series.tags.pairs()) {
    out.Text(key);
    out.Text(tag);
  }
  return bytes;
}

Result<PushedValue> DecodePushed(std::string_view bytes) {
  const Status bad(Code::kCorrupt, "a pushed value: malformed");
  ByteReader in(bytes);
  PushedValue value;
  const auto kind = in.Fixed<uint8_t>();
  const auto type = in.Fixed<uint8_t>();
  value.kind = static_cast<PushedValue::Kind>(kind);
  value.series.metric.type = static_cast<MetricType>(type);
  value.value = in.Fixed<double>();
  value.series.metric.name = in.Text(kMaxNameLength);
  value.series.metric.help = in.Text(kMaxPushedHelp);
  const size_t tags = in.Count(2, kMaxPushedTags);
  for (size_t i = 0; i < tags; ++i) {
    const std::string key(in.Text(kMaxNameLength));
    value.series.tags.Set(key, in.Text(kMaxNameLength));
  }
  if (!in.done() || kind > static_cast<uint8_t>(PushedValue::Kind::kAdd) ||
      type > static_cast<uint8_t>(MetricType::kCounter) || !std::isfinite(value.value) ||
      !names::IsPlainText(value.series.metric.help)) {
    return bad;
  }
  SONDE_RETURN_IF_ERROR(CheckPushed(value.series));
  return value;
}

}  // namespace sonde::web
