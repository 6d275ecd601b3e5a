#include "web/server/refusals.h"

#include <fmt/core.h>

namespace sonde::web {

Response Busy(std::string_view why) {
  Response response = ErrorResponse(503, why);
  response.headers.emplace_back("Retry-After", "1");
  return response;
}

Response TooLong(size_t most) {
  return ErrorResponse(413, fmt::format("the body is larger than {} bytes", most));
}

}  // namespace sonde::web
