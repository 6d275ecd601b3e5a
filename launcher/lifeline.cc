#include "spank/lifeline.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "core/launch.h"

namespace sonde::spank {
namespace {

// Room for the T packets of a few thousand tasks before the daemon reads its first.
constexpr int kSendBuffer = 4 << 20;

}  // namespace

Deadline::Deadline(std::chrono::milliseconds wait) : at_(std::chrono::steady_clock::now() + wait) {}

int Deadline::LeftMs() const {
  const auto left =
      std::chrono::ceil<std::chrono::milliseconds>(at_ - std::chrono::steady_clock::now());
  return static_cast<int>(std::max<int64_t>(0, left.count()));
}

Result<Lifeline> Lifeline::Create(UniqueFd& daemon_end) {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
    return SystemError("socketpair");
  }
  UniqueFd ours(ends[0]);
  daemon_end = UniqueFd(ends[1]);
  ours.MoveUp();
  daemon_end.MoveUp();
  // Only root may pass the system's limit; a user's plugin sends one packet.
  ::setsockopt(ours.get(), SOL_SOCKET, SO_SNDBUFFORCE, &kSendBuffer, sizeof(kSendBuffer));
  return Lifeline(std::move(ours));
}

Status Lifeline::Send(std::string_view packet, std::span<const int> fds) {
  if (fds.size() > launch::kMaxEvents) return {Code::kLimit, "too many descriptors for a packet"};
  iovec part{const_cast<char*>(packet.data()), packet.size()};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int) * launch::kMaxEvents)] = {};
  if (!fds.empty()) {
    message.msg_control = control;
    message.msg_controllen = CMSG_SPACE(fds.size_bytes());
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(fds.size_bytes());
    std::memcpy(CMSG_DATA(header), fds.data(), fds.size_bytes());
  }
  for (;;) {
    if (::sendmsg(fd_.get(), &message, MSG_NOSIGNAL | MSG_DONTWAIT) >= 0) return {};
    if (errno != EINTR) return SystemError("send to sonded");
  }
}

Lifeline::Event Lifeline::Receive(std::string& packet, const Deadline& deadline) {
  for (;;) {
    pollfd waiting{fd_.get(), POLLIN, 0};
    const int left = deadline.LeftMs();
    const int ready = ::poll(&waiting, 1, left);
    if (ready < 0 && errno != EINTR) return Event::kEnd;
    if (ready == 0 || (ready < 0 && left == 0)) return Event::kTimeout;
    if (ready < 0) continue;
    packet.resize(launch::kMaxPacket);
    const ssize_t got = ::recv(fd_.get(), packet.data(), packet.size(), MSG_DONTWAIT);
    if (got > 0) {
      packet.resize(static_cast<size_t>(got));
      return Event::kPacket;
    }
    // Told once, before what lies here to be read: the daemon ended with packets of ours unread.
    if (got < 0 && errno == ECONNRESET) continue;
    if (got == 0 || (errno != EINTR && errno != EAGAIN)) return Event::kEnd;
  }
}

char Lifeline::Peek() const {
  char kind = 0;
  return ::recv(fd_.get(), &kind, 1, MSG_PEEK | MSG_DONTWAIT) == 1 ? kind : '\0';
}

void Lifeline::Finish() {
  if (fd_) ::shutdown(fd_.get(), SHUT_WR);
}

}  // namespace sonde::spank
