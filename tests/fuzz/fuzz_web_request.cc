// Everything that a request's text can reach: target, token, query, lookup and suggest bodies. The
// first byte chooses.
#include <cstdint>
#include <string_view>

#include "web/opentsdb/request.h"
#include "web/server/auth.h"

using namespace sonde;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  constexpr Nanos kNow = 1'800'000'000 * kSecond;
  switch (data[0] % 5) {
    case 0:
      (void)web::ParseOpenTsdbQuery(text, kNow);
      break;
    case 1: {
      web::Request request;
      if (!web::ParseTarget(text, request).ok()) break;
      request.token = text;
      request.authorization = text;
      (void)web::Auth("secret").Check(request);
      break;
    }
    case 2:
      (void)web::ParseLookupExpression(text);
      (void)web::ParseLookupBody(text);
      break;
    case 3:
      (void)web::ParseSuggestBody(text);
      break;
    default:
      (void)web::ParseOpenTsdbTime(text, kNow);
  }
  return 0;
}
