// The fabric between the nodes, through libfabric: links that a node's daemon accepts from its
// children and makes to its parent.
//
// Two kinds of endpoints serve, with one face: FI_EP_MSG (tcp, verbs), where a dead peer is
// reported at once, and FI_EP_RDM (cxi, opx, psm3, efa), where nothing is reported and the link
// watches the clock. Neither reports black-holed packets, and that a message was sent does not mean
// it arrived: heartbeats and acknowledgements are the tree's.
//
// Thread safety: the loop's thread only. A fabric's links may outlive it; the loop outlives both.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/text/settings.h"
#include "daemon/background.h"
#include "daemon/link/link.h"
#include "daemon/loop.h"

namespace sonde::tree {

// The kinds of libfabric's endpoints that can be used.
enum class Endpoint : uint8_t { kMsg, kRdm };

struct FabricOptions {
  // A libfabric provider, several separated by commas, the preferred first, or `auto`.
  std::string provider = "tcp";
  // Where links are to be: a numeric address, a network interface ("ib0"), or a domain of the
  // provider's ("mlx5_0", "cxi0"). "": where local_address is, if the provider is there, else where
  // the provider chooses.
  std::string interface;
  std::string local_address;  // numeric, one of this host's; "": none preferred
  // Where endpoints with a port of TCP or UDP listen; {0, 0}: anywhere.
  PortRange ports{0, 0};
  // The first of these that works.
  std::vector<Endpoint> endpoints = {Endpoint::kMsg, Endpoint::kRdm};
  // Links open at the same time; more are refused. The completion queue is sized by it.
  size_t max_links = 64;
  // Of these, connections that are being accepted and have not been handed over.
  size_t max_pending = 16;
  // Over RDM: a peer of whom nothing is heard for so long is gone.
  Nanos silence = 10 * kSecond;
};

// What became of a provider, for people.
struct ProviderFinding {
  std::string provider;
  bool chosen = false;
  std::string text;  // where and how it would be used, or why not
};
struct FabricFindings {
  std::string library;  // "libfabric 1.17"; "": there is none
  std::vector<ProviderFinding> providers;
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
  // The providers of FabricOptions::provider in the order in which they are tried; `auto` means
  // those of the machine's own fabrics (native_fabrics.h), then `sockets`. Open leaves out
  // `sockets`, which is none of libfabric's, and what follows it.
  static std::vector<std::string> Preference(const std::string& provider,
                                             const std::string& sys = "/sys");
  // What carries the data of links to an address that Listen gave, for people: "sockets", "cxi".
  // `provider` as in FabricOptions.
  static std::string CarrierOf(std::string_view address, const std::string& provider);
  // Tries what a daemon would do, and tells of every provider that is asked for or installed.
  // Blocks, and needs no loop: for commands.
  static Result<FabricFindings> Examine(const FabricOptions& options);

  virtual ~Fabric() = default;

  // Accepts connections from now on. Returns the address to tell those who are to connect: bytes
  // that only a fabric of the same provider understands.
  virtual Result<std::string> Listen(Accepted accepted) = 0;
  // Nobody is to connect any more. What was accepted and handed over stays.
  virtual void StopListening() = 0;
  // A link that is being connected; messages wait in it meanwhile. The address is checked: it came
  // from another daemon. kUnsupported if it is that of another kind of fabric.
  virtual Result<std::unique_ptr<Link>> Connect(std::string_view address) = 0;
  // "tcp at 10.0.0.7 (libfabric 1.17)", for the log.
  virtual std::string name() const = 0;
};

}  // namespace sonde::tree
