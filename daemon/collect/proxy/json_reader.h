// Reads JSON (RFC 8259) from beginning to end, value by value, as the caller expects them.
//
// Small and without a tree of values: a node's daemon loads no library for JSON, and messages of
// programs are short. Each function reads one value; false means that the text is wrong or has
// another value there, and nothing may be read any more then. Trusts nothing: it never reads beyond
// the text, and values lie in each other only so deep.
//
// Thread safety: none.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace sonde::collect {

class JsonReader {
 public:
  static constexpr int kMostDepth = 32;

  explicit JsonReader(std::string_view text) : text_(text) {}

  // Calls member(key) for each member, which reads the value.
  template <typename F>
  bool Object(F&& member) {
    if (!Take('{')) return false;
    if (Take('}')) return true;
    std::string key;
    do {
      if (!String(key) || !Take(':') || !member(std::string_view(key))) return false;
    } while (Take(','));
    return Take('}');
  }
  bool String(std::string& value);
  // NaN for null, as which writers of JSON write numbers that are not finite.
  bool Number(double& value);
  // Any value.
  bool Skip() { return SkipValue(kMostDepth); }
  // Whether nothing but blanks is left.
  bool AtEnd();

 private:
  bool Take(char wanted);
  bool TakeWord(std::string_view word);
  bool TakeDigits();
  bool SkipValue(int depth);
  bool Escape(std::string& value);
  bool HexDigits(unsigned& code);
  char Next() const { return at_ < text_.size() ? text_[at_] : '\0'; }

  std::string_view text_;
  size_t at_ = 0;
};

}  // namespace sonde::collect
