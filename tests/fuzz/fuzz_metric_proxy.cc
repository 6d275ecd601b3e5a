// What a program for metric-proxy sends to its node's daemon: one message after the other, and what
// becomes of the names in them.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "daemon/collect/proxy/message.h"
#include "daemon/collect/proxy/peer_rank.h"
#include "daemon/collect/proxy/series_name.h"

namespace {

void CheckSeries(std::string_view name) {
  const sonde::Series series = sonde::collect::ProxySeries(name);
  if (!sonde::CheckMetricName(series.metric.name).ok()) __builtin_trap();
  if (series.tags.pairs().size() > sonde::collect::kMostProxyTags) __builtin_trap();
  for (const auto& [key, value] : series.tags.pairs()) {
    if (!sonde::CheckTag(key, value).ok()) __builtin_trap();
    if (key == "task" || key == "host" || key == "job" || key == "stat") __builtin_trap();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  sonde::collect::ProxyMessage message;
  for (std::string_view left = text; !left.empty();) {
    const std::string_view one = left.substr(0, left.find('\0'));
    left.remove_prefix(one.size() < left.size() ? one.size() + 1 : one.size());
    const sonde::Status read = sonde::collect::DecodeProxyMessage(one, message);
    if (!read.ok() && read.message().empty()) __builtin_trap();
    if (!read.ok() || message.kind == sonde::collect::ProxyMessage::Kind::kOther) continue;
    if (message.name.size() > one.size() || message.help.size() > one.size()) __builtin_trap();
    CheckSeries(message.name);
  }
  CheckSeries(text);
  if (sonde::collect::RankInEnvironment(text) < -1) __builtin_trap();
  return 0;
}
