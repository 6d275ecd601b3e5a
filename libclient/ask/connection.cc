#include "libclient/ask/connection.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "libclient/sonde_query.h"

namespace sonde::client {
namespace {

constexpr int kRetryMs = 5;

// Waits until the descriptor is ready; false at the deadline.
bool Wait(int fd, short events, const Deadline& deadline) {
  for (;;) {
    pollfd waited = {fd, events, 0};
    const int ready = poll(&waited, 1, deadline.left_ms());
    if (ready > 0) return true;
    if (ready == 0) return false;
    if (errno != EINTR) return false;
  }
}

// The name of the socket for questions, in `address`; its length, 0 if there is none.
socklen_t AddressOf(const char* name, sockaddr_un* address) {
  const size_t size = strlen(name), suffix = sizeof(kAskSuffix) - 1;
  if (size + suffix + 1 > sizeof(address->sun_path)) return 0;
  memset(address, 0, sizeof(*address));
  address->sun_family = AF_UNIX;
  memcpy(address->sun_path + 1, name, size);
  memcpy(address->sun_path + 1 + size, kAskSuffix, suffix);
  return static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + size + suffix);
}

}  // namespace

AskConnection::~AskConnection() {
  if (fd_ >= 0) close(fd_);
  free(packet_);
}

int AskConnection::Open(const Deadline& deadline) {
  const char* const name = secure_getenv("SONDE_SOCKET");
  if (name == nullptr || *name == '\0') return SONDE_OFF;
  packet_ = static_cast<char*>(malloc(kMaxPacket));
  if (packet_ == nullptr) return SONDE_SYSTEM;
  for (;;) {
    const int code = Connect(name);
    if (code == SONDE_OK) return Greet(deadline);
    if (code != SONDE_UNREACHABLE || deadline.left_ms() == 0) return code;
    poll(nullptr, 0, kRetryMs);
  }
}

int AskConnection::Connect(const char* name) {
  sockaddr_un address;
  const socklen_t length = AddressOf(name, &address);
  if (length == 0) return SONDE_INVALID;
  if (fd_ >= 0) close(fd_);
  fd_ = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd_ < 0) return SONDE_SYSTEM;
  if (connect(fd_, reinterpret_cast<const sockaddr*>(&address), length) != 0) {
    return SONDE_UNREACHABLE;
  }
  ucred peer = {};
  socklen_t size = sizeof(peer);
  if (getsockopt(fd_, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) return SONDE_SYSTEM;
  return peer.uid == geteuid() ? SONDE_OK : SONDE_FOREIGN;
}

int AskConnection::Greet(const Deadline& deadline) {
  const AskHello hello = {kAskMagic, kAskVersion, 0};
  const int sent =
      Send(AskKind::kHello, 0, {reinterpret_cast<const char*>(&hello), sizeof(hello)}, deadline);
  if (sent != SONDE_OK) return sent;
  AskMessage message = {};
  const int received = Receive(deadline, &message);
  if (received != SONDE_OK) return received;
  AskWelcome welcome = {};
  const bool whole = message.kind == AskKind::kWelcome && message.size == sizeof(welcome);
  if (whole) memcpy(&welcome, message.body, sizeof(welcome));
  free(message.body);
  // A daemon that refuses closes the connection, or says so first.
  if (!whole || welcome.magic != kAskMagic || welcome.version != kAskVersion) return Lose();
  period_ = welcome.period;
  return SONDE_OK;
}

int AskConnection::Send(AskKind kind, uint64_t id, std::string_view body,
                        const Deadline& deadline) {
  if (lost_) return SONDE_LOST;
  if (body.size() > kMaxRequest) return SONDE_LIMIT;
  Packet head = {id, static_cast<uint8_t>(kind), 0, 0, 0};
  iovec parts[2] = {{&head, sizeof(head)}, {const_cast<char*>(body.data()), body.size()}};
  msghdr packet = {};
  packet.msg_iov = parts;
  packet.msg_iovlen = body.empty() ? 1 : 2;
  for (;;) {
    if (sendmsg(fd_, &packet, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0) return SONDE_OK;
    if (errno == EINTR) continue;
    if (errno != EAGAIN) return Lose();
    if (!Wait(fd_, POLLOUT, deadline)) return SONDE_TIMEOUT;
  }
}

int AskConnection::Lose() {
  lost_ = true;
  return SONDE_LOST;
}

long AskConnection::ReceivePacket(const Deadline& deadline) {
  if (lost_) return -SONDE_LOST;
  for (;;) {
    const ssize_t got = recv(fd_, packet_, kMaxPacket, MSG_DONTWAIT | MSG_TRUNC);
    if (got > 0) return got;
    if (got < 0 && errno == EINTR) continue;
    if (got == 0 || errno != EAGAIN) return -Lose();
    if (!Wait(fd_, POLLIN, deadline)) return -SONDE_TIMEOUT;
  }
}

int AskConnection::TakePacket(size_t size, AskMessage* message) {
  Packet head;
  if (size < sizeof(head) || size > kMaxPacket) return Lose();
  memcpy(&head, packet_, sizeof(head));
  const bool first = body_.size() == 0 && assembled_.kind == 0;
  if (first) assembled_ = head;
  const size_t piece = size - sizeof(head);
  if (head.id != assembled_.id || head.kind != assembled_.kind || head.more > 1 ||
      body_.size() + piece > kMaxAnswer || (piece == 0 && head.more != 0)) {
    return Lose();
  }
  body_.Append(packet_ + sizeof(head), piece);
  if (!body_.ok()) return Lose();
  if (head.more != 0) return SONDE_TIMEOUT;
  message->id = assembled_.id;
  message->kind = static_cast<AskKind>(assembled_.kind);
  message->missed = assembled_.missed;
  message->size = body_.size();
  message->body = body_.Release();
  assembled_ = {};
  return SONDE_OK;
}

int AskConnection::Receive(const Deadline& deadline, AskMessage* message) {
  for (;;) {
    const long size = ReceivePacket(deadline);
    if (size < 0) return static_cast<int>(-size);
    const int code = TakePacket(static_cast<size_t>(size), message);
    if (code != SONDE_TIMEOUT) return code;
  }
}

}  // namespace sonde::client
