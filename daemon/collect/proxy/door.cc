#include "daemon/collect/proxy/door.h"

#include <fmt/core.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <cerrno>
#include <utility>

#include "core/log.h"
#include "daemon/collect/proxy/peer_rank.h"

namespace sonde::collect {
namespace {

constexpr size_t kProgramsAtOnce = 64;
constexpr size_t kPiece = 16u << 10;  // bytes of one program, before others have their turn
constexpr int kAcceptAtOnce = 256;
constexpr int kMaxComplaints = 32;
constexpr size_t kKeptMemory = 4096;  // of a program between two messages
constexpr std::string_view kJobBegins = "{\"JobDesc\"";

}  // namespace

Status ProxyDoor::Open(SocketFile listener) {
  listener_ = std::move(listener);
  epoll_ = UniqueFd(epoll_create1(EPOLL_CLOEXEC));
  Status watched = epoll_ ? WatchListener(true) : SystemError("epoll_create1");
  if (watched.ok()) {
    piece_ = std::make_unique_for_overwrite<char[]>(kPiece);
    return {};
  }
  listener_.Remove();
  epoll_.Reset();
  return watched.Within("watch the socket for programs for metric-proxy");
}

Status ProxyDoor::WatchListener(bool watched) {
  if (std::exchange(listens_, watched) == watched) return {};
  epoll_event event = {.events = EPOLLIN, .data = {.ptr = nullptr}};
  const int change = watched ? EPOLL_CTL_ADD : EPOLL_CTL_DEL;
  if (epoll_ctl(epoll_.get(), change, listener_.fd(), &event) != 0) return SystemError("epoll_ctl");
  return {};
}

void ProxyDoor::Poll() { ReadReady(); }

void ProxyDoor::Retry() {
  if (listener_) static_cast<void>(WatchListener(true));
}

void ProxyDoor::ReadRest() {
  for (size_t all = 0; epoll_ && all < options_.max_rest;) {
    const size_t read = ReadReady();
    if (read == 0) return;
    all += read;
  }
}

void ProxyDoor::Close() {
  listener_.Remove();
  programs_.clear();
  epoll_.Reset();
}

// Gives how many bytes, and counts a program that came or went as one.
size_t ProxyDoor::ReadReady() {
  epoll_event events[kProgramsAtOnce];
  const int count = epoll_wait(epoll_.get(), events, kProgramsAtOnce, 0);
  size_t read = 0;
  bool more_to_accept = false;
  for (int i = 0; i < count; ++i) {
    if (events[i].data.ptr == nullptr) {
      more_to_accept = true;
    } else {
      read += Read(*static_cast<ProxyProgram*>(events[i].data.ptr));
    }
  }
  if (!more_to_accept) return read;
  AcceptAll();
  return read + 1;
}

size_t ProxyDoor::Read(ProxyProgram& program) {
  const ssize_t got = recv(program.connection.get(), piece_.get(), kPiece, MSG_DONTWAIT);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return 0;
  if (got <= 0) {
    Remove(program);
    return 1;
  }
  const auto size = static_cast<size_t>(got);
  const Status taken = Cut(program, {piece_.get(), size});
  if (!taken.ok()) Drop(program, taken);
  return size;
}

Status ProxyDoor::Cut(ProxyProgram& program, std::string_view bytes) {
  while (!bytes.empty()) {
    const size_t end = bytes.find('\0');
    const std::string_view piece = bytes.substr(0, end);
    if (end == std::string_view::npos) {
      if (!program.passes && !TooLong(program, piece)) program.begun += piece;
      return {};
    }
    bytes.remove_prefix(end + 1);
    SONDE_RETURN_IF_ERROR(EndMessage(program, piece));
  }
  return {};
}

Status ProxyDoor::EndMessage(ProxyProgram& program, std::string_view last_piece) {
  const bool passed = program.passes || TooLong(program, last_piece);
  program.passes = false;
  if (passed) return {};
  if (program.begun.empty()) return take_(program, last_piece);
  program.begun += last_piece;
  const Status taken = take_(program, program.begun);
  program.begun.clear();
  if (program.begun.capacity() > kKeptMemory) program.begun.shrink_to_fit();
  return taken;
}

// With one more piece of it. The rest is passed over then. A job's description is as long as the
// program's command line, and nothing is lost with it.
bool ProxyDoor::TooLong(ProxyProgram& program, std::string_view piece) {
  if (program.begun.size() + piece.size() <= options_.max_message) return false;
  const std::string_view begin = program.begun.empty() ? piece : program.begun;
  if (!begin.starts_with(kJobBegins)) {
    ++counts_.too_long;
    LeaveOut(fmt::format("process {} has sent a message of more than {} bytes", program.pid,
                         options_.max_message));
  }
  program.passes = true;
  program.begun = std::string();
  return true;
}

void ProxyDoor::AcceptAll() {
  for (int i = 0; i < kAcceptAtOnce; ++i) {
    UniqueFd connection(accept4(listener_.fd(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (connection) {
      Admit(std::move(connection));
    } else if (errno == EAGAIN) {
      return;
    } else if (errno != ECONNABORTED && errno != EINTR) {
      Refuse(std::string(SystemError("accept a process").message()));
      // The kernel's queue holds it, and would wake us all the while.
      static_cast<void>(WatchListener(false));
      return;
    }
  }
}

void ProxyDoor::Admit(UniqueFd connection) {
  ucred peer = {};
  socklen_t size = sizeof(peer);
  if (getsockopt(connection.get(), SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0 ||
      peer.uid != options_.uid) {
    return Refuse(fmt::format("process {} belongs to user {}, the step to user {}", peer.pid,
                              peer.uid, options_.uid));
  }
  if (programs_.size() >= options_.max_programs) {
    return Refuse(fmt::format("process {}: {} processes of this node are connected already",
                              peer.pid, programs_.size()));
  }
  auto program = std::make_unique<ProxyProgram>();
  program->pid = peer.pid;
  program->rank = RankOfPeer(options_.proc, peer.pid);
  program->connection = std::move(connection);
  epoll_event event = {.events = EPOLLIN, .data = {.ptr = program.get()}};
  if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, program->connection.get(), &event) != 0) {
    return Refuse(std::string(SystemError("watch a process").message()));
  }
  programs_.push_back(std::move(program));
  ++counts_.accepted;
}

void ProxyDoor::Refuse(std::string why) {
  ++counts_.refused;
  LeaveOut(std::move(why));
}

void ProxyDoor::LeaveOut(std::string why) {
  if (left_out_.empty()) left_out_ = std::move(why);
}

void ProxyDoor::Drop(ProxyProgram& program, const Status& why) {
  ++counts_.dropped;
  if (complaints_ < kMaxComplaints) {
    const bool last = ++complaints_ == kMaxComplaints;
    log::Warning("programs for metric-proxy: process {} is no longer read: {}{}", program.pid,
                 why.message(), last ? "; further such processes are not logged" : "");
  }
  Remove(program);
}

void ProxyDoor::Remove(ProxyProgram& program) {
  std::erase_if(programs_, [&](const auto& other) { return other.get() == &program; });
}

}  // namespace sonde::collect
