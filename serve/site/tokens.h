// The tokens of a site's users. Who is known by the kernel alone, over the Unix socket, shows a
// token as well: sshd's end of a tunnel is a process of the user's, whoever connects to the other
// end.
//
// A user's token is derived from a key of this host, so nothing is kept for a user, and programs
// may keep theirs until the host is booted anew. It is told over a second Unix socket, to the user
// whose process connects there: no tunnel to the first one leads to it.
//
// Thread safety: const methods from any thread.
#pragma once

#include <string>

#include "core/status.h"
#include "serve/site/accounts.h"

namespace sonde::site {

// Behind the path of the server's Unix socket: the socket that tells tokens, and the key.
inline constexpr const char* kTokenSocket = ".token";
inline constexpr const char* kTokenKey = ".key";

class Tokens {
 public:
  explicit Tokens(std::string key) : key_(std::move(key)) {}

  // The key in the file at `path`, which is made if there is none. kPermission if others could read
  // or change it.
  static Result<std::string> KeyAt(const std::string& path);

  std::string Of(const Account& account) const;

 private:
  const std::string key_;
};

}  // namespace sonde::site
