// A value of an application's metric that comes over HTTP instead of through libsonde: by
// metric-proxy's /push, /set or /accumulate. The head sends its bytes to the node that records it.
//
// Thread safety: values, and functions without state.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core/metric.h"
#include "core/status.h"

namespace sonde::web {

// Limits of a step: the number of such metrics, and the bytes of each one's name and tags.
inline constexpr size_t kMaxPushedMetrics = 1000;
inline constexpr size_t kMaxPushedKey = 1024;
inline constexpr size_t kMaxPushedHelp = 256;

struct PushedValue {
  // Values are sent over links: new ones come last.
  enum class Kind : uint8_t {
    kRegister = 0,  // begins at 0; an existing one stays as it is
    kSet = 1,
    kAdd = 2,
  };
  Kind kind = Kind::kRegister;
  Series series;  // name, tags, help and type; counters are summed over nodes
  double value = 0;
  bool operator==(const PushedValue&) const = default;
};

// A metric with tags as metric-proxy writes it: name, or name{key="value",...}. kInvalid for names
// or tags that Sonde does not accept, and for tags that Sonde itself adds (host, job, task, stat).
Result<Series> ParsePushedKey(std::string_view key);

std::string EncodePushed(const PushedValue& value);
// Trusts nothing.
Result<PushedValue> DecodePushed(std::string_view bytes);

}  // namespace sonde::web
