// Random bytes from the kernel, as hex digits.
#pragma once

#include <sys/random.h>

#include <string>

#include "core/status.h"

namespace sonde::launch {

// 2 * Bytes lower-case hex digits. getrandom never blocks once the system has booted.
template <size_t Bytes>
Result<std::string> RandomHex() {
  unsigned char raw[Bytes];
  static_assert(Bytes <= 256, "getrandom gives up to 256 bytes in one piece");
  if (::getrandom(raw, Bytes, 0) != static_cast<ssize_t>(Bytes)) return SystemError("getrandom");
  std::string text;
  for (const unsigned char byte : raw) {
    constexpr char kDigits[] = "0123456789abcdef";
    text += kDigits[byte >> 4];
    text += kDigits[byte & 15];
  }
  return text;
}

}  // namespace sonde::launch
