#include "web/http/negotiation.h"

#include <fmt/core.h>
#include <nettle/sha2.h>

#include <algorithm>
#include <cstring>
#include <ctime>

#include "web/http/alternatives.h"

namespace sonde::web {
namespace {

constexpr const char* kDateForm = "%a, %d %b %Y %H:%M:%S GMT";

}  // namespace

bool WantsGzip(std::string_view accept_encoding) {
  double gzip = -1, any = -1, plain = -1;
  for (const Alternative& one : AlternativesOf(accept_encoding)) {
    if (one.name == "gzip" || one.name == "x-gzip") gzip = one.quality;
    if (one.name == "identity") plain = one.quality;
    if (one.name == "*") any = one.quality;
  }
  const double wanted = gzip >= 0 ? gzip : any;
  return wanted > 0 && wanted >= plain;
}

bool IsUnchanged(const Request& request, const Response& response) {
  if (response.status != 200) return false;
  if (!request.if_none_match.empty()) {
    std::string_view list = request.if_none_match;
    while (!list.empty() && !response.etag.empty()) {
      std::string_view one = TakePart(list, ',');
      if (one.starts_with("W/")) one.remove_prefix(2);
      if (one == "*" || one == response.etag) return true;
      // Our compressed answers have a tag of their own.
      if (one.ends_with("-gzip\"") &&
          one.substr(0, one.size() - 6) ==
              std::string_view(response.etag).substr(0, response.etag.size() - 1)) {
        return true;
      }
    }
    return false;
  }
  if (response.last_modified == 0 || request.if_modified_since.empty()) return false;
  const Nanos since = ParseHttpDate(request.if_modified_since);
  return since != 0 && response.last_modified / kSecond <= since / kSecond;
}

std::string HttpDate(Nanos time) {
  const auto seconds = static_cast<time_t>(time / kSecond);
  tm parts{};
  gmtime_r(&seconds, &parts);
  char text[64];
  return {text, strftime(text, sizeof(text), kDateForm, &parts)};
}

Nanos ParseHttpDate(std::string_view text) {
  constexpr size_t kLength = 29;
  if (text.size() != kLength) return 0;
  tm parts{};
  const std::string copy(text);
  const char* end = strptime(copy.c_str(), kDateForm, &parts);
  if (end == nullptr || *end != '\0') return 0;
  const time_t seconds = timegm(&parts);
  constexpr time_t kMost = 253'402'300'799;  // the year 9999
  return seconds <= 0 || seconds > kMost ? 0
                                         : std::min<Nanos>(seconds, INT64_MAX / kSecond) * kSecond;
}

std::string ETagOf(std::string_view body) {
  sha256_ctx state;
  sha256_init(&state);
  sha256_update(&state, body.size(), reinterpret_cast<const uint8_t*>(body.data()));
  uint8_t digest[SHA256_DIGEST_SIZE];
  sha256_digest(&state, sizeof digest, digest);
  std::string tag = "\"";
  for (size_t i = 0; i < 10; ++i) tag += fmt::format("{:02x}", digest[i]);
  return tag + "\"";
}

}  // namespace sonde::web
