#include "web/server/auth.h"

#include <fmt/core.h>
#include <nettle/memops.h>

#include <algorithm>
#include <utility>

#include "web/http/credentials.h"
#include "web/http/origin.h"
#include "web/pages/pages.h"

namespace sonde::web {
namespace {

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

}  // namespace

Auth::Auth(std::string token) : token_(std::move(token)) {}

bool Auth::IsToken(std::string_view text) const {
  return !token_.empty() && text.size() == token_.size() &&
         memeql_sec(text.data(), token_.data(), token_.size()) != 0;
}

Auth::Verdict Auth::Check(const Request& request, bool may_ask) const {
  const bool password = IsToken(Password(request.authorization));
  const bool shown =
      IsToken(request.token) || IsToken(BearerToken(request.authorization)) || password;
  // What no browser sends by itself, and what it does.
  const bool by_browser = request.by_browser || (password && IsBrowser(request));
  const bool others = by_browser && !may_ask && IsOthers(request);
  if (shown && !others) return by_browser ? Verdict::kByBrowser : Verdict::kAllowed;
  const bool reading = request.method == Method::kGet || request.method == Method::kHead;
  if (reading && IsPage(request.path)) return Verdict::kPageOnly;
  return shown ? Verdict::kOtherOrigin : Verdict::kRefused;
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
               "another origin's page{} asks: for it no password counts; "
               "open this server's own page, or send the header 'Authorization: Bearer "
               "TOKEN'",
               request.origin.empty() ? "" : " (" + std::string(Shortened(request.origin)) + ")"));
}

}  // namespace sonde::web
