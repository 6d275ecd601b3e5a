// Remarks as bindings take them from a program: any text becomes one that Sonde shows.
//
// A remark often quotes what the program met, a path or an error of several lines. Refusing it, or
// failing because of it, would help nobody.
//
// Header-only and free of dependencies, as names.h is, and for the same users.
//
// Thread safety: no state.
#pragma once

#include <cstddef>
#include <string_view>

#include "core/text/names.h"

namespace sonde {

inline constexpr size_t kMaxRemarkLength = 192;

// Writes `text` as plain text of at most kMaxRemarkLength bytes and a final '\0' into `out`: a
// control character becomes a blank, a byte that is no UTF-8 a '?', and a text that is too long is
// cut between two characters and ends in "...". Blanks around the text are left out. Returns the
// length, which is 0 if nothing remains.
constexpr size_t MakeRemark(std::string_view text, char (&out)[kMaxRemarkLength + 1]) {
  constexpr std::string_view kCut = "...";
  const auto is_blank = [](char c) { return static_cast<unsigned char>(c) <= 0x20 || c == 0x7f; };
  while (!text.empty() && is_blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_blank(text.back())) text.remove_suffix(1);
  size_t size = 0, fits = 0;  // `fits`: up to where it may be cut
  for (size_t i = 0; i < text.size();) {
    const size_t length = names::Utf8Length(text, i);
    const size_t bytes = length == 0 ? 1 : length;
    if (size + bytes > kMaxRemarkLength) {
      for (const char c : kCut) out[fits++] = c;
      size = fits;
      break;
    }
    if (length == 0) {
      out[size++] = '?';
    } else if (length == 1) {
      out[size++] = is_blank(text[i]) ? ' ' : text[i];
    } else {
      for (size_t k = 0; k < length; ++k) out[size++] = text[i + k];
    }
    i += bytes;
    if (size + kCut.size() <= kMaxRemarkLength) fits = size;
  }
  out[size] = '\0';
  return size;
}

}  // namespace sonde
