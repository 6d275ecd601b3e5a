// Who asks a site's server, and whose archive he may see.
//
// Who comes over the Unix socket is the user whose process that is, as the kernel says. A header
// with a user's name is believed only of the reverse proxy: of connections of the proxy's account,
// or of requests with the proxy's secret. An archive is shown to its owner and to administrators;
// to anybody else it is as if there were none.
//
// A user's identity stands behind every request of his machine's browser too. So other sites' pages
// must not ask in his name: where a browser says that one does, it is refused, and so is a name of
// this host that is not the loopback's, which is how a foreign page would pretend to be ours.
//
// Thread safety: const methods from any thread.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/status.h"
#include "serve/site/accounts.h"
#include "serve/site/site_request.h"

namespace sonde::site {

inline constexpr std::string_view kSecretHeader = "Sonde-Proxy-Secret";

struct SiteRules {
  std::vector<std::string> admins;  // users, and groups with '@' before their names
  std::string user_header;          // the proxy's, such as X-Remote-User; "": there is no proxy
  std::optional<uid_t> proxy;       // whose connections have it
  std::string proxy_secret;         // which requests have it besides; "": none
};

struct Visitor {
  Account account;
  bool admin = false;
};

class Gatekeeper {
 public:
  // The accounts outlive it.
  Gatekeeper(SiteRules rules, const Accounts& accounts)
      : rules_(std::move(rules)), accounts_(accounts) {}

  // `peer`: the uid at the other end of a Unix socket. kPermission for nobody who is known, and for
  // what another site's page asks.
  Result<Visitor> Admit(std::optional<uid_t> peer, const SiteRequest& request) const;
  // Whose archive the visitor gets who named that user, or nobody (""). kNotFound if there is no
  // such user, and in the same words if he may not see the archive.
  Result<Account> OwnerFor(const Visitor& visitor, const std::string& named) const;

 private:
  bool IsProxy(std::optional<uid_t> peer, const SiteRequest& request) const;
  bool IsAdmin(const Account& account) const;
  Result<Account> Named(const SiteRequest& request) const;

  const SiteRules rules_;
  const Accounts& accounts_;
};

}  // namespace sonde::site
