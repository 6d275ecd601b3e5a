#include "cli/site/messages.h"

#include <sys/socket.h>

#include <cerrno>
#include <cstring>

namespace sonde::site {

Result<std::pair<UniqueFd, UniqueFd>> MakePair() {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
    return SystemError("make a pair of sockets");
  }
  return std::pair(UniqueFd(ends[0]), UniqueFd(ends[1]));
}

Status SendMessage(int to, std::string_view text, int fd) {
  iovec part{const_cast<char*>(text.data()), text.size()};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  if (fd >= 0) {
    message.msg_control = control;
    message.msg_controllen = sizeof(control);
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int));
    std::memcpy(CMSG_DATA(header), &fd, sizeof(int));
  }
  if (sendmsg(to, &message, MSG_NOSIGNAL | MSG_DONTWAIT) >= 0) return {};
  if (errno == EAGAIN || errno == EWOULDBLOCK) {
    return {Code::kBusy, "the other process takes no message now"};
  }
  return SystemError("send a message to another process");
}

Result<Message> ReceiveMessage(int from, bool wait) {
  std::string text(kMaxMessage, '\0');
  iovec part{text.data(), text.size()};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))];
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof(control);
  ssize_t size = -1;
  do {
    size = recvmsg(from, &message, MSG_CMSG_CLOEXEC | (wait ? 0 : MSG_DONTWAIT));
  } while (size < 0 && errno == EINTR);
  if (size < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
    return Status(Code::kBusy, "there is no message");
  }
  if (size < 0) return SystemError("receive a message of another process");
  Message received;
  const cmsghdr* header = CMSG_FIRSTHDR(&message);
  if (header != nullptr && header->cmsg_type == SCM_RIGHTS) {
    int fd = -1;
    std::memcpy(&fd, CMSG_DATA(header), sizeof(int));
    received.fd.Reset(fd);
  }
  if (size == 0) return Status(Code::kNotFound, "the other process has ended");
  if ((message.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) != 0) {
    return Status(Code::kCorrupt, "a message of another process is too long");
  }
  text.resize(static_cast<size_t>(size));
  received.text = std::move(text);
  return received;
}

}  // namespace sonde::site
