#include "daemon/tree/silent_connections.h"

#include <fcntl.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <optional>
#include <vector>

#include "core/log.h"
#include "daemon/tree/address.h"

namespace sonde::tree {
namespace {

// The number the next descriptor would get: all below it are in use.
int NextDescriptor() {
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd >= 0) {
    close(fd);
    return fd;
  }
  rlimit files{};
  getrlimit(RLIMIT_NOFILE, &files);
  return static_cast<int>(files.rlim_cur);
}

// For how long this accepted connection has said nothing; nothing if it has said something, or is
// something else.
std::optional<Nanos> SilentFor(int fd) {
  tcp_info info{};
  socklen_t size = sizeof info;
  if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size) != 0) return {};
  constexpr size_t kNeeded = offsetof(tcp_info, tcpi_bytes_received) + sizeof(uint64_t);
  constexpr int kEstablished = 1;
  if (size < kNeeded || info.tcpi_state != kEstablished || info.tcpi_bytes_received != 0) return {};
  return info.tcpi_last_ack_recv * kMillisecond;
}

}  // namespace

SilentConnections::SilentConnections(uint16_t port)
    : port_(port), worth_looking_(NextDescriptor() + kMore) {}

void SilentConnections::Look() {
  const Nanos now = Clock::System().Monotonic();
  if (now < next_) return;
  next_ = now + kInterval;
  // The lowest number that is free: what was shut down has left holes below the others.
  const int below = NextDescriptor();
  if (below < worth_looking_ && look_below_ == 0) return;
  look_below_ = std::max(look_below_, below);
  if (ShutDown(look_below_)) return;
  look_below_ = 0;
  worth_looking_ = below + kMore;
}

bool SilentConnections::ShutDown(int below) {
  struct Silent {
    int fd;
    Nanos since;
  };
  std::vector<Silent> silent;
  for (int fd = 0; fd < below; ++fd) {
    const std::optional<Nanos> since = SilentFor(fd);
    if (since && PortOf(LocalAddress(fd)) == port_) silent.push_back({fd, *since});
  }
  const uint64_t before = shut_;
  const Nanos patience = silent.size() > kFlood ? kFloodPatience : kPatience;
  for (const Silent& one : silent) {
    if (one.since < patience) continue;
    // The descriptor is the library's to close, which it does when it finds the end.
    shutdown(one.fd, SHUT_RDWR);
    ++shut_;
  }
  if (shut_ > before && log_limit_.Take()) {
    log::Info("connections to port {} that said nothing were shut down, {} so far", port_, shut_);
  }
  return !silent.empty();
}

}  // namespace sonde::tree
