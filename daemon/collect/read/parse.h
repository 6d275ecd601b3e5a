// Parsing by hand what the kernel writes: numbers and words between blanks, line by line.
//
// A Cursor never reads past the end of its text, whatever the text holds; a number that is missing,
// or too large for its type, is reported and not guessed.
//
// Thread safety: values.
#pragma once

#include <cstdint>
#include <cstring>
#include <limits>
#include <string_view>

namespace sonde::collect {

inline constexpr double kMissing = std::numeric_limits<double>::quiet_NaN();

class Cursor {
 public:
  explicit Cursor(std::string_view text) : at_(text.data()), end_(at_ + text.size()) {}

  bool AtEnd() const { return at_ == end_; }
  std::string_view Rest() const { return {at_, static_cast<size_t>(end_ - at_)}; }

  // The text up to the end of the line; goes on behind it.
  std::string_view Line() {
    if (AtEnd()) return {};
    const char* const start = at_;
    const auto* eol = static_cast<const char*>(std::memchr(at_, '\n', Left()));
    at_ = eol == nullptr ? end_ : eol + 1;
    return {start, static_cast<size_t>((eol == nullptr ? end_ : eol) - start)};
  }
  void SkipBlanks() {
    while (at_ != end_ && (*at_ == ' ' || *at_ == '\t')) ++at_;
  }
  // Goes behind `literal` if it stands here.
  bool Skip(std::string_view literal) {
    if (Left() < literal.size() || std::memcmp(at_, literal.data(), literal.size()) != 0) {
      return false;
    }
    at_ += literal.size();
    return true;
  }
  // What stands before the next blank or end of line, after any blanks.
  std::string_view Word() {
    SkipBlanks();
    const char* const start = at_;
    while (at_ != end_ && *at_ != ' ' && *at_ != '\t' && *at_ != '\n') ++at_;
    return {start, static_cast<size_t>(at_ - start)};
  }
  // Goes behind that many words of a line in which one blank stands before each, whatever they are.
  // False, and at the end, if there are fewer.
  bool SkipWords(int words) {
    for (; words > 0; --words) {
      if (at_ == end_) return false;
      do {
        ++at_;
      } while (at_ != end_ && *at_ != ' ');
    }
    return true;
  }
  // A decimal number, after any blanks. False, and `value` unchanged, if none stands here or it
  // does not fit.
  bool Unsigned(uint64_t& value) {
    SkipBlanks();
    const char* const start = at_;
    uint64_t v = 0;
    for (unsigned digit = 0; at_ != end_ && (digit = Digit(*at_)) <= 9; ++at_) v = v * 10 + digit;
    const auto digits = at_ - start;
    if (digits == 0 || (digits > 19 && !Fits({start, static_cast<size_t>(digits)}))) return false;
    value = v;
    return true;
  }
  // The next number as a double, or kMissing.
  double Number() {
    uint64_t value = 0;
    return Unsigned(value) ? static_cast<double>(value) : kMissing;
  }
  // A number with decimals, such as 12.34, or kMissing.
  double Decimal() {
    double value = Number();
    if (!Skip(".")) return value;
    for (double scale = 0.1; at_ != end_ && Digit(*at_) <= 9; ++at_, scale /= 10) {
      value += Digit(*at_) * scale;
    }
    return value;
  }

 private:
  static unsigned Digit(char c) { return static_cast<unsigned>(c) - '0'; }
  static bool Fits(std::string_view digits) {
    return digits.size() < 20 || (digits.size() == 20 && digits <= "18446744073709551615");
  }
  size_t Left() const { return static_cast<size_t>(end_ - at_); }

  const char* at_;
  const char* end_;
};

}  // namespace sonde::collect
