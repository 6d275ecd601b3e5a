// What all FI_EP_MSG links of one fabric share: the domain, one event queue, one completion queue,
// and the listening endpoint.
//
// The queues' descriptors are watched by the loop and armed (fi_trywait) before it sleeps. Every
// completion names the link by a number, never by a pointer: one that comes after its link is gone
// finds nothing.
//
// Owned by the Fabric and each of its links together. Thread safety: Open from any thread;
// everything else from the loop's.
#pragma once

#include <rdma/fabric.h>
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
#include <utility>
#include <vector>

#include "daemon/link/libfabric/fabric.h"
#include "daemon/link/libfabric/fabric_library.h"
#include "daemon/link/log_limit.h"
#include "daemon/link/silent_connections.h"
#include "daemon/loop.h"

namespace sonde::tree {

class FabricLink;

// A connection that somebody asks for. It is rejected unless an endpoint takes it, so that whoever
// asks hears at once. Not longer there than the listening endpoint.
class FabricRequest {
 public:
  FabricRequest(FabricInfo info, fid_pep* listener) : info_(std::move(info)), listener_(listener) {}
  ~FabricRequest() { Reject(); }
  FabricRequest(FabricRequest&& other) noexcept
      : info_(std::move(other.info_)), listener_(std::exchange(other.listener_, nullptr)) {}
  FabricRequest& operator=(FabricRequest&&) = delete;

  fi_info* info() const { return info_.get(); }
  // There is an endpoint, and with that the connection ends.
  void Taken() { listener_ = nullptr; }

 private:
  void Reject();

  FabricInfo info_;
  fid_pep* listener_;
};

class FabricDomain : public std::enable_shared_from_this<FabricDomain> {
 public:
  static Result<std::shared_ptr<FabricDomain>> Open(const FabricLibrary& library,
                                                    FabricOptions options, FabricInfo info);
  ~FabricDomain();
  FabricDomain(const FabricDomain&) = delete;
  FabricDomain& operator=(const FabricDomain&) = delete;

  Status Attach(Loop& loop);
  Result<std::string> Listen(Fabric::Accepted accepted);
  void StopListening();
  std::string name() const;
  // "10.0.0.7", "mlx5_0": the interface.
  std::string where() const;

  // For the links.
  Loop& loop() { return *loop_; }
  const FabricLibrary& library() const { return library_; }
  fid_domain* domain() { return domain_.get(); }
  bool registers_memory() const;
  // A description of a connection to an address that Listen returned elsewhere.
  Result<FabricInfo> InfoFor(std::string_view address) const;
  // "10.0.0.7:51234 over tcp".
  std::string PeerText(const fi_info& info) const;
  // Counts a link in and gives it its number; kLimit beyond max_links.
  Result<uint64_t> Add(FabricLink* link);
  void Remove(uint64_t id);
  // An endpoint bound to the shared queues and enabled.
  Result<FidPtr<fid_ep>> NewEndpoint(fi_info* info, uint64_t link);
  void ForgetEndpoint(fid_ep* endpoint);
  // An accepted link is connected: it goes to its owner.
  void HandOver(uint64_t link);
  // A connection that was being accepted failed.
  void DropPending(uint64_t link);

 private:
  FabricDomain(const FabricLibrary& library, FabricOptions options, FabricInfo info);

  Status OpenQueues();
  Status ListenOn(fi_info& info);
  Status Describe(std::string_view what, long rc) const;
  bool Progress();
  // True if there was anything.
  bool DrainCompletions();
  bool ReadEvent();
  struct Event {
    uint32_t type = 0;
    fid_t fid = nullptr;
    fi_info* info = nullptr;  // of a request
    int error = 0;            // instead of a type
  };
  std::optional<Event> NextEvent();
  void OnEvent(const Event& event);
  void RejectWaiting();
  void OnCompletionError();
  void OnConnectRequest(FabricInfo info);
  FabricLink* Find(uint64_t id) const;
  FabricLink* Find(const fid* endpoint) const;

  const FabricLibrary& library_;
  const FabricOptions options_;
  const std::string provider_;
  FabricInfo info_;
  FidPtr<fid_fabric> fabric_;
  FidPtr<fid_eq> events_;
  FidPtr<fid_domain> domain_;
  FidPtr<fid_cq> completions_;
  FidPtr<fid_pep> listener_;
  std::optional<SilentConnections> silent_;  // at the port of listener_, if it has one
  LogLimit accept_log_limit_;
  std::shared_ptr<const Fabric::Accepted> accepted_;
  std::deque<Event> put_off_;  // that were found in a moment when no link could be told
  Loop* loop_ = nullptr;
  Loop::SleepCheckId sleep_check_ = 0;
  int event_fd_ = -1;
  int completion_fd_ = -1;
  uint64_t next_link_ = 1;
  std::unordered_map<uint64_t, FabricLink*> links_;
  std::unordered_map<const fid*, uint64_t> endpoints_;
  std::unordered_map<uint64_t, std::unique_ptr<FabricLink>> pending_;
};

}  // namespace sonde::tree
