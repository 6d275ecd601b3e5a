#include "serve/site/listen.h"

#include <arpa/inet.h>
#include <fmt/core.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <charconv>

namespace sonde::site {
namespace {

constexpr int kWaiting = 128;

Result<UniqueFd> Bind(const sockaddr* address, socklen_t size, const std::string& where) {
  UniqueFd fd(socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const int on = 1;
  if (fd && address->sa_family != AF_UNIX) {
    setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  }
  if (!fd || bind(fd.get(), address, size) != 0 || listen(fd.get(), kWaiting) != 0) {
    return SystemError("listen on " + where);
  }
  return fd;
}

Status TakeAway(const sockaddr_un& address, const std::string& path) {
  struct stat info {};
  if (lstat(path.c_str(), &info) != 0) return {};
  if (!S_ISSOCK(info.st_mode)) return {Code::kInvalid, path + " is there and is no socket"};
  const UniqueFd probe(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const auto* where = reinterpret_cast<const sockaddr*>(&address);
  if (connect(probe.get(), where, sizeof(address)) == 0) {
    return {Code::kUnavailable, "somebody listens on " + path + " already"};
  }
  return unlink(path.c_str()) == 0 ? Status() : SystemError("remove " + path);
}

Result<UniqueFd> ListenUnix(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.empty() || path[0] != '/' || path.size() >= sizeof(address.sun_path)) {
    return Status(Code::kInvalid, fmt::format("--listen unix:{}: expected an absolute path of at "
                                              "most {} bytes",
                                              path, sizeof(address.sun_path) - 1));
  }
  path.copy(address.sun_path, path.size());
  SONDE_RETURN_IF_ERROR(TakeAway(address, path));
  Result<UniqueFd> fd =
      Bind(reinterpret_cast<const sockaddr*>(&address), sizeof(address), kUnixPrefix.data() + path);
  // Everybody may connect: the kernel tells who the visitor is.
  constexpr mode_t kEverybody = 0666;
  if (fd.ok() && chmod(path.c_str(), kEverybody) != 0) return SystemError("chmod " + path);
  return fd;
}

Result<UniqueFd> ListenTcp(const std::string& where) {
  const Status wrong(Code::kInvalid,
                     fmt::format("--listen {}: expected unix:/PATH, or ADDRESS:PORT with a numeric "
                                 "address",
                                 where));
  const size_t colon = where.rfind(':');
  if (colon == std::string::npos) return wrong;
  uint16_t port = 0;
  const char* end = where.data() + where.size();
  const auto [read, error] = std::from_chars(where.data() + colon + 1, end, port);
  if (error != std::errc() || read != end) return wrong;
  std::string host = where.substr(0, colon);
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  sockaddr_in v4{};
  v4.sin_family = AF_INET;
  v4.sin_port = htons(port);
  if (inet_pton(AF_INET, host.c_str(), &v4.sin_addr) == 1) {
    return Bind(reinterpret_cast<const sockaddr*>(&v4), sizeof(v4), where);
  }
  sockaddr_in6 v6{};
  v6.sin6_family = AF_INET6;
  v6.sin6_port = htons(port);
  if (inet_pton(AF_INET6, host.c_str(), &v6.sin6_addr) != 1) return wrong;
  return Bind(reinterpret_cast<const sockaddr*>(&v6), sizeof(v6), where);
}

}  // namespace

Result<UniqueFd> Listen(const std::string& where) {
  return where.starts_with(kUnixPrefix) ? ListenUnix(where.substr(kUnixPrefix.size()))
                                        : ListenTcp(where);
}

}  // namespace sonde::site
