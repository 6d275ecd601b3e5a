#include "web/server/cors.h"

#include <algorithm>

namespace sonde::web {

Cors::Cors(std::string_view origins) {
  while (!origins.empty()) {
    const size_t end = std::min(origins.find_first_of(", "), origins.size());
    if (end != 0) origins_.emplace_back(origins.substr(0, end));
    origins.remove_prefix(std::min(end + 1, origins.size()));
  }
}

bool Cors::Allows(std::string_view origin) const {
  return !origin.empty() && std::any_of(origins_.begin(), origins_.end(), [&](const auto& one) {
    return one == "*" || one == origin;
  });
}

bool Cors::IsPreflight(const Request& request) const {
  return request.method == Method::kOptions && request.preflight && Allows(request.origin);
}

Response Cors::Preflight() {
  Response response;
  response.status = 204;
  response.headers.emplace_back("Access-Control-Allow-Methods", "GET, HEAD, POST, PUT, DELETE");
  response.headers.emplace_back("Access-Control-Allow-Headers",
                                "Authorization, Content-Type, Content-Encoding, If-None-Match, "
                                "Last-Event-ID");
  response.headers.emplace_back("Access-Control-Max-Age", "600");
  return response;
}

void Cors::Mark(const Request& request, Response& response) const {
  if (origins_.empty()) return;
  response.headers.emplace_back("Vary", "Origin");
  if (!Allows(request.origin)) return;
  response.headers.emplace_back("Access-Control-Allow-Origin", request.origin);
  response.headers.emplace_back("Access-Control-Expose-Headers", "ETag, Retry-After");
}

}  // namespace sonde::web
