#include "daemon/launcher_line.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>

#include "launcher/launch.h"

namespace sonde {

struct LauncherLine::Packet {
  std::string bytes;
  std::vector<UniqueFd> fds;
  bool end = false;  // end of file, or an error that means the same
};

LauncherLine::LauncherLine(Loop& loop, UniqueFd fd) : loop_(loop), fd_(std::move(fd)) {}

LauncherLine::~LauncherLine() { Close(); }

// False if nothing is there to be read now.
bool LauncherLine::ReadOne(Packet& packet) {
  std::array<char, launch::kMaxPacket> bytes;
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int) * launch::kMaxEvents)> control;
  iovec iov{bytes.data(), bytes.size()};
  msghdr message{};
  message.msg_iov = &iov;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  ssize_t n = 0;
  do {
    n = recvmsg(fd_.get(), &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    // Told once, before what lies here to be read: the launcher ended with packets of ours unread.
  } while (n < 0 && errno == ECONNRESET);
  if (n < 0 && (errno == EAGAIN || errno == EINTR)) return false;
  packet.end = n <= 0;
  if (n > 0) packet.bytes.assign(bytes.data(), static_cast<size_t>(n));
  for (cmsghdr* c = CMSG_FIRSTHDR(&message); n >= 0 && c != nullptr; c = CMSG_NXTHDR(&message, c)) {
    if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS) continue;
    const size_t count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t i = 0; i < count; ++i) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof(int));
      packet.fds.emplace_back(fd);
    }
  }
  return true;
}

Result<std::string> LauncherLine::ReadLaunch(Nanos timeout) {
  pollfd ready{fd_.get(), POLLIN, 0};
  if (poll(&ready, 1, static_cast<int>(timeout / kMillisecond)) <= 0) {
    return Status(Code::kTimeout,
                  "no launch message on descriptor 3; sonded is started by the Slurm plugin or by "
                  "`sonde run`, not by hand");
  }
  Packet packet;
  if (!ReadOne(packet) || packet.end || packet.bytes[0] != launch::kLaunch) {
    return Status(Code::kInvalid, "descriptor 3 does not start with a launch message");
  }
  return packet.bytes.substr(1);
}

void LauncherLine::Start(Receiver& receiver) {
  receiver_ = &receiver;
  const Status status =
      loop_.Watch(fd_.get(), EPOLLIN | EPOLLRDHUP, [this](uint32_t events) { OnReady(events); });
  if (!status.ok()) {
    ended_ = true;
    loop_.Post([this] { receiver_->OnEnd(true); });
  }
}

void LauncherLine::OnReady(uint32_t events) {
  Packet packet;
  while (!ended_ && fd_ && ReadOne(packet)) {
    if (packet.end) {
      ended_ = true;
      loop_.Unwatch(fd_.get());
      receiver_->OnEnd((events & (EPOLLHUP | EPOLLERR)) != 0);
      return;
    }
    receiver_->OnPacket(packet.bytes[0], std::string_view(packet.bytes).substr(1),
                        std::move(packet.fds));
    packet = {};
  }
}

void LauncherLine::Send(char kind, std::string_view body) {
  if (!fd_) return;
  iovec iov[2] = {{&kind, 1}, {const_cast<char*>(body.data()), body.size()}};
  msghdr message{};
  message.msg_iov = iov;
  message.msg_iovlen = 2;
  sendmsg(fd_.get(), &message, MSG_NOSIGNAL | MSG_DONTWAIT);
}

void LauncherLine::SendState(std::string_view state, std::string_view reason) {
  launch::Writer message(launch::kDaemonState);
  message.Add(launch::key::kState, state);
  if (!reason.empty()) message.Add(launch::key::kReason, reason);
  Send(launch::kDaemonState, std::string_view(message.packet()).substr(1));
}

void LauncherLine::SendUp(bool tells_end) {
  launch::Writer message(launch::kDaemonState);
  message.Add(launch::key::kState, "up");
  if (tells_end) message.Add(launch::key::kLast, "ended");
  Send(launch::kDaemonState, std::string_view(message.packet()).substr(1));
}

void LauncherLine::SendReport(std::string_view text) {
  while (!text.empty()) {
    const size_t n = std::min(text.size(), launch::kMaxPacket - 1);
    Send(launch::kReport, text.substr(0, n));
    text.remove_prefix(n);
  }
}

void LauncherLine::StopReading() {
  if (fd_) loop_.Unwatch(fd_.get());
  ended_ = true;
}

void LauncherLine::Close() {
  StopReading();
  fd_.Reset();
}

}  // namespace sonde
