// The socket that a step's daemon has for programs that are linked with the client library of
// metric-proxy v2 (daemon/collect/proxy/): where it is, and when a program is sent there.
//
// Such a program connects once, when it begins, to the socket that PROXY_PATH names, or else to one
// at a fixed path; if there is no file it goes on by itself. So the file must be there before the
// program is, and it is made by the process that becomes the daemon, as the job's user. A user who
// runs a metric-proxy is left alone.
//
// Used by the plugin on each node and by `sonde run`. Header-only and free of dependencies: it is
// compiled into spank_sonde.so.
//
// Thread safety: functions without state.
#pragma once

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/un.h>

#include <optional>
#include <string>
#include <string_view>

#include "core/unique_fd.h"

namespace sonde::proxy_socket {

inline constexpr char kVariable[] = "PROXY_PATH";
inline constexpr std::string_view kBegin = "/tmp/sonde-";
inline constexpr std::string_view kEnd = ".proxy";

// `name`: of the step and the node; `random`: nobody can have put something there before.
inline std::string Path(uid_t uid, std::string_view name, std::string_view random) {
  std::string path(kBegin);
  path += std::to_string(uid);
  path.append("-").append(name).append("-").append(random).append(kEnd);
  return path;
}

// Whether the value of PROXY_PATH is ours: of a step or script around this one.
inline bool IsOurs(std::string_view path) {
  return path.starts_with(kBegin) && path.ends_with(kEnd);
}

// Whether a proxy of the user's listens where programs look for one without PROXY_PATH. It sees a
// connection that says nothing. A file alone proves nothing: metric-proxy leaves it behind.
inline bool UsersProxyListens(uid_t uid) {
  const std::string path = "/tmp/metric-proxy-" + std::to_string(uid) + ".socket";
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  ::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  // Whoever may write to /tmp can have a socket there that never answers.
  struct stat file {};
  if (::lstat(path.c_str(), &file) != 0 || file.st_uid != uid) return false;
  const UniqueFd probe(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const auto* const at = reinterpret_cast<const sockaddr*>(&address);
  if (::connect(probe.get(), at, sizeof(address)) != 0)
    return errno == EAGAIN;  // its queue is full
  ucred peer{};
  socklen_t size = sizeof(peer);
  return ::getsockopt(probe.get(), SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 && peer.uid == uid;
}

// Whether a program that this process becomes is to be sent to our socket at `path`: the program
// sees the socket, nobody has said PROXY_PATH, and no other proxy waits for the program. `named`:
// the value of PROXY_PATH.
inline bool IsFor(std::optional<std::string_view> named, const std::string& path, uid_t uid) {
  struct stat file {};
  return !named && !path.empty() && ::lstat(path.c_str(), &file) == 0 && S_ISSOCK(file.st_mode) &&
         file.st_uid == uid && !UsersProxyListens(uid);
}

}  // namespace sonde::proxy_socket
