#include "daemon/collect/app/door.h"

#include <fmt/core.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <utility>

#include "core/descriptor_message.h"
#include "core/log.h"
#include "libclient/layout.h"

namespace sonde::collect {
namespace {

constexpr int kQueue = 4096;  // processes that may wait for a tick; the kernel may allow fewer
constexpr int kMaxComplaints = 32;
constexpr size_t kMaxPacket = 256;

}  // namespace

Status AppDoor::Open() {
  if (options_.listener >= 0) {
    listener_ = UniqueFd(options_.listener);
  } else {
    SONDE_RETURN_IF_ERROR(Bind());
  }
  epoll_ = UniqueFd(epoll_create1(EPOLL_CLOEXEC));
  epoll_event event = {.events = EPOLLIN, .data = {.ptr = nullptr}};
  if (!epoll_ || epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, listener_.get(), &event) != 0) {
    return SystemError("watch the socket for the application");
  }
  return {};
}

Status AppDoor::Bind() {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  const std::string& name = options_.socket;
  if (name.empty() || name.size() + 1 > sizeof(address.sun_path)) {
    return {Code::kInvalid, fmt::format("'{}' cannot be the name of a socket", name)};
  }
  std::memcpy(address.sun_path + 1, name.data(), name.size());
  const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  listener_ = UniqueFd(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!listener_) return SystemError("open a socket for the application");
  if (bind(listener_.get(), reinterpret_cast<const sockaddr*>(&address), length) != 0 ||
      listen(listener_.get(), kQueue) != 0) {
    return SystemError(fmt::format("listen for the application at @{}", name));
  }
  return {};
}

void AppDoor::Poll(Nanos now) {
  epoll_event events[64];
  int count = 0;
  do {
    count = epoll_wait(epoll_.get(), events, std::size(events), 0);
    bool more_to_accept = false;
    for (int i = 0; i < count; ++i) {
      if (events[i].data.ptr == nullptr) {
        more_to_accept = true;
      } else {
        Receive(*static_cast<AppProcess*>(events[i].data.ptr));
      }
    }
    if (more_to_accept) AcceptAll(now);
  } while (count == static_cast<int>(std::size(events)));
  DropSilent(now);
}

// No more than the queue holds, so that a flood cannot keep the daemon here.
void AppDoor::AcceptAll(Nanos now) {
  for (int i = 0; i < kQueue; ++i) {
    UniqueFd connection(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!connection) {
      if (errno == EAGAIN) return;
      if (errno != ECONNABORTED && errno != EINTR) {
        return Refuse(std::string(SystemError("accept a process").message()));
      }
      continue;
    }
    Admit(std::move(connection), now);
  }
}

void AppDoor::Admit(UniqueFd connection, Nanos now) {
  ucred peer = {};
  socklen_t size = sizeof(peer);
  if (getsockopt(connection.get(), SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0 ||
      peer.uid != options_.uid) {
    return Refuse(fmt::format("process {} belongs to user {}, the step to user {}", peer.pid,
                              peer.uid, options_.uid));
  }
  if (processes_.size() >= options_.max_processes) let_go_(now);
  if (processes_.size() >= options_.max_processes) {
    return Refuse(fmt::format("process {}: {} processes of this node are attached already",
                              peer.pid, processes_.size()));
  }
  auto process = std::make_unique<AppProcess>();
  process->pid = peer.pid;
  process->since = now;
  process->connection = std::move(connection);
  epoll_event event = {.events = EPOLLIN, .data = {.ptr = process.get()}};
  if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, process->connection.get(), &event) != 0) {
    return Refuse(std::string(SystemError("watch a process").message()));
  }
  processes_.push_back(std::move(process));
  Receive(*processes_.back());
}

void AppDoor::Receive(AppProcess& process) {
  using State = AppProcess::State;
  while (process.state == State::kSilent || process.state == State::kLive) {
    char packet[kMaxPacket];
    // One is expected; others are closed.
    auto received =
        ReceiveWithDescriptors(process.connection.get(), packet, kMostDescriptors, Patience::kNone);
    if (received.ok()) {
      UniqueFd memory = received->fds.empty() ? UniqueFd() : std::move(received->fds.front());
      OnPacket(process, packet, received->size, std::move(memory));
    } else if (received.status().code() == Code::kBusy) {
      return;
    } else if (received.status().code() == Code::kCorrupt) {
      return Drop(process, received.status());
    } else {
      process.state = process.state == State::kLive ? State::kEnded : State::kDropped;
      return process.connection.Reset();
    }
  }
}

void AppDoor::OnPacket(AppProcess& process, const char* packet, size_t size, UniqueFd memory) {
  if (process.state != AppProcess::State::kSilent) {
    return Drop(process, Status(Code::kCorrupt, "a second packet"));
  }
  const Status greeted = Greet(process, std::string_view(packet, size), memory);
  if (!greeted.ok()) return Drop(process, greeted);
  process.state = AppProcess::State::kLive;
  ++counts_.attached;
  SendWelcome(process);
}

Status AppDoor::Greet(AppProcess& process, std::string_view packet, const UniqueFd& memory) {
  const Result<client::Hello> hello = ParseHello(packet);
  if (!hello.ok()) return hello.status();
  if (!memory) return {Code::kCorrupt, "a hello without memory"};
  Result<AppMapping> mapping = AppMapping::Make(memory.get());
  if (!mapping.ok()) return mapping.status();
  process.mapping = std::move(mapping).value();
  process.segment.emplace(process.mapping->base());
  // A program that no launcher gave a rank is the only one of its step.
  process.rank = std::max(hello->rank, 0);
  return process.segment->CheckHeader();
}

void AppDoor::SendWelcome(const AppProcess& process) {
  const client::Welcome welcome = {client::kMagic, client::kVersion, options_.level,
                                   options_.period};
  // The process is not waited for: one that is gone already does not need the welcome.
  send(process.connection.get(), &welcome, sizeof(welcome), MSG_DONTWAIT | MSG_NOSIGNAL);
}

void AppDoor::Drop(AppProcess& process, const Status& why) {
  process.state = AppProcess::State::kDropped;
  process.connection.Reset();
  process.segment.reset();
  process.mapping.reset();
  ++counts_.dropped;
  if (complaints_ >= kMaxComplaints) return;
  const bool last = ++complaints_ == kMaxComplaints;
  log::Warning("application: process {} (rank {}) is no longer read: {}{}", process.pid,
               process.rank, why.message(), last ? "; further such processes are not logged" : "");
}

void AppDoor::Refuse(const std::string& why) {
  ++counts_.refused;
  if (!std::exchange(said_refused_, true)) {
    log::Warning("application: refused: {}; further refusals are not logged", why);
  }
}

// libsonde sends its hello at once; a process that does not only takes a place.
void AppDoor::DropSilent(Nanos now) {
  for (const auto& process : processes_) {
    if (process->state == AppProcess::State::kSilent &&
        now - process->since > options_.hello_within) {
      process->state = AppProcess::State::kDropped;
      process->connection.Reset();
      Refuse(fmt::format("process {} attached and did not introduce itself", process->pid));
    }
  }
}

}  // namespace sonde::collect
