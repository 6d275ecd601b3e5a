#include "daemon/launched_nodes.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <string>

#include "launcher/launch.h"
#include "launcher/lifeline.h"

namespace sonde {
namespace {

// Nothing tells that one more has connected to a socket that somebody waits at already.
constexpr int kLook = 1;  // ms

// Of the launch message, which is still to come if this is 0.
uint32_t NodesOfStep(int lifeline) {
  std::string packet(launch::kMaxPacket, '\0');
  const ssize_t size = ::recv(lifeline, packet.data(), packet.size(), MSG_PEEK | MSG_DONTWAIT);
  if (size <= 0 || packet[0] != launch::kLaunch) return 0;
  packet.resize(static_cast<size_t>(size));
  uint32_t nodes = 0;
  launch::ForEach(std::string_view(packet).substr(1),
                  [&](std::string_view key, std::string_view value) {
                    if (key != launch::key::kNodes) return;
                    std::from_chars(value.data(), value.data() + value.size(), nodes);
                  });
  return nodes;
}

// How many have connected and are not yet accepted: tcp(7), of a socket that listens.
uint32_t Waiting(int listening) {
  tcp_info info{};
  socklen_t size = sizeof(info);
  if (::getsockopt(listening, IPPROTO_TCP, TCP_INFO, &info, &size) != 0) return 0;
  return info.tcpi_unacked;
}

}  // namespace

Launched AwaitLaunchedNodes(int listening, int lifeline, const LaunchPatience& patience) {
  pollfd events[] = {{lifeline, POLLRDHUP, 0}, {listening, POLLIN, 0}};
  const auto ended = [&] { return events[0].revents != 0; };
  const int come = ::poll(events, 2, static_cast<int>(patience.first.count()));
  if (come <= 0) return Launched::kNone;
  if (ended()) return Launched::kEnded;
  const launch::Deadline deadline(patience.others);
  const uint32_t nodes = NodesOfStep(lifeline);
  for (int left = deadline.LeftMs(); left > 0; left = deadline.LeftMs()) {
    if (nodes > 0 && Waiting(listening) >= nodes) return Launched::kAll;
    if (::poll(events, 1, std::min(left, kLook)) != 0) return Launched::kEnded;
  }
  return Launched::kSome;
}

}  // namespace sonde
