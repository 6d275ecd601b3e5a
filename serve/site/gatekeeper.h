// Finds out who asks a site's server, and whose archive he may see.
//
// A visitor over the Unix socket is the user of the connecting process, as the kernel reports it,
// if he also shows his token, which the door asks for (tokens.h): the process may be sshd's. A
// header with a user's name is believed only from the reverse proxy: on connections of the proxy's
// account, or in requests with the proxy's secret. An archive is shown to its owner and to
// administrators; for anybody else it does not exist.
//
// Every request of a browser on the user's machine has his identity too. So other sites' pages must
// not ask in his name: if a browser says that one does, the request is refused. So is a name of
// this host that is not the loopback's, with which a foreign page would pretend to be ours.
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

// Whether a Host header names this host as only its own programs call it.
bool IsLoopback(std::string_view host);

struct SiteRules {
  std::vector<std::string> admins;  // users, and groups with '@' before their names
  std::string user_header;          // the proxy's, such as X-Remote-User; "": there is no proxy
  std::optional<uid_t> proxy;       // the account whose connections may have it
  std::string proxy_secret;         // requests with it may have the header as well; "": none
};

struct Visitor {
  Account account;
  bool admin = false;
  bool by_proxy = false;  // the proxy says who it is, and has made sure
};

class Gatekeeper {
 public:
  // The accounts must outlive this.
  Gatekeeper(SiteRules rules, const Accounts& accounts)
      : rules_(std::move(rules)), accounts_(accounts) {}

  // `peer`: the uid at the other end of a Unix socket. kPermission for an unknown visitor, and for
  // requests of another site's page.
  Result<Visitor> Admit(std::optional<uid_t> peer, const SiteRequest& request) const;
  // Whose connections are for others.
  bool IsProxysAccount(uid_t peer) const { return rules_.proxy == peer; }
  // The account of a process that has connected over a Unix socket.
  Result<Account> AccountOf(uid_t peer) const;
  // The owner of the archive for a visitor who named that user, or nobody (""). kNotFound if there
  // is no such user, and with the same words if the visitor may not see the archive.
  Result<Account> OwnerFor(const Visitor& visitor, const std::string& named) const;

 private:
  bool IsProxy(std::optional<uid_t> peer, const SiteRequest& request) const;
  bool IsAdmin(const Account& account) const;
  Result<Account> Named(const SiteRequest& request) const;

  const SiteRules rules_;
  const Accounts& accounts_;
};

}  // namespace sonde::site
