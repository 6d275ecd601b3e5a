// What clients send to a site's server: what goes on to a user's process is one request with one
// proof of identity, the door's.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "serve/site/gatekeeper.h"
#include "serve/site/site_request.h"
#include "tests/unit/site_accounts.h"
#include "web/http/http.h"
#include "web/server/request_head.h"

using namespace sonde;

namespace {

constexpr uid_t kAlice = 1001;

const site::Gatekeeper& Keeper() {
  static const auto* const accounts = [] {
    auto* made = new site::MadeUpAccounts;
    made->Add("alice", kAlice);
    made->Add("bob", kAlice + 1);
    return made;
  }();
  static const site::Gatekeeper keeper({{"bob"}, "X-Remote-User", 33, "0123456789abcdef"},
                                       *accounts);
  return keeper;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const size_t length = web::HeadLength(text);
  if (length == std::string_view::npos) return 0;
  const auto request = site::ParseSiteRequest(text.substr(0, length));
  if (!request.ok()) return 0;
  const site::SiteTarget target = site::ParseSiteTarget(request->target);
  if (!target.rest.empty() && target.rest[0] != '/') __builtin_trap();
  const std::string head =
      site::HeadFor(*request, {target.user, target.rest.empty() ? "/" : target.rest}, "T", true);
  if (web::HeadLength(head) != head.size()) __builtin_trap();
  const auto again = site::ParseSiteRequest(head);
  if (!again.ok() || again->Count("Authorization") != 1 ||
      again->Count(web::kByBrowserHeader) != 1 || again->Count(web::kTokenHeader) != 0 ||
      again->Count("Cookie") != 0 || again->Count("X-Remote-User") != 0 ||
      again->Count(site::kSecretHeader) != 0 || again->Field("Connection") != "close") {
    __builtin_trap();
  }
  // Without the secret nobody is somebody else.
  const bool proven = request->Field(site::kSecretHeader) == "0123456789abcdef";
  const auto visitor = Keeper().Admit(kAlice, *request);
  if (visitor.ok() && !proven && visitor->account.name != "alice") __builtin_trap();
  if (visitor.ok() && !proven && Keeper().OwnerFor(*visitor, target.user).ok() &&
      !target.user.empty() && target.user != "alice") {
    __builtin_trap();
  }
  if (!proven && Keeper().Admit(std::nullopt, *request).ok()) __builtin_trap();
  return 0;
}
