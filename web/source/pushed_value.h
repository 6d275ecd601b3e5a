// A metric of the application that comes over HTTP instead of by libsonde: metric-proxy's /push,
// /set and /accumulate. As bytes it travels from the head to the node that records it.
//
// Thread safety: values, and functions without state.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core/metric.h"
#include "core/status.h"

namespace sonde::web {

// A step takes so many, each with a name and tags of at most so many bytes.
inline constexpr size_t kMaxPushedMetrics = 1000;
inline constexpr size_t kMaxPushedKey = 1024;
inline constexpr size_t kMaxPushedHelp = 256;

struct PushedValue {
  // Values go over links: new ones come last.
  enum class Kind : uint8_t {
    kRegister = 0,  // begins at 0; one that is there already stays as it is
    kSet = 1,
    kAdd = 2,
  };
  Kind kind = Kind::kRegister;
  Series series;  // name, tags, help and type; counters are added up over nodes
  double value = 0;
  bool operator==(const PushedValue&) const = default;
};

// A metric with tags as metric-proxy writes it: name, or name{key="value",...}. kInvalid for what
// Sonde does not take as a name or tag, and for tags that it gives itself (host, job, task, stat).
Result<Series> ParsePushedKey(std::string_view key);

std::string EncodePushed(const PushedValue& value);
// Trusts nothing.
Result<PushedValue> DecodePushed(std::string_view bytes);

}  // namespace sonde::web
