// Text from outside, made safe to show on a terminal and in a log. What a user has typed, what an
// application calls its metrics and what a peer has sent may hold ends of lines, with which a part
// of it looks like somebody else's line, and codes that a terminal obeys.
//
// Header-only and free of dependencies, as names.h is, and for the same users.
//
// Thread safety: functions without state.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>

#include "core/text/ascii.h"
#include "core/text/names.h"

namespace sonde {

// The length of the character that starts at text[i]; 0 if it cannot be shown: a byte that is not
// UTF-8, a control character (also of C1, with which codes for terminals begin), a separator of
// lines, or one that turns the direction in which the text around it is shown.
constexpr size_t PrintableLength(std::string_view text, size_t i) {
  const size_t length = names::Utf8Length(text, i);
  const auto byte = [&](size_t k) { return static_cast<unsigned char>(text[i + k]); };
  switch (length) {
    case 1:
      return byte(0) < 0x20 || byte(0) == 0x7f ? 0 : 1;
    case 2:  // U+0080 to U+009F
      return byte(0) == 0xc2 && byte(1) < 0xa0 ? 0 : 2;
    case 3:  // U+2028 to U+202E, U+2066 to U+2069
      if (byte(0) != 0xe2) return 3;
      return (byte(1) == 0x80 && byte(2) >= 0xa8 && byte(2) <= 0xae) ||
                     (byte(1) == 0x81 && byte(2) >= 0xa6 && byte(2) <= 0xa9)
                 ? 0
                 : 3;
    default:
      return length;
  }
}

// `text` with a '?' for each character that cannot be shown.
inline std::string Printable(std::string_view text) {
  std::string shown;
  shown.reserve(text.size());
  for (size_t i = 0; i < text.size();) {
    const size_t length = PrintableLength(text, i);
    if (length == 0) {
      shown += '?';
    } else {
      shown.append(text.substr(i, length));
    }
    i += length == 0 ? std::max<size_t>(names::Utf8Length(text, i), 1) : length;
  }
  return shown;
}

// `text` as one printable line: the end of a line becomes "; ", and lines without text are left
// out. Of a text with more than `most` bytes the beginning or, if `keep_end`, the end.
inline std::string OneLine(std::string_view text, size_t most, bool keep_end = false) {
  std::string line;
  while (!text.empty()) {
    const std::string_view part = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(part.size() + 1, text.size()));
    const std::string_view words = TrimLine(part);
    if (words.empty()) continue;
    if (!line.empty()) line += "; ";
    line += Printable(words);
  }
  if (line.size() <= most) return line;
  const auto inside = [&](size_t at) {
    return at < line.size() && (static_cast<unsigned char>(line[at]) & 0xc0) == 0x80;
  };
  size_t cut = keep_end ? line.size() - most : most;
  while (inside(cut)) keep_end ? ++cut : --cut;
  return keep_end ? "..." + line.substr(cut) : line.substr(0, cut) + "...";
}

}  // namespace sonde
