#include "daemon/link/listener.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>

#include "core/log.h"
#include "core/text/port_range.h"

namespace sonde::tree {
namespace {

// So that a flood of connections cannot keep the loop from its links.
constexpr int kAcceptsPerRound = 64;

bool OutOfResources(int error) {
  return error == EMFILE || error == ENFILE || error == ENOBUFS || error == ENOMEM;
}

// The error, 0 if it listens.
int TryToListen(Address address, uint16_t port, UniqueFd& fd) {
  SetPort(address, port);
  fd.Reset(
      socket(address.storage.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, IPPROTO_TCP));
  // The connections of a step that has just ended do not keep a port of the range from the next.
  const int on = 1;
  if (fd) setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  const bool listens =
      fd && bind(fd.get(), address.get(), address.length) == 0 && listen(fd.get(), SOMAXCONN) == 0;
  return listens ? 0 : errno;
}

}  // namespace

Result<UniqueFd> ListenAt(const std::string& host, PortRange ports) {
  const auto addresses = Resolve(host, 0, true);
  if (!addresses.ok()) return addresses.status().Within("listen");
  UniqueFd fd;
  int error = 0;
  TryPorts(ports, [&](uint16_t port) {
    error = TryToListen(addresses->front(), port, fd);
    return error != EADDRINUSE;
  });
  if (error == 0) return fd;
  if (error == EADDRINUSE && ports.first != 0) return Status(Code::kUnavailable, NoFreePort(ports));
  return SystemError(fmt::format("listen on {}", HostText(addresses->front())), error);
}

Listener::Listener(Loop& loop, UniqueFd fd, Accepted accepted)
    : loop_(loop),
      fd_(std::move(fd)),
      accepted_(std::make_shared<const Accepted>(std::move(accepted))) {}

Listener::~Listener() {
  if (retry_ != 0) loop_.Cancel(retry_);
  loop_.Unwatch(fd_.get());
}

Result<std::unique_ptr<Listener>> Listener::Adopt(Loop& loop, UniqueFd fd, Accepted accepted) {
  int listening = 0;
  socklen_t size = sizeof listening;
  const int asked = getsockopt(fd.get(), SOL_SOCKET, SO_ACCEPTCONN, &listening, &size);
  if (asked != 0 || listening == 0) {
    return Status(Code::kInvalid,
                  fmt::format("adopt descriptor {}: it is no listening socket", fd.get()));
  }
  const int flags = fcntl(fd.get(), F_GETFL);
  if (fcntl(fd.get(), F_SETFL, flags | O_NONBLOCK) != 0 ||
      fcntl(fd.get(), F_SETFD, FD_CLOEXEC) != 0) {
    return SystemError("make a listening socket non-blocking");
  }
  std::unique_ptr<Listener> listener(new Listener(loop, std::move(fd), std::move(accepted)));
  SONDE_RETURN_IF_ERROR(listener->StartWatching());
  return listener;
}

Result<std::unique_ptr<Listener>> Listener::Open(Loop& loop, const std::string& host,
                                                 PortRange ports, Accepted accepted) {
  Result<UniqueFd> fd = ListenAt(host, ports);
  if (!fd.ok()) return fd.status();
  return Adopt(loop, *std::move(fd), std::move(accepted));
}

uint16_t Listener::port() const { return PortOf(address()); }

Status Listener::StartWatching() {
  return loop_.Watch(fd_.get(), EPOLLIN, [this](uint32_t) { AcceptSome(); });
}

void Listener::AcceptSome() {
  const std::weak_ptr<char> alive = alive_;
  const auto accepted = accepted_;
  for (int i = 0; i < kAcceptsPerRound && !alive.expired(); ++i) {
    UniqueFd fd(accept4(fd_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (!fd) {
      if (errno == EAGAIN) return;
      if (OutOfResources(errno)) return Pause(errno);
      continue;  // that one connection is gone already
    }
    auto link = SocketLink::Adopt(loop_, std::move(fd));
    if (link.ok()) (*accepted)(*std::move(link));
  }
}

void Listener::Pause(int error) {
  if (log_limit_.Take()) {
    log::Warning("accept on {}: {}; connections wait", AddressText(address()),
                 std::strerror(error));
  }
  loop_.Unwatch(fd_.get());
  retry_ = loop_.After(kRetry, [this] {
    retry_ = 0;
    const Status status = StartWatching();
    if (!status.ok()) Pause(ENOMEM);
  });
}

}  // namespace sonde::tree
