#include "spank/rendezvous.h"

#include <netinet/in.h>
#include <sys/socket.h>

#include <charconv>

#include "launcher/high_descriptor.h"
#include "launcher/random.h"
#include "launcher/read_file.h"

namespace sonde::spank {
namespace {

// Every node of the step may connect in the same moment; the kernel cuts it to net.core.somaxconn.
constexpr int kBacklog = 4096;

// Tries one port; 0 is any.
Result<Listener> ListenOn(uint16_t port) {
  Listener listener;
  listener.fd = UniqueFd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!listener.fd) return SystemError("socket");
  const int on = 1;
  // A port of a step that has just ended may be used again at once.
  ::setsockopt(listener.fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_ANY);
  address.sin_port = htons(port);
  socklen_t size = sizeof(address);
  if (::bind(listener.fd.get(), reinterpret_cast<sockaddr*>(&address), size) != 0 ||
      ::listen(listener.fd.get(), kBacklog) != 0 ||
      ::getsockname(listener.fd.get(), reinterpret_cast<sockaddr*>(&address), &size) != 0) {
    return SystemError("listen on port " + std::to_string(port));
  }
  launch::MoveUp(listener.fd);
  listener.port = ntohs(address.sin_port);
  return listener;
}

}  // namespace

Result<Listener> Listen(std::optional<PortRange> range) {
  if (!range) return ListenOn(0);
  // Steps that start together begin their search at different ports.
  const uint32_t count = range->second - range->first + 1u;
  const Result<std::string> random = launch::RandomHex<4>();
  uint32_t start = 0;
  if (random.ok()) std::from_chars(random->data(), random->data() + random->size(), start, 16);
  for (uint32_t i = 0; i < count; ++i) {
    const uint32_t port = range->first + (start % count + i) % count;
    Result<Listener> listener = ListenOn(static_cast<uint16_t>(port));
    if (listener.ok()) return listener;
  }
  return Status(Code::kUnavailable, "no free port from " + std::to_string(range->first) + " to " +
                                        std::to_string(range->second));
}

std::optional<PortRange> AllowedPorts(const PluginConfig& config,
                                      const launch::Environment& environment) {
  if (!config.port_range.empty()) return ParsePortRange(config.port_range);
  const std::string given(environment.First("SLURM_CONF"));
  const std::string paths[] = {given, given.empty() ? "/etc/slurm/slurm.conf" : "",
                               given.empty() ? "/run/slurm/conf/slurm.conf" : ""};
  for (const std::string& path : paths) {
    if (path.empty()) continue;
    const Result<std::string> text = launch::ReadFile(path);
    if (text.ok()) return FindSrunPortRange(*text);
  }
  return std::nullopt;
}

std::optional<Rendezvous> ParseRendezvous(std::string_view text) {
  Rendezvous rendezvous;
  const char* const end = text.data() + text.size();
  const auto [colon, error] = std::from_chars(text.data(), end, rendezvous.port);
  if (error != std::errc() || colon == end || *colon != ':' || rendezvous.port == 0) {
    return std::nullopt;
  }
  const std::string_view key(colon + 1, static_cast<size_t>(end - colon - 1));
  if (key.size() != kKeyDigits ||
      key.find_first_not_of("0123456789abcdef") != std::string_view::npos) {
    return std::nullopt;
  }
  if (key == NoKey()) return std::nullopt;
  rendezvous.key = key;
  return rendezvous;
}

}  // namespace sonde::spank
