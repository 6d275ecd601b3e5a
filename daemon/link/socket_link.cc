#include "daemon/link/socket_link.h"

#include <fmt/core.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <utility>

namespace sonde::tree {
namespace {

constexpr size_t kReadSize = 64u << 10;
// So that one peer cannot keep the loop from the others.
constexpr int kReadsPerRound = 16;
constexpr int kPeerTimeoutMs = 10'000;
// What the kernel keeps that was not sent yet: more waits in the link, where its owner sees it.
constexpr int kUnsent = 64 << 10;

void SetOption(int fd, int level, int name, int value) {
  // Refused only by something that is not TCP, which then has no need of it.
  setsockopt(fd, level, name, &value, sizeof value);
}

void SetOptions(int fd) {
  SetOption(fd, IPPROTO_TCP, TCP_NODELAY, 1);
  SetOption(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, kUnsent);
  SetOption(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
  SetOption(fd, IPPROTO_TCP, TCP_KEEPIDLE, 5);
  SetOption(fd, IPPROTO_TCP, TCP_KEEPINTVL, 2);
  SetOption(fd, IPPROTO_TCP, TCP_KEEPCNT, 3);
  SetOption(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, kPeerTimeoutMs);
}

}  // namespace

Result<std::unique_ptr<SocketLink>> SocketLink::Connect(Loop& loop, const std::string& host,
                                                        uint16_t port) {
  std::unique_ptr<SocketLink> link(new SocketLink(loop, HostPortText(host, port)));
  SocketLink* self = link.get();
  auto numeric = Resolve(host, port, true);
  if (numeric.ok()) {
    link->candidates_ = *std::move(numeric);
    SONDE_RETURN_IF_ERROR(link->TryNext());
  } else {
    auto call = BackgroundCall::Start(
        loop,
        [self, host, port]() -> Loop::Task {
          return [self, found = Resolve(host, port, false)] { self->Resolved(found); };
        },
        0);
    if (!call.ok()) return call.status();
    link->resolving_ = *std::move(call);
  }
  link->timer_ = loop.After(kConnectTimeout, [self] {
    self->timer_ = 0;
    self->Close(self->Error("connect", ETIMEDOUT));
  });
  return link;
}

Result<std::unique_ptr<SocketLink>> SocketLink::Adopt(Loop& loop, UniqueFd fd) {
  std::unique_ptr<SocketLink> link(new SocketLink(loop, AddressText(PeerAddress(fd.get()))));
  link->fd_ = std::move(fd);
  link->state_ = State::kOpen;
  SetOptions(link->fd_.get());
  SONDE_RETURN_IF_ERROR(link->StartWatching(EPOLLIN));
  return link;
}

SocketLink::~SocketLink() {
  if (timer_ != 0) loop_.Cancel(timer_);
  if (fd_) loop_.Unwatch(fd_.get());
}

Status SocketLink::Error(std::string_view what, int error) const {
  return SystemError(fmt::format("{}: {}", peer_, what), error);
}

void SocketLink::Resolved(const Result<std::vector<Address>>& addresses) {
  if (state_ != State::kConnecting) return;
  if (!addresses.ok()) return Close(addresses.status().Within(peer_));
  candidates_ = *addresses;
  const Status status = TryNext();
  if (!status.ok()) Close(status);
}

Status SocketLink::TryNext() {
  while (next_candidate_ < candidates_.size()) {
    last_failure_ = TryAddress(candidates_[next_candidate_++]);
    if (last_failure_.ok()) return {};
  }
  if (!last_failure_.ok()) return last_failure_;
  return {Code::kNotFound, fmt::format("{}: the host has no address", peer_)};
}

Status SocketLink::TryAddress(const Address& address) {
  if (fd_) loop_.Unwatch(fd_.get());
  fd_.Reset(
      socket(address.storage.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, IPPROTO_TCP));
  if (!fd_) return Error("create a socket", errno);
  SetOptions(fd_.get());
  if (connect(fd_.get(), address.get(), address.length) != 0 && errno != EINPROGRESS) {
    return Error(fmt::format("connect to {}", AddressText(address)), errno);
  }
  return StartWatching(EPOLLOUT);
}

Status SocketLink::StartWatching(uint32_t epoll_events) {
  watching_ = epoll_events;
  return loop_.Watch(fd_.get(), epoll_events, [this](uint32_t events) { OnReady(events); });
}

void SocketLink::OnReady(uint32_t epoll_events) {
  if (state_ == State::kConnecting) return FinishConnect();
  if ((epoll_events & ~uint32_t{EPOLLOUT}) != 0 && !Receive()) return;
  if ((epoll_events & EPOLLOUT) != 0) Flush();
}

void SocketLink::FinishConnect() {
  int error = 0;
  socklen_t size = sizeof error;
  getsockopt(fd_.get(), SOL_SOCKET, SO_ERROR, &error, &size);
  if (error != 0) {
    last_failure_ =
        Error(fmt::format("connect to {}", AddressText(candidates_[next_candidate_ - 1])), error);
    const Status status = TryNext();
    if (!status.ok()) Close(status);
    return;
  }
  loop_.Cancel(timer_);
  timer_ = 0;
  candidates_.clear();
  state_ = State::kOpen;
  if (close_when_connected_) CloseWhenSent();
  Flush();
}

bool SocketLink::Receive() {
  char buffer[kReadSize];
  for (int i = 0; i < kReadsPerRound; ++i) {
    const ssize_t n = recv(fd_.get(), buffer, sizeof buffer, 0);
    if (n > 0) {
      bytes_received_ += static_cast<size_t>(n);
      if (!Take({buffer, static_cast<size_t>(n)})) return false;
      if (static_cast<size_t>(n) < sizeof buffer) return true;
      continue;
    }
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EAGAIN) {
      if (write_error_ == 0) return true;
      Close(Error("send", write_error_));
      return false;
    }
    if (n < 0) {
      Close(Error("receive", errno));
    } else if (state_ == State::kDraining) {
      Close({});
    } else {
      Close({Code::kUnavailable, fmt::format("{}: closed by the peer", peer_)});
    }
    return false;
  }
  return true;
}

bool SocketLink::Take(std::string_view bytes) {
  if (state_ != State::kOpen) return true;  // we said goodbye: read only to see the peer's
  const std::weak_ptr<char> alive = alive_;
  const auto open = [&] { return !alive.expired() && state_ == State::kOpen; };
  const Status status = deframer_.Feed(bytes, [&](uint8_t type, std::string_view payload) {
    const auto handler = handler_;
    if (handler->message) handler->message(type, payload);
    return open();
  });
  if (alive.expired()) return false;
  if (!status.ok()) Close(status.Within(peer_));
  return !alive.expired() && state_ != State::kClosed;
}

Status SocketLink::Send(uint8_t type, std::string_view payload) {
  const bool open = state_ == State::kOpen || state_ == State::kConnecting;
  const int flags = std::exchange(more_, false) ? MSG_MORE : 0;
  if (!open || close_when_connected_ || write_error_ != 0) {
    return {Code::kUnavailable, fmt::format("send to {}: the link is closed", peer_)};
  }
  SONDE_RETURN_IF_ERROR(CheckPayload(payload.size()));
  const size_t size = kFrameHeader + payload.size();
  if (queued() + size > kMaxQueued) {
    return {Code::kLimit, fmt::format("send to {}: {} bytes are waiting", peer_, queued())};
  }
  const auto header = FrameHeader(type, payload);
  const std::string_view head(header.data(), header.size());
  size_t sent = 0;
  if (state_ == State::kOpen && queued() == 0) {
    sent = Write(head, payload, flags);
    if (write_error_ != 0) return Error("send", write_error_);
  }
  if (sent == size) return {};
  if (sent < head.size()) out_.append(head.substr(sent));
  out_.append(payload.substr(sent - std::min(sent, head.size())));
  UpdateEvents();
  return {};
}

size_t SocketLink::Write(std::string_view header, std::string_view payload, int flags) {
  iovec parts[2] = {{const_cast<char*>(header.data()), header.size()},
                    {const_cast<char*>(payload.data()), payload.size()}};
  msghdr message{};
  message.msg_iov = parts;
  message.msg_iovlen = 2;
  ssize_t n = 0;
  do {
    n = sendmsg(fd_.get(), &message, MSG_NOSIGNAL | flags);
  } while (n < 0 && errno == EINTR);
  if (n < 0) {
    if (errno != EAGAIN) WriteFailed(errno);
    return 0;
  }
  bytes_sent_ += static_cast<size_t>(n);
  return static_cast<size_t>(n);
}

// The owner may be within Send, so it hears of it later; and what the peer sent before it closed is
// delivered first.
void SocketLink::WriteFailed(int error) {
  write_error_ = error;
  loop_.Post([this, alive = std::weak_ptr<char>(alive_)] {
    while (!alive.expired() && state_ != State::kClosed && Receive()) {
    }
  });
}

void SocketLink::Flush() {
  while (queued() > 0 && write_error_ == 0) {
    const size_t n = Write(std::string_view(out_).substr(out_sent_), {}, 0);
    if (n == 0) break;
    out_sent_ += n;
  }
  if (out_sent_ == out_.size()) {
    out_.clear();
    if (out_.capacity() > kReadSize) out_.shrink_to_fit();
    out_sent_ = 0;
    if (state_ == State::kFlushing) EndOutput();
  } else if (out_sent_ > out_.size() / 2) {
    out_.erase(0, out_sent_);
    out_sent_ = 0;
  }
  UpdateEvents();
}

void SocketLink::UpdateEvents() {
  if (state_ == State::kConnecting || state_ == State::kClosed) return;
  const uint32_t wanted = EPOLLIN | (queued() > 0 ? uint32_t{EPOLLOUT} : 0u);
  if (wanted == watching_) return;
  watching_ = wanted;
  const Status status = loop_.ChangeEvents(fd_.get(), wanted);
  if (!status.ok()) WriteFailed(EBADF);
}

void SocketLink::CloseWhenSent() {
  if (state_ == State::kConnecting) {
    close_when_connected_ = true;
    return;
  }
  if (state_ != State::kOpen) return;
  state_ = State::kFlushing;
  timer_ = loop_.After(kCloseTimeout, [this] {
    timer_ = 0;
    Close(Error("close", ETIMEDOUT));
  });
  if (queued() == 0) EndOutput();
}

// Half closed, then read until the peer has closed too: a close with unread bytes would reset the
// connection, and the peer would lose what it has not read yet.
void SocketLink::EndOutput() {
  state_ = State::kDraining;
  if (shutdown(fd_.get(), SHUT_WR) != 0) WriteFailed(errno);
}

void SocketLink::Close(const Status& why) {
  if (state_ == State::kClosed) return;
  state_ = State::kClosed;
  if (timer_ != 0) loop_.Cancel(std::exchange(timer_, 0));
  if (fd_) loop_.Unwatch(fd_.get());
  fd_.Reset();
  out_.clear();
  out_.shrink_to_fit();
  out_sent_ = 0;
  const auto handler = handler_;
  if (handler->closed) handler->closed(why);
}

}  // namespace sonde::tree
