#include "daemon/collect/proxy/json_reader.h"

#include <algorithm>
#include <charconv>

#include "core/text/names.h"
#include "daemon/collect/read/parse.h"

namespace sonde::collect {
namespace {

void AppendUtf8(unsigned code, std::string& to) {
  const auto add = [&](unsigned byte) { to += static_cast<char>(byte); };
  if (code < 0x80) return add(code);
  if (code < 0x800) {
    add(0xc0 | code >> 6);
  } else if (code < 0x10000) {
    add(0xe0 | code >> 12);
    add(0x80 | (code >> 6 & 0x3f));
  } else {
    add(0xf0 | code >> 18);
    add(0x80 | (code >> 12 & 0x3f));
    add(0x80 | (code >> 6 & 0x3f));
  }
  add(0x80 | (code & 0x3f));
}

}  // namespace

bool JsonReader::AtEnd() {
  at_ = std::min(text_.find_first_not_of(" \t\r\n", at_), text_.size());
  return at_ == text_.size();
}

bool JsonReader::Take(char wanted) {
  if (AtEnd() || text_[at_] != wanted) return false;
  ++at_;
  return true;
}

bool JsonReader::TakeWord(std::string_view word) {
  if (!text_.substr(at_).starts_with(word)) return false;
  at_ += word.size();
  return true;
}

bool JsonReader::TakeDigits() {
  const size_t begin = at_;
  while (names::IsDigit(Next())) ++at_;
  return at_ != begin;
}

bool JsonReader::String(std::string& value) {
  value.clear();
  if (!Take('"')) return false;
  while (at_ < text_.size()) {
    const char c = text_[at_];
    if (c == '"') return ++at_, true;
    if (static_cast<unsigned char>(c) < 0x20) return false;
    if (c == '\\') {
      if (!Escape(value)) return false;
      continue;
    }
    const size_t length = names::Utf8Length(text_, at_);
    if (length == 0) return false;
    value.append(text_, at_, length);
    at_ += length;
  }
  return false;
}

bool JsonReader::Escape(std::string& value) {
  constexpr std::string_view kShort = "\"\\/bfnrt";
  constexpr std::string_view kMeaning = "\"\\/\b\f\n\r\t";
  ++at_;
  const char c = Next();
  if (const size_t i = kShort.find(c); i != std::string_view::npos && at_ < text_.size()) {
    ++at_;
    value += kMeaning[i];
    return true;
  }
  unsigned code = 0;
  if (!TakeWord("u") || !HexDigits(code)) return false;
  if (code >= 0xd800 && code < 0xe000) {  // two of them are one character
    unsigned low = 0;
    if (code >= 0xdc00 || !TakeWord("\\u") || !HexDigits(low)) return false;
    if (low < 0xdc00 || low >= 0xe000) return false;
    code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
  }
  AppendUtf8(code, value);
  return true;
}

bool JsonReader::HexDigits(unsigned& code) {
  const std::string_view digits = text_.substr(at_, 4);
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), code, 16);
  if (error != std::errc() || end != digits.data() + 4) return false;
  at_ += 4;
  return true;
}

bool JsonReader::Number(double& value) {
  if (AtEnd()) return false;
  if (TakeWord("null")) return value = kMissing, true;
  const size_t begin = at_;
  TakeWord("-");
  if (!TakeWord("0") && !TakeDigits()) return false;
  if (TakeWord(".") && !TakeDigits()) return false;
  if (TakeWord("e") || TakeWord("E")) {
    if (!TakeWord("+")) TakeWord("-");
    if (!TakeDigits()) return false;
  }
  const std::string_view number = text_.substr(begin, at_ - begin);
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), value);
  // A number that is none of a double's is not a program's either.
  return error == std::errc() && end == number.data() + number.size();
}

bool JsonReader::SkipValue(int depth) {
  if (AtEnd() || depth == 0) return false;
  const char c = text_[at_];
  if (c == '{') {
    return Object([&](std::string_view) { return SkipValue(depth - 1); });
  }
  if (c == '[') {
    ++at_;
    if (Take(']')) return true;
    do {
      if (!SkipValue(depth - 1)) return false;
    } while (Take(','));
    return Take(']');
  }
  if (c == '"') {
    std::string text;
    return String(text);
  }
  double number = 0;
  return TakeWord("true") || TakeWord("false") || Number(number);
}

}  // namespace sonde::collect
