// Tags that users write on their steps, NAME=VALUE: by --telemetry-tag, SONDE_TAGS, `sonde tag`.
//
// Header-only and free of dependencies: it is compiled into spank_sonde.so.
#pragma once

#include <cstddef>
#include <string_view>

#include "core/text/names.h"

namespace sonde {

inline constexpr size_t kMaxUserTags = 32;
inline constexpr size_t kMaxUserTagName = 64;
inline constexpr size_t kMaxUserTagValue = 256;
// A profile with this tag is not deleted by the archive's limits, whatever its value.
inline constexpr std::string_view kKeepTag = "keep";

// A name of letters, digits, '_', '-' and '.'; a value that is printable and may be empty. Commas
// separate the tags of a list.
constexpr bool ValidUserTag(std::string_view name, std::string_view value) {
  if (name.empty() || name.size() > kMaxUserTagName || value.size() > kMaxUserTagValue) {
    return false;
  }
  for (const char c : name) {
    if (!names::IsLetter(c) && !names::IsDigit(c) && c != '-' && c != '.') return false;
  }
  return value.find(',') == std::string_view::npos && names::IsPlainText(value);
}
inline constexpr std::string_view kUserTagExpected =
    "expected NAME=VALUE or NAME; a name has up to 64 letters, digits, '_', '-' and '.', a value "
    "up "
    "to 256 bytes of text without a comma";

inline constexpr std::string_view kUserTagsExpected =
    "expected up to 32 tags NAME=VALUE or NAME separated by commas, such as campaign=winter,keep";
inline constexpr size_t kMaxUserTagList = 8192;

// Calls `f(name, value)` for each tag of "a=1,b=2,keep"; false if the list is wrong or too long.
template <typename F>
constexpr bool ForEachUserTag(std::string_view list, const F& f) {
  size_t count = 0;
  while (!list.empty()) {
    const size_t comma = list.find(',');
    const std::string_view tag = list.substr(0, comma);
    const size_t equals = tag.find('=');
    const std::string_view name = tag.substr(0, equals);
    const std::string_view value =
        equals == std::string_view::npos ? std::string_view{} : tag.substr(equals + 1);
    if (!ValidUserTag(name, value) || ++count > kMaxUserTags) return false;
    f(name, value);
    if (comma == std::string_view::npos) break;
    list.remove_prefix(comma + 1);
  }
  return true;
}

constexpr bool ValidUserTagList(std::string_view list) {
  return !list.empty() && ForEachUserTag(list, [](std::string_view, std::string_view) {});
}

}  // namespace sonde
