// How names, tags and texts may look, and how long they may be.
//
// Header-only and free of dependencies: libsonde checks what the application registers, and the
// daemon what it reads, by the same rules.
#pragma once

#include <cstddef>
#include <string_view>

namespace sonde {

// Limits on what the application and peers may send.
inline constexpr size_t kMaxNameLength = 128;
inline constexpr size_t kMaxTextLength = 512;  // help
inline constexpr size_t kMaxTags = 8;

namespace names {

constexpr bool IsLetter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}
constexpr bool IsDigit(char c) { return c >= '0' && c <= '9'; }

// The length of the UTF-8 sequence that starts at text[i], 0 if there is none.
constexpr size_t Utf8Length(std::string_view text, size_t i) {
  const auto byte = [&](size_t k) { return static_cast<unsigned char>(text[k]); };
  const unsigned char first = byte(i);
  if (first < 0x80) return 1;
  const size_t n = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : first >= 0xc2 ? 2 : 0;
  if (n == 0 || first > 0xf4 || i + n > text.size()) return 0;
  for (size_t k = 1; k < n; ++k) {
    if ((byte(i + k) & 0xc0) != 0x80) return 0;
  }
  if (first == 0xe0 && byte(i + 1) < 0xa0) return 0;  // overlong
  if (first == 0xed && byte(i + 1) > 0x9f) return 0;  // surrogates
  if (first == 0xf0 && byte(i + 1) < 0x90) return 0;  // overlong
  if (first == 0xf4 && byte(i + 1) > 0x8f) return 0;  // beyond U+10FFFF
  return n;
}

// The beginning of a UTF-8 text: at most so many bytes, with whole characters.
constexpr std::string_view Beginning(std::string_view text, size_t most) {
  if (text.size() <= most) return text;
  while (most > 0 && (static_cast<unsigned char>(text[most]) & 0xc0) == 0x80) --most;
  return text.substr(0, most);
}

// UTF-8 without control characters; may be empty.
constexpr bool IsPlainText(std::string_view text) {
  for (size_t i = 0; i < text.size();) {
    const size_t n = Utf8Length(text, i);
    if (n == 0 || static_cast<unsigned char>(text[i]) < 0x20 || text[i] == 0x7f) return false;
    i += n;
  }
  return true;
}

// [a-zA-Z_:][a-zA-Z0-9_:.-]*, at most kMaxNameLength bytes.
constexpr bool IsMetricName(std::string_view name) {
  if (name.empty() || name.size() > kMaxNameLength) return false;
  if (!IsLetter(name[0]) && name[0] != ':') return false;
  for (const char c : name) {
    if (!IsLetter(c) && !IsDigit(c) && c != ':' && c != '.' && c != '-') return false;
  }
  return true;
}

// [a-zA-Z_][a-zA-Z0-9_]*, at most kMaxNameLength bytes.
constexpr bool IsTagKey(std::string_view key) {
  if (key.empty() || key.size() > kMaxNameLength || !IsLetter(key[0])) return false;
  for (const char c : key) {
    if (!IsLetter(c) && !IsDigit(c)) return false;
  }
  return true;
}

constexpr bool IsTagValue(std::string_view value) {
  return !value.empty() && value.size() <= kMaxNameLength && IsPlainText(value);
}

}  // namespace names
}  // namespace sonde
