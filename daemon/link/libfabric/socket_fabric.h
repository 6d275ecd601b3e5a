// Links between nodes over plain TCP sockets, behind the interface of the fabric.
//
// For networks on which libfabric would do no more than that: opening its tcp provider costs a
// process 90 ms of CPU time, 0.8 MB of memory and 7 descriptors, this nothing (docs/transport.md).
// The links are SocketLinks, so a peer whose machine is gone is noticed after about 10 s. How many
// may be open is not bounded here: the Acceptor bounds those that have not proved the key, and
// there are no more others than nodes.
//
// Thread safety: the loop's thread only. Links may outlive the fabric; the loop outlives both.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "daemon/link/libfabric/fabric.h"
#include "daemon/link/listener.h"
#include "daemon/loop.h"

namespace sonde::tree {

class SocketFabric final : public Fabric {
 public:
  // `provider` of sonde.conf for this; none of libfabric's.
  static constexpr std::string_view kProvider = "sockets";

  // `local_address`: numeric, or the name of a network interface: where it listens and what it
  // tells its children. `ports`: {0, 0} is any.
  SocketFabric(Loop& loop, std::string local_address, PortRange ports = {0, 0})
      : loop_(loop), local_address_(std::move(local_address)), ports_(ports) {}

  // The address of the interface that the options ask for, else their local_address.
  static std::string AddressOn(const FabricOptions& options);
  // What a peer says is the address of one, taken apart: a numeric host and a port.
  struct Target {
    std::string host;
    uint16_t port = 0;
  };
  static Result<Target> Parse(std::string_view address);

  Result<std::string> Listen(Accepted accepted) override;
  void StopListening() override { listener_.reset(); }
  Result<std::unique_ptr<Link>> Connect(std::string_view address) override;
  std::string name() const override { return "sockets at " + local_address_; }

 private:
  Loop& loop_;
  std::string local_address_;
  const PortRange ports_;
  std::unique_ptr<Listener> listener_;
};

}  // namespace sonde::tree
