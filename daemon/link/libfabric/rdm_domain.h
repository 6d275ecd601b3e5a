// What all FI_EP_RDM links of one fabric share: one endpoint, one completion queue, an address
// vector, and a few receive buffers for all peers together.
//
// Such an endpoint sends to addresses and receives from anybody; connections are made of packets
// (rdm_packet.h), here and in RdmLink. What comes for no link of ours is dropped and leaves nothing
// behind. The number of peers is bounded, so strangers cost no more than those.
//
// Waking up: where the provider has a descriptor to wait on, the loop watches it, armed with
// fi_trywait. Where it has none (efa, older cxi), the queue is polled by a timer: kPollMin after
// anything happened, then ever more seldom up to kPollMax. So a fabric that polls wakes an idle
// process 20 times a second. A descriptor that is ready again and again while there is nothing
// (always with net of libfabric 1.17, for some 10 ms with ofi_rxm) is not watched for a time,
// which doubles up to 30 s, and the queue is polled meanwhile: nothing spins.
//
// Owned by the Fabric and each of its links together. Thread safety: Open from any thread;
// everything else from the loop's.
#pragma once

#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "daemon/link/libfabric/fabric.h"
#include "daemon/link/libfabric/fabric_library.h"
#include "daemon/link/libfabric/rdm_packet.h"
#include "daemon/link/libfabric/rdm_slots.h"
#include "daemon/link/log_limit.h"
#include "daemon/link/silent_connections.h"
#include "daemon/loop.h"

namespace sonde::tree {

class RdmLink;

class RdmDomain : public std::enable_shared_from_this<RdmDomain> {
 public:
  static constexpr size_t kReceives = 16;
  static constexpr size_t kSendsPerLink = 4;
  static constexpr Nanos kPollMin = kMillisecond;
  static constexpr Nanos kPollMax = 50 * kMillisecond;
  // How long we try to send the word that a link is closed.
  static constexpr Nanos kFarewellLimit = 2 * kSecond;

  static Result<std::shared_ptr<RdmDomain>> Open(const FabricLibrary& library,
                                                 FabricOptions options, FabricInfo info);
  ~RdmDomain();
  RdmDomain(const RdmDomain&) = delete;
  RdmDomain& operator=(const RdmDomain&) = delete;

  Status Attach(Loop& loop);
  Result<std::string> Listen(Fabric::Accepted accepted);
  void StopListening();
  std::string name() const;
  // "10.0.0.7", "cxi0": the interface.
  std::string where() const;
  bool polls() const { return wait_fd_ < 0; }

  // For the links.
  Loop& loop() { return *loop_; }
  const FabricLibrary& library() const { return library_; }
  const FabricOptions& options() const { return options_; }
  struct Target {
    uint32_t peer = 0;
    uint64_t number = 0;  // in the listener's address
    std::string text;     // "10.0.0.7:51234 over efa"
  };
  // A peer to send to, whose Listen has returned this address; Retire lets go of it. kUnsupported
  // if the address is that of another kind of fabric.
  Result<Target> TargetOf(std::string_view address);
  // Sends `last`, if it can be, and forgets the peer.
  void Retire(uint32_t peer, const std::optional<RdmPacket>& last);
  // Counts a link in and gives it its number; kLimit beyond max_links.
  Result<uint64_t> Add(RdmLink* link);
  void Remove(uint64_t number);
  // True if it is on its way, false if it must be tried again. `packet.payload` is not looked at:
  // it is made of the two pieces.
  Result<bool> Send(uint32_t peer, const RdmPacket& packet, std::string_view first = {},
                    std::string_view second = {});
  // Where others can reach this endpoint: a hello's payload.
  const std::string& own_address() const { return own_address_; }
  // An accepted link works: it goes to its owner.
  void HandOver(uint64_t number);
  void DropPending(uint64_t number);
  size_t pending() const { return pending_.size(); }
  // Takes what has arrived. Handlers are called.
  void Drain();

 private:
  // Some providers give an address that they know already the same number once more, and do not
  // count how often: the first removal would then end all links to that peer.
  struct Address {
    fi_addr_t number = FI_ADDR_UNSPEC;
    uint32_t peers = 0;
  };
  using Known = std::unordered_map<std::string, Address>;
  struct Peer {
    Known::value_type* address = nullptr;
    uint32_t under_way = 0;
    bool retired = false;
    std::optional<RdmPacket> last;
    Nanos until = 0;
  };

  RdmDomain(const FabricLibrary& library, FabricOptions options, FabricInfo info);

  // Peers of links, of links to be, and peers that are told that there is no room for them.
  size_t MostPeers() const { return options_.max_links + 2 * options_.max_pending; }
  Status Describe(std::string_view what, long rc) const;
  Status OpenQueue();
  Status OpenEndpoint();
  Status EnableEndpoint(fi_info& info);
  Status OpenReceives();
  bool Post(RdmSlot* slot);
  std::unique_ptr<RdmLink> TakePending(uint64_t number);
  void MakeRoom();
  bool Progress();
  bool ReadCompletions();
  void OnError();
  void OnSent(RdmSlot* slot, int error);
  void OnReceived(const RdmSlot& slot, size_t length);
  void OnHello(const RdmPacket& packet);
  void Poll(bool found);
  void CountBarren(bool useful);
  Status Watch();
  Result<Known::value_type*> Insert(std::string_view raw);
  Result<uint32_t> AddPeer(std::string_view address);
  std::string PeerText(std::string_view address) const;
  using PeerAt = std::unordered_map<uint32_t, Peer>::iterator;
  PeerAt Forget(PeerAt at);
  void ForgetOldest();
  void Tidy();

  const FabricLibrary& library_;
  const FabricOptions options_;
  const std::string provider_;
  FabricInfo info_;
  FidPtr<fid_fabric> fabric_;
  FidPtr<fid_domain> domain_;
  FidPtr<fid_av> addresses_;
  FidPtr<fid_cq> completions_;
  std::unique_ptr<RdmSlots> slots_;  // outlive the endpoint
  FidPtr<fid_ep> endpoint_;
  std::string own_address_;
  std::optional<SilentConnections> silent_;  // at the provider's port, if it is made of TCP
  std::vector<RdmSlot*> unposted_;           // receives that the provider did not take yet

  Loop* loop_ = nullptr;
  Loop::SleepCheckId sleep_check_ = 0;
  int wait_fd_ = -1;  // of the queue
  bool watching_ = false;
  bool busy_ = false;
  bool found_ = false;  // anything, since the loop last slept
  bool woken_ = false;  // by the descriptor
  Loop::TimerId poll_timer_ = 0;
  Nanos poll_due_ = 0;
  Nanos poll_wait_ = kPollMin;
  bool polled_ = false;
  uint32_t polls_ = 0;  // in vain, since there was something
  Nanos barren_since_ = 0;
  uint32_t barren_ = 0;
  Nanos rest_ = 0;  // without the descriptor
  Nanos rest_until_ = 0;

  uint64_t listen_number_ = 0;
  LogLimit accept_log_limit_;
  std::shared_ptr<const Fabric::Accepted> accepted_;
  Known known_;  // in the address vector
  uint32_t next_peer_ = 1;
  std::unordered_map<uint32_t, Peer> peers_;
  size_t abandoned_ = 0;  // sends under way to peers that are forgotten
  Loop::TimerId tidy_timer_ = 0;
  Nanos tidy_wait_ = kPollMin;
  std::unordered_map<uint64_t, RdmLink*> links_;
  std::vector<std::unique_ptr<RdmLink>> pending_;  // by age
  // Peers' numbers of the accepted links that ended last: a hello of one of these is no new link.
  static constexpr size_t kFormer = 128;
  std::deque<uint64_t> former_;
};

}  // namespace sonde::tree
