#include "web/negotiation.h"

#include <fmt/format.h>
#include <nettle/sha2.h>

#include <cctype>
#include <charconv>
#include <cstring>
#include <ctime>

namespace sonde::web {
namespace {

std::string_view Trim(std::string_view text) {
  const size_t first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

// Takes what stands before the next separator, trimmed.
std::string_view Take(std::string_view& text, char separator) {
  const size_t end = text.find(separator);
  const std::string_view part = text.substr(0, end);
  text = end == std::string_view::npos ? std::string_view{} : text.substr(end + 1);
  return Trim(part);
}

// Of "gzip;q=0.5"; 1 without a q, 0 for one that is wrong.
double Quality(std::string_view parameters) {
  while (!parameters.empty()) {
    const std::string_view one = Take(parameters, ';');
    if (one.size() < 3 || (one[0] != 'q' && one[0] != 'Q') || one[1] != '=') continue;
    double q = 0;
    const char* end = one.data() + one.size();
    const auto [read, error] = std::from_chars(one.data() + 2, end, q, std::chars_format::fixed);
    return error == std::errc() && read == end && q >= 0 && q <= 1 ? q : 0;
  }
  return 1;
}

bool IsCoding(std::string_view name, std::string_view lower) {
  if (name.size() != lower.size()) return false;
  for (size_t i = 0; i < name.size(); ++i) {
    if (std::tolower(static_cast<unsigned char>(name[i])) != lower[i]) return false;
  }
  return true;
}

constexpr const char* kDateForm = "%a, %d %b %Y %H:%M:%S GMT";

}  // namespace

bool WantsGzip(std::string_view accept_encoding) {
  double gzip = -1, any = -1, plain = -1;
  while (!accept_encoding.empty()) {
    std::string_view one = Take(accept_encoding, ',');
    const std::string_view name = Take(one, ';');
    const double q = Quality(one);
    if (IsCoding(name, "gzip") || IsCoding(name, "x-gzip")) gzip = q;
    if (IsCoding(name, "identity")) plain = q;
    if (name == "*") any = q;
  }
  const double wanted = gzip >= 0 ? gzip : any;
  return wanted > 0 && wanted >= plain;
}

bool IsUnchanged(const Request& request, const Response& response) {
  if (response.status != 200) return false;
  if (!request.if_none_match.empty()) {
    std::string_view list = request.if_none_match;
    while (!list.empty() && !response.etag.empty()) {
      std::string_view one = Take(list, ',');
      if (one.starts_with("W/")) one.remove_prefix(2);
      if (one == "*" || one == response.etag) return true;
      // What we sent packed has a tag of its own.
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
