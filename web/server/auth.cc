#include "web/server/auth.h"

#include <fmt/core.h>
#include <nettle/memops.h>
#include <nettle/sha2.h>

#include <algorithm>
#include <cctype>
#include <utility>

#include "web/http/credentials.h"
#include "web/http/origin.h"
#include "web/pages/pages.h"

namespace sonde::web {
namespace {

std::string CookieName(std::string_view token) {
  sha256_ctx state;
  sha256_init(&state);
  sha256_update(&state, token.size(), reinterpret_cast<const uint8_t*>(token.data()));
  uint8_t digest[SHA256_DIGEST_SIZE];
  sha256_digest(&state, sizeof digest, digest);
  return fmt::format("sonde-{:02x}{:02x}{:02x}{:02x}", digest[0], digest[1], digest[2], digest[3]);
}

// The value of a cookie in a Cookie header; empty if it is absent.
std::string_view FindCookie(std::string_view header, std::string_view name) {
  while (!header.empty()) {
    const size_t end = header.find(';');
    std::string_view pair = header.substr(0, end);
    while (!pair.empty() && pair[0] == ' ') pair.remove_prefix(1);
    if (pair.size() > name.size() && pair.starts_with(name) && pair[name.size()] == '=') {
      return pair.substr(name.size() + 1);
    }
    if (end == std::string_view::npos) break;
    header.remove_prefix(end + 1);
  }
  return {};
}

std::string Password(std::string_view header) {
  const std::string pair = BasicPair(header);
  const size_t colon = pair.find(':');
  return colon == std::string::npos ? std::string() : pair.substr(colon + 1);
}

bool IsOthers(const Request& request) {
  return IsOtherOrigin(request.fetch_site, request.origin, request.host);
}

// A page cannot change this header of what it has a browser load.
bool IsBrowser(const Request& request) {
  return !request.fetch_site.empty() || !request.origin.empty() ||
         request.user_agent.starts_with("Mozilla/");
}

// What a browser opens at the top of a tab, and what the page opened so loads. Frames are others.
bool IsPageOpened(const Request& request) {
  if (request.path == "/") {
    return request.fetch_mode == "navigate" && request.fetch_dest == "document";
  }
  return request.fetch_site == "same-origin" && IsPage(request.path);
}

std::string Escape(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (std::isalnum(static_cast<unsigned char>(c)) || c == '-' || c == '_' || c == '.') {
      out += c;
    } else {
      out += fmt::format("%{:02X}", static_cast<unsigned char>(c));
    }
  }
  return out;
}

}  // namespace

Auth::Auth(std::string token) : token_(std::move(token)), cookie_name_(CookieName(token_)) {}

bool Auth::IsToken(std::string_view text) const {
  return !token_.empty() && text.size() == token_.size() &&
         memeql_sec(text.data(), token_.data(), token_.size()) != 0;
}

Auth::Verdict Auth::ByBrowser(const Request& request) const {
  return IsOthers(request) ? Verdict::kOtherOrigin : Verdict::kByBrowser;
}

Auth::Verdict Auth::Check(const Request& request, bool may_ask) const {
  // No browser sends it by itself.
  if (IsToken(BearerToken(request.authorization))) return Verdict::kAllowed;
  if (IsToken(Password(request.authorization))) {
    if (!IsBrowser(request)) return Verdict::kAllowed;
    return may_ask ? Verdict::kByBrowser : ByBrowser(request);
  }
  const bool reading = request.method == Method::kGet || request.method == Method::kHead;
  const Verdict without = reading && IsPageOpened(request) ? Verdict::kPageOnly : Verdict::kRefused;
  if (const std::string* token = request.Param("token"); token != nullptr && request.path == "/") {
    if (reading && IsToken(*token)) return Verdict::kRedirect;
  }
  if (!IsToken(FindCookie(request.cookie, cookie_name_))) return without;
  const Verdict verdict = ByBrowser(request);
  return verdict == Verdict::kOtherOrigin && without == Verdict::kPageOnly ? without : verdict;
}

Response Auth::Redirect(const Request& request) const {
  // A proxy that the browser asks may have a path of its own in front.
  std::string location = "./";
  char separator = '?';
  for (const auto& [key, value] : request.params) {
    if (key == "token") continue;
    location += separator;
    location += Escape(key) + "=" + Escape(value);
    separator = '&';
  }
  Response response;
  response.status = 303;
  response.headers.emplace_back("Location", std::move(location));
  response.headers.emplace_back("Set-Cookie",
                                fmt::format("{}; HttpOnly; SameSite=Strict", Cookie()));
  return response;
}

Response Auth::Refuse(const Request& request, std::string_view message) {
  Response response = ErrorResponse(401, message);
  // A browser would ask its user for a password that he does not have.
  response.headers.emplace_back("WWW-Authenticate",
                                request.fetch_site.empty()
                                    ? R"(Bearer realm="sonde", Basic realm="sonde")"
                                    : R"(Bearer realm="sonde")");
  return response;
}

Response Auth::RefuseOrigin(const Request& request) {
  return ErrorResponse(
      403, fmt::format(
               "another origin's page{} asks: for it neither cookie nor password counts; "
               "open this server's own page, or send the header 'Authorization: Bearer "
               "TOKEN'",
               request.origin.empty() ? "" : " (" + std::string(Shortened(request.origin)) + ")"));
}

}  // namespace sonde::web
