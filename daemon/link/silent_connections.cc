#include "daemon/link/silent_connections.h"

#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <unordered_map>
#include <utility>

#include "core/log.h"
#include "daemon/collect/read/directory.h"
#include "daemon/link/address.h"

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

}  // namespace

SilentConnections::SilentConnections(uint16_t port, size_t most)
    : port_(port), most_(most), worth_looking_(NextDescriptor() + kMore) {}

void SilentConnections::Look() {
  const Nanos now = Clock::System().Monotonic();
  if (now < next_) return;
  next_ = now + kInterval;
  if (!looking_ && NextDescriptor() < worth_looking_) return;
  looking_ = LookAtAll();
  if (!looking_) worth_looking_ = NextDescriptor() + kMore;
}

std::optional<SilentConnections::Connection> SilentConnections::ConnectionAt(int fd) const {
  tcp_info info{};
  socklen_t size = sizeof info;
  if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size) != 0) return {};
  constexpr size_t kNeeded = offsetof(tcp_info, tcpi_bytes_received) + sizeof(uint64_t);
  constexpr int kEstablished = 1;
  if (size < kNeeded || info.tcpi_state != kEstablished) return {};
  if (PortOf(LocalAddress(fd)) != port_) return {};
  return Connection{fd, info.tcpi_bytes_received, info.tcpi_last_ack_recv * kMillisecond,
                    HostText(PeerAddress(fd))};
}

// From the kernel's list, as what was shut down has left holes; of very many the first, and then
// the next.
std::vector<SilentConnections::Connection> SilentConnections::Accepted() const {
  std::vector<Connection> accepted;
  for (const std::string& name : collect::ListDirectory("/proc/self/fd")) {
    int fd = -1;
    std::from_chars(name.data(), name.data() + name.size(), fd);
    if (auto one = ConnectionAt(fd)) accepted.push_back(*std::move(one));
  }
  return accepted;
}

bool SilentConnections::LookAtAll() {
  std::vector<Connection> speaking = Accepted();
  const auto first_silent = std::partition(
      speaking.begin(), speaking.end(), [](const auto& one) { return one.received >= kRequest; });
  const std::vector<Connection> silent(first_silent, speaking.end());
  speaking.erase(first_silent, speaking.end());
  const uint64_t before = shut_;
  ShutSilent(silent);
  if (speaking.size() > most_) ShutCrowd(std::move(speaking));
  if (shut_ > before && log_limit_.Take()) {
    log::Info(
        "connections to port {} that said nothing, or were too many, were shut down, {} so far",
        port_, shut_);
  }
  return !silent.empty() || shut_ > before;
}

void SilentConnections::ShutSilent(const std::vector<Connection>& silent) {
  const Nanos patience = silent.size() > kFlood ? kFloodPatience : kPatience;
  for (const Connection& one : silent) {
    if (one.silent_for >= patience) Shut(one);
  }
}

// Every host keeps its first, then its second, and so on, as long as there is room; its first is
// the one that has said most.
void SilentConnections::ShutCrowd(std::vector<Connection> crowd) {
  std::sort(crowd.begin(), crowd.end(),
            [](const auto& a, const auto& b) { return a.received > b.received; });
  std::unordered_map<std::string, size_t> of_host;
  for (Connection& one : crowd) one.place = of_host[one.host]++;
  std::stable_sort(crowd.begin(), crowd.end(),
                   [](const auto& a, const auto& b) { return a.place < b.place; });
  for (size_t i = most_; i < crowd.size(); ++i) Shut(crowd[i]);
}

// The descriptor is the library's to close, which it does when it finds the end.
void SilentConnections::Shut(const Connection& one) {
  shutdown(one.fd, SHUT_RDWR);
  ++shut_;
}

}  // namespace sonde::tree
