// Checks who may ask: clients with the step's bearer token.
//
// A program sends `Authorization: Bearer TOKEN`, or the token as the password of basic
// authentication, with any user name. A person opens the page once as /?token=TOKEN; the
// answer puts the token into a cookie (HttpOnly, SameSite=Strict) and redirects to the same address
// without it, so that it stays neither in the address bar nor in the history. The cookie's name is
// derived from the token: cookies are shared between the ports of a host, and two steps watched
// through two tunnels must not displace each other's. It has no path, so that behind a proxy for
// many people, such as JupyterHub, the browser sends it to the path of this server only. A browser
// sends it from other ports' pages too, so it does not count where the browser says that the
// request is another origin's.
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
  explicit Auth(std::string token);

  // kPageOnly: the files of the page, for whoever asks.
  enum class Verdict { kAllowed, kPageOnly, kRedirect, kRefused };
  Verdict Check(const Request& request) const;
  // The answer to a request whose verdict was kRedirect or kRefused.
  Response Redirect(const Request& request) const;
  static Response Refuse(const Request& request);

 private:
  bool IsToken(std::string_view text) const;

  std::string token_;
  std::string cookie_name_;
};

}  // namespace sonde::web
