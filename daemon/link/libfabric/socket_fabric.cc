#include "daemon/link/libfabric/socket_fabric.h"

#include <fmt/core.h>

#include <charconv>
#include <utility>

#include "daemon/link/address.h"
#include "daemon/link/socket_link.h"

namespace sonde::tree {
namespace {

// In front of what goes to the children, so that no fabric of libfabric's takes it for its own.
// Never to change: versions of Sonde may differ by a release within a step.
constexpr std::string_view kFormat = "tcp:";
constexpr size_t kMaxAddress = 128;

}  // namespace

// "tcp:10.0.0.7:51234" or "tcp:fe80::1:51234": the port stands behind the last colon.
Result<SocketFabric::Target> SocketFabric::Parse(std::string_view address) {
  const Status bad(Code::kInvalid,
                   "connect to the parent: its address is not one of plain sockets; is `provider` "
                   "the same on all nodes?");
  const size_t colon = address.rfind(':');
  if (address.size() > kMaxAddress || !address.starts_with(kFormat) || colon < kFormat.size() ||
      address.find('\0') != std::string_view::npos) {
    return bad;
  }
  Target target;
  target.host = address.substr(kFormat.size(), colon - kFormat.size());
  const std::string_view port = address.substr(colon + 1);
  const auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), target.port);
  if (error != std::errc() || end != port.data() + port.size() || target.port == 0) return bad;
  // Numeric, or a peer could have this node's resolver ask for whatever it likes.
  if (!Resolve(target.host, target.port, true).ok()) return bad;
  return target;
}

std::string SocketFabric::AddressOn(const FabricOptions& options) {
  if (options.interface.empty()) return options.local_address;
  if (Resolve(options.interface, 0, true).ok()) return options.interface;
  const std::vector<std::string> addresses = AddressesOf(options.interface);
  return addresses.empty() ? options.local_address : addresses.front();
}

Result<std::string> SocketFabric::Listen(Accepted accepted) {
  // "ib0" as well as an address.
  if (const auto of_interface = AddressesOf(local_address_); !of_interface.empty()) {
    local_address_ = of_interface.front();
  }
  auto listener =
      Listener::Open(loop_, local_address_, ports_,
                     [accepted = std::move(accepted)](std::unique_ptr<SocketLink> link) {
                       accepted(std::move(link));
                     });
  if (!listener.ok()) return listener.status();
  listener_ = *std::move(listener);
  return fmt::format("{}{}:{}", kFormat, local_address_, listener_->port());
}

Result<std::unique_ptr<Link>> SocketFabric::Connect(std::string_view address) {
  const Result<Target> target = Parse(address);
  if (!target.ok()) return target.status();
  auto link = SocketLink::Connect(loop_, target->host, target->port);
  if (!link.ok()) return link.status();
  return std::unique_ptr<Link>(*std::move(link));
}

}  // namespace sonde::tree
