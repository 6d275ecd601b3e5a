// Checks who may ask: clients with the step's bearer token.
//
// A program sends `Authorization: Bearer TOKEN`, or the token as the password of basic
// authentication, with any user name. A person opens the page once as /?token=TOKEN; the
// answer puts the token into a cookie (HttpOnly, SameSite=Strict) and redirects to the same address
// without it, so that it stays neither in the address bar nor in the history. The cookie's name is
// derived from the token: cookies are shared between the ports of a host, and two steps watched
// through two tunnels must not displace each other's. It has no path, so that behind a proxy for
// many people, such as JupyterHub, the browser sends it to the path of this server only.
//
// A browser sends a cookie, and a password that it was once given, from other ports' pages too. So
// neither counts where the browser says that another origin's page asks (web/http/origin.h), unless
// that origin is one whose pages may ask (cors.h) and it is a password. What is left is kByBrowser:
// such a request may read, but must not change anything by a GET (web/router.h), for which browsers
// on addresses other than the loopback's do not say whose page asks.
//
// A link from another origin (Grafana, a wiki, a chat) has to lead to the page all the same. So a
// browser that opens `/` at the top of a tab gets the page itself without the token, and so does
// that page for its scripts and styles: they hold nothing of a step. What the page then asks is of
// its own origin and has the cookie.
//
// Thread safety: immutable once made.
#pragma once

#include <string>
#include <string_view>

#include "web/http/http.h"

namespace sonde::web {

class Auth {
 public:
  static constexpr std::string_view kNoToken =
      "this server needs its token: open the address that was printed with it, or send the header "
      "'Authorization: Bearer TOKEN'";

  explicit Auth(std::string token);

  // kByBrowser: allowed by what a browser may have sent by itself. kPageOnly: the files of the
  // page, for whoever asks. kOtherOrigin: another origin's page asks.
  enum class Verdict { kAllowed, kByBrowser, kPageOnly, kRedirect, kRefused, kOtherOrigin };
  // `may_ask`: pages of the request's origin may ask.
  Verdict Check(const Request& request, bool may_ask = false) const;
  // The answer to a request whose verdict was kRedirect, kRefused or kOtherOrigin.
  Response Redirect(const Request& request) const;
  static Response Refuse(const Request& request, std::string_view message = kNoToken);
  static Response RefuseOrigin(const Request& request);

  const std::string& token() const { return token_; }
  // The Cookie header by which a browser shows the token.
  std::string Cookie() const { return cookie_name_ + "=" + token_; }

 private:
  Verdict ByBrowser(const Request& request) const;
  bool IsToken(std::string_view text) const;

  std::string token_;
  std::string cookie_name_;
};

}  // namespace sonde::web
