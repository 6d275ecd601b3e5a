#include "serve/site/messages.h"

#include <sys/socket.h>

#include <span>

#include "core/descriptor_message.h"

namespace sonde::site {

Result<std::pair<UniqueFd, UniqueFd>> MakePair() {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
    return SystemError("make a pair of sockets");
  }
  return std::pair(UniqueFd(ends[0]), UniqueFd(ends[1]));
}

Status SendMessage(int to, std::string_view text, int fd) {
  const std::span<const int> fds(&fd, fd >= 0 ? 1 : 0);
  return SendWithDescriptors(to, text, fds, Patience::kNone).status();
}

Result<Message> ReceiveMessage(int from, bool wait) {
  Message received;
  received.text.resize(kMaxMessage);
  auto message = ReceiveWithDescriptors(from, received.text, 1,
                                        wait ? Patience::kAsTheSocket : Patience::kNone);
  if (!message.ok()) return message.status();
  received.text.resize(message->size);
  if (!message->fds.empty()) received.fd = std::move(message->fds.front());
  return received;
}

}  // namespace sonde::site
