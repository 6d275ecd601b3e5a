// Writes JSON into a string as it goes: no tree is built, numbers go through std::to_chars.
//
// Doubles are written in the shortest form that reads back as the same value; infinities and NaN
// become null, for JSON has none. Each byte that is not UTF-8 is replaced by U+FFFD, so the output
// can always be read. The caller keeps Begin and End in balance.
//
// Thread safety: one thread; appends to a string it does not own.
#pragma once

#include <concepts>
#include <string>
#include <string_view>

namespace sonde {

class JsonWriter {
 public:
  explicit JsonWriter(std::string& out) : out_(out) {}

  JsonWriter& BeginObject();
  JsonWriter& EndObject();
  JsonWriter& BeginArray();
  JsonWriter& EndArray();
  JsonWriter& Key(std::string_view key);
  JsonWriter& Value(std::string_view text);
  JsonWriter& Value(const char* text) { return Value(std::string_view(text)); }
  JsonWriter& Value(double number);
  JsonWriter& Value(std::same_as<bool> auto flag) { return Raw(flag ? "true" : "false"); }
  JsonWriter& Value(std::integral auto number) requires(!std::same_as<decltype(number), bool>) {
    return Raw(std::to_string(number));
  }
  JsonWriter& Null() { return Raw("null"); }
  // Writes a value that is JSON already.
  JsonWriter& Raw(std::string_view json);

  template <typename T>
  JsonWriter& Field(std::string_view key, const T& value) {
    Key(key);
    return Value(value);
  }

 private:
  void Separate();
  void Quote(std::string_view text);

  std::string& out_;
  bool first_ = true;  // nothing was written before in this object or array
};

}  // namespace sonde
