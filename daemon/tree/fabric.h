// The fabric between the nodes, through libfabric: links that a node's daemon accepts from its
// children and makes to its parent.
//
// Nothing here names an endpoint type: today's implementation is FI_EP_MSG (tcp, verbs), where a
// dead peer is reported at once. Neither reports black-holed packets, and that a message was sent
// does not mean it arrived: heartbeats and acknowledgements are the tree's.
//
// Thread safety: the loop's thread only. A fabric's links may outlive it; the loop outlives both.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/loop.h"
#include "daemon/tree/background.h"
#include "daemon/tree/link.h"

namespace sonde::tree {

struct FabricOptions {
  std::string provider = "tcp";
  // A numeric address of the interface to use; "" for the one the provider puts first.
  std::string local_address;
  // Links open at the same time; more are refused. The completion queue is sized by it.
  size_t max_links = 64;
  // Of these, connections that are being accepted and have not been handed over.
  size_t max_pending = 16;
};

class Fabric {
 public:
  using Opened = std::function<void(Result<std::unique_ptr<Fabric>>)>;
  using Accepted = std::function<void(std::unique_ptr<Link>)>;

  // How long a connection may take to be made, either way.
  static constexpr Nanos kConnectTimeout = 10 * kSecond;

  // Loads libfabric and opens the provider on a thread of its own (60 to 90 ms of CPU), then calls
  // `opened`. Destroying the returned call cancels that. Failures name the provider or interface
  // and what there is instead.
  static Result<std::unique_ptr<BackgroundCall>> Open(Loop& loop, FabricOptions options,
                                                      Opened opened);
  // The providers of this machine that a fabric can be opened on, for people. Blocks: for commands.
  static Result<std::vector<std::string>> AvailableProviders();

  virtual ~Fabric() = default;

  // Accepts connections from now on. Returns the address to tell those who are to connect: bytes
  // that only a fabric of the same provider understands.
  virtual Result<std::string> Listen(Accepted accepted) = 0;
  // A link that is being connected; messages wait in it meanwhile. The address is checked: it came
  // from another daemon.
  virtual Result<std::unique_ptr<Link>> Connect(std::string_view address) = 0;
  // "tcp at 10.0.0.7 (libfabric 1.17)", for the log.
  virtual std::string name() const = 0;
};

}  // namespace sonde::tree
