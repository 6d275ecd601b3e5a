// The messages of programs that are linked with the client library of metric-proxy v2, as they come
// over its Unix socket: a JSON text each, with a zero byte behind it.
//
//   {"JobDesc": {...}}                          once, first: what the program knows of its job
//   {"Desc": {"name": N, "doc": D, "ctype": T}} a metric
//   {"Value": {"name": N, "value": T}}          what became of one since its last message
//   T: {"Counter": {"ts": U, "value": V}}, V to be added; or
//      {"Gauge": {"min": V, "max": V, "hits": H, "total": V}}, whose value is total / hits
//
// Numbers are null if they are not finite. Other members are passed over, and so are messages and
// kinds of metrics that a later client library may have.
//
// Thread safety: functions without state.
#pragma once

#include <string>
#include <string_view>

#include "core/metric.h"
#include "core/status.h"

namespace sonde::collect {

struct ProxyMessage {
  enum class Kind : unsigned char { kOther, kMetric, kValue };
  Kind kind = Kind::kOther;
  MetricType type = MetricType::kGauge;  // kCounter or kGauge
  std::string name;                      // any text
  std::string help;                      // of kMetric; any text
  // Of kValue: what a counter grows by, what a gauge is. NaN: nothing is known.
  double value = 0;
};

// Reads one message, without its zero byte. kCorrupt if it is none. The texts of `message` keep
// their memory, so that it can be used for one message after the other.
Status DecodeProxyMessage(std::string_view bytes, ProxyMessage& message);

}  // namespace sonde::collect
