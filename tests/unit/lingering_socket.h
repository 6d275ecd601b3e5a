// A socket that holds up whoever drops it last: data waits in it that nobody reads, and its owner
// wants close() to wait for that. A user may send such a one to a process of root's.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <string>

#include "core/unique_fd.h"

namespace sonde {

class LingeringSocket {
 public:
  explicit LingeringSocket(int seconds) {
    const UniqueFd listener(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address);
    auto* const at = reinterpret_cast<sockaddr*>(&address);
    fd_ = UniqueFd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (::bind(listener.get(), at, size) != 0 || ::listen(listener.get(), 1) != 0 ||
        ::getsockname(listener.get(), at, &size) != 0 || ::connect(fd_.get(), at, size) != 0) {
      return;
    }
    peer_ = UniqueFd(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
    const linger wait{1, seconds};
    ::setsockopt(fd_.get(), SOL_SOCKET, SO_LINGER, &wait, sizeof(wait));
    const std::string data(65536, 'x');
    while (::send(fd_.get(), data.data(), data.size(), MSG_DONTWAIT) > 0) continue;
  }
  // What waits is given up when the peer goes first.
  ~LingeringSocket() { peer_.Reset(); }
  LingeringSocket(const LingeringSocket&) = delete;
  LingeringSocket& operator=(const LingeringSocket&) = delete;

  int get() const { return fd_.get(); }
  // Once it was sent to somebody: that copy is the last.
  void DropOwn() { fd_.Reset(); }

 private:
  UniqueFd fd_, peer_;
};

}  // namespace sonde
