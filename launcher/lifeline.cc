#include "launcher/lifeline.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>

#include "core/descriptor_message.h"
#include "launcher/high_descriptor.h"
#include "launcher/launch.h"
#include "launcher/user_socket.h"

namespace sonde::launch {
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
  MoveUp(ours);
  MoveUp(daemon_end);
  // Only root may pass the system's limit; a user's plugin sends one packet.
  ::setsockopt(ours.get(), SOL_SOCKET, SO_SNDBUFFORCE, &kSendBuffer, sizeof(kSendBuffer));
  RefuseDescriptors(ours.get());
  return Lifeline(std::move(ours));
}

Status Lifeline::Send(std::string_view packet, std::span<const int> fds) {
  if (fds.size() > kMaxEvents) return {Code::kLimit, "too many descriptors for a packet"};
  return SendWithDescriptors(fd_.get(), packet, fds, Patience::kNone)
      .status()
      .Within("tell sonded");
}

Lifeline::Event Lifeline::Receive(std::string& packet, const Deadline& deadline) {
  for (;;) {
    pollfd waiting{fd_.get(), POLLIN, 0};
    const int left = deadline.LeftMs();
    const int ready = ::poll(&waiting, 1, left);
    if (ready < 0 && errno != EINTR) return Event::kEnd;
    if (ready == 0 || (ready < 0 && left == 0)) return Event::kTimeout;
    if (ready < 0) continue;
    if (broken_) return Event::kEnd;
    const NextPacket next = PeekPacket(fd_.get());
    if (next == NextPacket::kNone && errno == EAGAIN) continue;
    broken_ = next == NextPacket::kWithDescriptors;
    if (next != NextPacket::kPlain) return Event::kEnd;
    packet.resize(kMaxPacket);
    const ssize_t got = ::recv(fd_.get(), packet.data(), packet.size(), MSG_DONTWAIT);
    if (got > 0) {
      packet.resize(static_cast<size_t>(got));
      return Event::kPacket;
    }
    // Once, if the daemon has ended since with packets of ours unread.
    if (got < 0 && (errno == ECONNRESET || errno == EINTR || errno == EAGAIN)) continue;
    return Event::kEnd;
  }
}

void Lifeline::Finish() {
  if (fd_) ::shutdown(fd_.get(), SHUT_WR);
}

void Lifeline::End() { EndAndLeaveOpen(fd_); }

}  // namespace sonde::launch
