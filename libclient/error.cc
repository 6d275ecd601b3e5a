#include "libclient/error.h"

#include <stdarg.h>
#include <stdio.h>

#include "core/names.h"

namespace sonde::client {
namespace {

// Not in the static block as sonde_thread_ is: that has little room for libraries that are loaded
// while the program runs.
__attribute__((tls_model("global-dynamic"))) __thread char last_error[320];

}  // namespace

Quoted::Quoted(std::string_view text) {
  size_t at = 0, i = 0;
  while (i < text.size()) {
    const size_t n = names::Utf8Length(text, i);
    if (at + (n == 0 ? 1 : n) > kShown) break;
    const auto first = static_cast<unsigned char>(text[i]);
    if (n == 0 || first < 0x20 || first == 0x7f) {
      text_[at++] = '?';
      ++i;
      continue;
    }
    for (size_t k = 0; k < n; ++k) text_[at++] = text[i++];
  }
  for (size_t k = 0; k < 3 && i < text.size(); ++k) text_[at++] = '.';
  text_[at] = '\0';
}

int Fail(int code, const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(last_error, sizeof(last_error), format, arguments);
  va_end(arguments);
  return code;
}

void ClearError() { last_error[0] = '\0'; }

const char* LastError() { return last_error; }

}  // namespace sonde::client
