// Why the calling thread's last call of sonde.h failed, in words.
//
// Thread safety: any thread; each has its own.
#pragma once

#include <cstddef>
#include <string_view>

namespace sonde::client {

// A text of the application's as a message may show it: shortened, on one line, as UTF-8.
class Quoted {
 public:
  explicit Quoted(std::string_view text);
  const char* c_str() const { return text_; }

 private:
  static constexpr size_t kShown = 60;  // bytes
  char text_[kShown + 4];
};

// Keeps the words and returns `code`.
int Fail(int code, const char* format, ...) __attribute__((format(printf, 2, 3)));

// For a call that went well, or whose code says all.
void ClearError();

// "" if the code says all.
const char* LastError();

}  // namespace sonde::client
