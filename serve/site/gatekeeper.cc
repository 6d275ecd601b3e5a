#include "serve/site/gatekeeper.h"

#include <fmt/core.h>
#include <nettle/memops.h>

#include <algorithm>

#include "web/http/origin.h"

namespace sonde::site {
namespace {

constexpr size_t kMaxName = 256;

Status Refused(std::string text) { return {Code::kPermission, std::move(text)}; }

bool IsName(std::string_view text) {
  return !text.empty() && text.size() <= kMaxName && text[0] != '-' &&
         std::all_of(text.begin(), text.end(),
                     [](char c) { return c > ' ' && c < 0x7f && c != '/' && c != ':'; });
}

std::string_view WithoutPort(std::string_view host) {
  if (host.starts_with('[')) return host.substr(0, std::min(host.find(']') + 1, host.size()));
  return host.substr(0, std::min(host.find(':'), host.size()));
}

// Following a link from another page to this one is allowed, and nothing else from it.
bool IsOtherSites(const SiteRequest& request) {
  if (!web::IsOtherOrigin(request.Field("Sec-Fetch-Site"), request.Field("Origin"),
                          request.Field("Host"))) {
    return false;
  }
  const std::string_view path =
      std::string_view(request.target).substr(0, request.target.find('?'));
  const std::string rest = ParseSiteTarget(path).rest;
  return request.method != "GET" || request.Field("Sec-Fetch-Mode") != "navigate" ||
         (rest != "/" && !rest.empty());
}

}  // namespace

bool IsLoopback(std::string_view host) {
  host = WithoutPort(host);
  return host == "localhost" || host == "127.0.0.1" || host == "[::1]";
}

bool Gatekeeper::IsProxy(std::optional<uid_t> peer, const SiteRequest& request) const {
  if (rules_.user_header.empty()) return false;
  if (peer && rules_.proxy && *peer == *rules_.proxy) return true;
  const std::string& secret = rules_.proxy_secret;
  const std::string_view given = request.Field(kSecretHeader);
  return !secret.empty() && request.Count(kSecretHeader) == 1 && given.size() == secret.size() &&
         memeql_sec(given.data(), secret.data(), secret.size()) != 0;
}

bool Gatekeeper::IsAdmin(const Account& account) const {
  if (account.uid == 0) return true;
  return std::any_of(rules_.admins.begin(), rules_.admins.end(), [&](const std::string& admin) {
    return admin.starts_with('@') ? accounts_.IsIn(account, admin.substr(1))
                                  : admin == account.name;
  });
}

Result<Account> Gatekeeper::Named(const SiteRequest& request) const {
  const std::string name(request.Field(rules_.user_header));
  if (request.Count(rules_.user_header) != 1 || !IsName(name)) {
    return Refused(
        fmt::format("the proxy does not say who asks: expected one header {} with the "
                    "user's name",
                    rules_.user_header));
  }
  Result<Account> account = accounts_.ByName(name);
  if (account.ok()) return account;
  return Refused(fmt::format("the user '{}', whom the proxy names, has no account here", name));
}

Result<Visitor> Gatekeeper::Admit(std::optional<uid_t> peer, const SiteRequest& request) const {
  if (IsOtherSites(request)) {
    return Refused("another site's page asks for this: open it yourself");
  }
  Visitor visitor;
  if (IsProxy(peer, request)) {
    Result<Account> account = Named(request);
    if (!account.ok()) return account.status();
    visitor.account = *std::move(account);
    visitor.by_proxy = true;
  } else if (peer) {
    if (!IsLoopback(request.Field("Host"))) {
      return Refused("expected the host localhost in the address: this is no public name");
    }
    Result<Account> account = AccountOf(*peer);
    if (!account.ok()) return account.status();
    visitor.account = *std::move(account);
  } else {
    return Refused("who asks is not known: come by the site's proxy, or over the Unix socket");
  }
  visitor.admin = IsAdmin(visitor.account);
  return visitor;
}

Result<Account> Gatekeeper::AccountOf(uid_t peer) const {
  Result<Account> account = accounts_.ByUid(peer);
  if (account.ok()) return account;
  return Refused(fmt::format("uid {} has no account here", peer));
}

Result<Account> Gatekeeper::OwnerFor(const Visitor& visitor, const std::string& named) const {
  if (named.empty() || named == visitor.account.name) return visitor.account;
  const Status nobody(Code::kNotFound,
                      fmt::format("there is no archive of '{}' that you may see", named));
  if (!visitor.admin || !IsName(named)) return nobody;
  Result<Account> owner = accounts_.ByName(named);
  return owner.ok() ? owner : nobody;
}

}  // namespace sonde::site
