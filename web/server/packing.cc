#include "web/server/packing.h"

#include <string>
#include <string_view>
#include <utility>

#include "web/http/negotiation.h"

namespace sonde::web {
namespace {

constexpr size_t kWorthPacking = 1024;

bool IsText(std::string_view content_type) {
  return content_type.starts_with("text/") || content_type.starts_with("application/json") ||
         content_type.starts_with("application/openmetrics-text");
}

}  // namespace

std::unique_ptr<Gzip> Pack(const Request& request, Response& response) {
  const bool large = response.body.size() >= kWorthPacking || response.next;
  if (!large || !IsText(response.content_type)) return nullptr;
  response.headers.emplace_back("Vary", "Accept-Encoding");
  if (!WantsGzip(request.accept_encoding)) return nullptr;
  response.headers.emplace_back("Content-Encoding", "gzip");
  // Other bytes need another ETag.
  if (!response.etag.empty()) response.etag.insert(response.etag.size() - 1, "-gzip");
  if (response.next) return std::make_unique<Gzip>();
  std::string packed;
  Gzip().Add(response.body, true, packed);
  response.body = std::move(packed);
  return nullptr;
}

}  // namespace sonde::web
