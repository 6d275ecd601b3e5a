#include "profiles/json/writer.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include "core/text/printable.h"

namespace sonde {
namespace {

// In a JSON string, between its quotes.
constexpr bool StandsForItself(char c) { return c >= 0x20 && c < 0x7f && c != '"' && c != '\\'; }

}  // namespace

JsonWriter& JsonWriter::BeginObject() {
  Separate();
  out_.push_back('{');
  first_ = true;
  return *this;
}

JsonWriter& JsonWriter::EndObject() {
  out_.push_back('}');
  first_ = false;
  return *this;
}

JsonWriter& JsonWriter::BeginArray() {
  Separate();
  out_.push_back('[');
  first_ = true;
  return *this;
}

JsonWriter& JsonWriter::EndArray() {
  out_.push_back(']');
  first_ = false;
  return *this;
}

JsonWriter& JsonWriter::Key(std::string_view key) {
  Separate();
  Quote(key);
  out_.push_back(':');
  first_ = true;
  return *this;
}

JsonWriter& JsonWriter::Value(std::string_view text) {
  Separate();
  Quote(text);
  first_ = false;
  return *this;
}

JsonWriter& JsonWriter::Value(double number) {
  if (!std::isfinite(number)) return Null();
  std::array<char, 32> text;
  const auto end = std::to_chars(text.data(), text.data() + text.size(), number).ptr;
  return Raw({text.data(), static_cast<size_t>(end - text.data())});
}

JsonWriter& JsonWriter::Raw(std::string_view json) {
  Separate();
  out_.append(json);
  first_ = false;
  return *this;
}

void JsonWriter::Separate() {
  if (!first_) out_.push_back(',');
  first_ = false;
}

void JsonWriter::Quote(std::string_view text) {
  static constexpr std::string_view kHex = "0123456789abcdef";
  out_.push_back('"');
  for (;;) {
    // Nearly all there is: names of metrics and tags.
    const auto end = std::find_if_not(text.begin(), text.end(), StandsForItself);
    out_.append(text.begin(), end);
    text.remove_prefix(static_cast<size_t>(end - text.begin()));
    if (text.empty()) break;
    const size_t n = names::Utf8Length(text, 0);
    const auto c = static_cast<unsigned char>(text[0]);
    if (n == 0) {
      out_.append("\xef\xbf\xbd");
    } else if (n > 1 && PrintableLength(text, 0) != 0) {
      out_.append(text.substr(0, n));
    } else if (n > 1) {
      // Codes for terminals may begin with it: JSON is read there, too.
      const auto bits = [&](size_t at) { return static_cast<unsigned>(text[at]) & 0x3f; };
      const unsigned code =
          n == 2 ? (c & 0x1fU) << 6 | bits(1) : (c & 0x0fU) << 12 | bits(1) << 6 | bits(2);
      out_.append("\\u");
      for (const int shift : {12, 8, 4, 0}) out_.push_back(kHex[code >> shift & 15]);
    } else if (c == '"' || c == '\\') {
      out_.push_back('\\');
      out_.push_back(text[0]);
    } else {
      out_.append("\\u00");
      out_.push_back(kHex[c >> 4]);
      out_.push_back(kHex[c & 15]);
    }
    text.remove_prefix(n == 0 ? 1 : n);
  }
  out_.push_back('"');
}

}  // namespace sonde
