// What kind of content a running head may have its answers pass on as.
//
// A head is a program of its user's, who may have put another one in its place; a site's server
// passes on what it says from the address at which other users, and administrators, have their
// pages.
//
// Header-only. Thread safety: functions without state.
#pragma once

#include <algorithm>
#include <array>
#include <string>
#include <string_view>

#include "core/text/ascii.h"

namespace sonde::serve {

// The kind that it says, if no browser takes that for a page, a style or a program; any other one
// is application/octet-stream, which browsers save.
inline std::string RelayedType(std::string_view said) {
  constexpr std::array<std::string_view, 6> kKinds = {
      "application/json",     "application/openmetrics-text",
      "application/x-ndjson", "text/csv",
      "text/event-stream",    "text/plain"};
  const std::string_view kind = Trim(said.substr(0, said.find(';')), " ");
  const bool known = std::find(kKinds.begin(), kKinds.end(), kind) != kKinds.end();
  return known ? std::string(said) : "application/octet-stream";
}

}  // namespace sonde::serve
