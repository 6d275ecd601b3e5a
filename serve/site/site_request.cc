#include "serve/site/site_request.h"

#include <fmt/core.h>

#include <algorithm>
#include <cctype>

#include "core/text/ascii.h"
#include "core/text/names.h"
#include "web/http/http.h"
#include "web/server/request_head.h"

namespace sonde::site {
namespace {

constexpr std::string_view kEnd = "\r\n";
// The fields that endpoints read (web/server/wire.cc), and those that describe the body.
constexpr std::string_view kPassedOn[] = {
    "Accept", "Accept-Encoding",   "Content-Encoding", "Content-Length", "Content-Type",
    "Expect", "If-Modified-Since", "If-None-Match",    "Last-Event-ID",  "Transfer-Encoding"};

constexpr std::string_view kPrefix = "/user/";  // of the archive of a user

bool IsHost(std::string_view text) {
  constexpr std::string_view kOthers = ".:-[]";
  return !text.empty() && text.size() <= 255 && std::all_of(text.begin(), text.end(), [&](char c) {
    return names::IsLetter(c) || names::IsDigit(c) || kOthers.find(c) != std::string_view::npos;
  });
}

bool Same(std::string_view a, std::string_view b) {
  return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin(), [](char x, char y) {
           return std::tolower(static_cast<unsigned char>(x)) ==
                  std::tolower(static_cast<unsigned char>(y));
         });
}

std::string_view TakeLine(std::string_view& head) {
  const size_t end = std::min(head.find(kEnd), head.size());
  const std::string_view line = head.substr(0, end);
  head.remove_prefix(std::min(end + kEnd.size(), head.size()));
  return line;
}

bool IsPlain(std::string_view text) {
  return !text.empty() &&
         std::all_of(text.begin(), text.end(), [](char c) { return c > ' ' && c < 0x7f; });
}

}  // namespace

std::string_view SiteRequest::Field(std::string_view name) const {
  for (const auto& [key, value] : fields) {
    if (Same(key, name)) return value;
  }
  return {};
}

size_t SiteRequest::Count(std::string_view name) const {
  return static_cast<size_t>(std::count_if(
      fields.begin(), fields.end(), [&](const auto& field) { return Same(field.first, name); }));
}

Result<SiteRequest> ParseSiteRequest(std::string_view head) {
  if (const auto fault = web::CheckHead(head)) return Status(Code::kInvalid, fault->message);
  const Status wrong(Code::kInvalid,
                     "this is no HTTP request: expected METHOD, a path and HTTP/1.1");
  SiteRequest request;
  const std::string_view line = TakeLine(head);
  const size_t first = line.find(' ');
  const size_t last = line.rfind(' ');
  if (first == std::string_view::npos || last == first) return wrong;
  request.method = line.substr(0, first);
  request.target = line.substr(first + 1, last - first - 1);
  request.version = line.substr(last + 1);
  const bool upper = std::all_of(request.method.begin(), request.method.end(),
                                 [](char c) { return c >= 'A' && c <= 'Z'; });
  if (request.method.empty() || !upper || !IsPlain(request.target) || request.target[0] != '/') {
    return wrong;
  }
  for (std::string_view field = TakeLine(head); !field.empty(); field = TakeLine(head)) {
    const size_t colon = field.find(':');
    if (colon == std::string_view::npos || !IsPlain(field.substr(0, colon))) return wrong;
    request.fields.emplace_back(field.substr(0, colon), Trim(field.substr(colon + 1)));
  }
  return request;
}

SiteTarget ParseSiteTarget(std::string_view target) {
  if (!target.starts_with(kPrefix)) return {"", std::string(target)};
  const std::string_view named = target.substr(kPrefix.size());
  const size_t end = std::min(named.find_first_of("/?"), named.size());
  std::string rest(named.substr(end));
  if (rest.starts_with('?')) rest.clear();
  return {std::string(named.substr(0, end)), std::move(rest)};
}

std::string HeadFor(const SiteRequest& request, const SiteTarget& target, std::string_view token,
                    bool by_browser) {
  const std::string_view host = request.Field("Host");
  std::string head = fmt::format("{} {} {}\r\nHost: {}\r\nConnection: close\r\n", request.method,
                                 target.rest, request.version, IsHost(host) ? host : "localhost");
  if (!target.user.empty()) {
    head += fmt::format("{}: {}{}\r\n", web::kPrefixHeader, kPrefix, target.user);
  }
  head += fmt::format("Authorization: Bearer {}\r\n", token);
  if (by_browser) head += fmt::format("{}: 1\r\n", web::kByBrowserHeader);
  for (const std::string_view name : kPassedOn) {
    if (request.Count(name) != 0) head += fmt::format("{}: {}\r\n", name, request.Field(name));
  }
  return head + "\r\n";
}

}  // namespace sonde::site
