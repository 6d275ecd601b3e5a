#include "core/descriptor_message.h"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace sonde {
namespace {

constexpr size_t kControl = CMSG_SPACE(sizeof(int) * kMostDescriptors);

int Waiting(Patience patience) { return patience == Patience::kNone ? MSG_DONTWAIT : 0; }

bool IsNotNow(int error) { return error == EAGAIN || error == EWOULDBLOCK; }

void TakeDescriptors(msghdr& message, std::vector<UniqueFd>& fds) {
  for (cmsghdr* c = CMSG_FIRSTHDR(&message); c != nullptr; c = CMSG_NXTHDR(&message, c)) {
    if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS) continue;
    const size_t count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t i = 0; i < count; ++i) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof(int));
      fds.emplace_back(fd);
    }
  }
}

}  // namespace

Result<size_t> SendWithDescriptors(int to, std::string_view bytes, std::span<const int> fds,
                                   Patience patience) {
  if (fds.size() > kMostDescriptors) {
    return Status(Code::kLimit, "send descriptors: expected at most 253 at once");
  }
  iovec part{const_cast<char*>(bytes.data()), bytes.size()};
  alignas(cmsghdr) char control[kControl];
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  if (!fds.empty()) {
    std::memset(control, 0, CMSG_SPACE(fds.size_bytes()));
    message.msg_control = control;
    message.msg_controllen = CMSG_SPACE(fds.size_bytes());
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(fds.size_bytes());
    std::memcpy(CMSG_DATA(header), fds.data(), fds.size_bytes());
  }
  ssize_t sent = -1;
  do {
    sent = ::sendmsg(to, &message, MSG_NOSIGNAL | Waiting(patience));
  } while (sent < 0 && errno == EINTR);
  if (sent >= 0) return static_cast<size_t>(sent);
  if (IsNotNow(errno)) return Status(Code::kBusy, "the other process takes no message now");
  return SystemError("send a message to another process");
}

Result<DescriptorMessage> ReceiveWithDescriptors(int from, std::span<char> buffer, size_t most,
                                                 Patience patience) {
  iovec part{buffer.data(), buffer.size()};
  // Room for all descriptors that the kernel passes at once, so that too many are recognised.
  alignas(cmsghdr) char control[kControl];
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof(control);
  ssize_t size = -1;
  do {
    size = ::recvmsg(from, &message, MSG_CMSG_CLOEXEC | Waiting(patience));
    // ECONNRESET comes once, before the messages still to be read: the other end was closed with
    // messages of ours unread.
  } while (size < 0 && (errno == EINTR || errno == ECONNRESET));
  if (size < 0 && IsNotNow(errno)) return Status(Code::kBusy, "there is no message");
  if (size < 0) return SystemError("receive a message of another process");
  DescriptorMessage received;
  TakeDescriptors(message, received.fds);
  if (size == 0) return Status(Code::kNotFound, "the other process has ended");
  if ((message.msg_flags & MSG_TRUNC) != 0) {
    return Status(Code::kCorrupt, "a message of another process is too long");
  }
  if ((message.msg_flags & MSG_CTRUNC) != 0 || received.fds.size() > most) {
    return Status(Code::kCorrupt,
                  "a message of another process came with more descriptors than were expected, or "
                  "than this process may open");
  }
  received.size = static_cast<size_t>(size);
  return received;
}

}  // namespace sonde
