// What programs for metric-proxy call a metric, as a series: NAME, or NAME{key="value",...}.
//
// Any text becomes a series that Sonde accepts, and two texts never become the same one, unless
// they differ in blanks, in the order of labels or in labels without a value. What a name, a tag or
// its key cannot have becomes '_' or '?'; what is too long is cut; labels that mean something else
// here get the prefix exported_. Where something was changed the tag proxy_name has the text, or as
// much of it as a tag can have and a hash of all of it.
//
// Thread safety: functions without state.
#pragma once

#include <cstddef>
#include <string_view>

#include "core/metric.h"

namespace sonde::collect {

inline constexpr std::string_view kProxyNameTag = "proxy_name";
// With that tag; one more is the rank.
inline constexpr size_t kMostProxyTags = kMaxTags - 1;

// Name and tags alone.
Series ProxySeries(std::string_view text);

}  // namespace sonde::collect
