#include "web/http/credentials.h"

#include <nettle/base64.h>

#include <algorithm>
#include <cctype>

namespace sonde::web {
namespace {

// The text after the scheme, given in lower case with its blank; empty for another scheme.
std::string_view Credentials(std::string_view header, std::string_view scheme) {
  const bool same = header.size() > scheme.size() &&
                    std::equal(scheme.begin(), scheme.end(), header.begin(), [](char a, char b) {
                      return a == std::tolower(static_cast<unsigned char>(b));
                    });
  return same ? header.substr(scheme.size()) : std::string_view{};
}

std::string FromBase64(std::string_view text) {
  constexpr size_t kMost = 1024;
  if (text.empty() || text.size() > kMost) return {};
  base64_decode_ctx state;
  base64_decode_init(&state);
  std::string out(BASE64_DECODE_LENGTH(text.size()), '\0');
  size_t size = out.size();
  if (base64_decode_update(&state, &size, reinterpret_cast<uint8_t*>(out.data()), text.size(),
                           text.data()) == 0 ||
      base64_decode_final(&state) == 0) {
    return {};
  }
  out.resize(size);
  return out;
}

}  // namespace

std::string_view BearerToken(std::string_view header) { return Credentials(header, "bearer "); }

std::string BasicPair(std::string_view header) { return FromBase64(Credentials(header, "basic ")); }

}  // namespace sonde::web
