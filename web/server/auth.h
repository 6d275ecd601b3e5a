// Checks who may ask: clients with the step's bearer token.
//
// A program sends `Authorization: Bearer TOKEN`, or the token as the password of basic
// authentication, with any user name. The page sends it as `Sonde-Token`, since a proxy may need
// Authorization for itself. A person opens the page as /#token=TOKEN: what stands behind `#` is
// sent to nobody, and the page keeps it for its own origin, port included
// (web/pages/session.js). There are no cookies: a browser sends them to every port of a host,
// whoever listens there.
//
// The page's own files are for everybody: they hold nothing of a step.
//
// A browser sends a password that it was once given for other origins' pages too. So it does not
// count where the browser says that another origin's page asks (web/http/origin.h), unless that
// origin is one whose pages may ask (cors.h). What is left is kByBrowser: such a request may read,
// but must not change anything by a GET (web/router.h), for which browsers on addresses other than
// the loopback's do not say whose page asks. So it is, too, where a proxy has found out who asks,
// by whatever the browser sends to it by itself, and the site's door says so (kByBrowserHeader).
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
  enum class Verdict { kAllowed, kByBrowser, kPageOnly, kRefused, kOtherOrigin };
  // `may_ask`: pages of the request's origin may ask.
  Verdict Check(const Request& request, bool may_ask = false) const;
  // The answer to a request whose verdict was kRefused or kOtherOrigin.
  static Response Refuse(const Request& request, std::string_view message = kNoToken);
  static Response RefuseOrigin(const Request& request);

  const std::string& token() const { return token_; }

 private:
  bool IsToken(std::string_view text) const;

  std::string token_;
};

}  // namespace sonde::web
