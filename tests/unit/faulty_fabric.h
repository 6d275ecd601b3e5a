// libfabric with faults: between a domain of ours and its provider, each packet is lost, comes late
// and so after others, or comes twice, as a test asks and a seed decides. A provider of reliable
// datagrams promises that none of this happens; a link must not deliver anything wrong all the
// same.
//
// The tables of functions of the provider's objects are replaced by those here. One at a time in a
// process; it outlives all domains that were opened with its library.
//
// Thread safety: the thread of the loop.
#pragma once

#include <rdma/fabric.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>

#include <cstdint>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "daemon/link/libfabric/fabric_library.h"
#include "daemon/loop.h"

namespace sonde::tree {

struct Faults {
  double lost = 0, late = 0, twice = 0;  // shares of the packets
  Nanos latest = 0;                      // what is late, or comes again, takes up to so long
};

class FaultyFabric {
 public:
  FaultyFabric(Loop& loop, uint32_t seed);
  ~FaultyFabric();
  FaultyFabric(const FaultyFabric&) = delete;
  FaultyFabric& operator=(const FaultyFabric&) = delete;

  const FabricLibrary& library() const { return library_; }

  Faults faults;
  bool no_endpoints = false;  // none can be made
  uint64_t lost = 0, late = 0, twice = 0;
  // How many packets are held back, to be late or to come once more.
  size_t waiting() const { return waiting_; }

 private:
  // Bytes that are the shim's to send, with what the provider needs beside them.
  struct Held {
    fi_context2 context;
    fid_ep* endpoint;
    fi_addr_t to;
    std::string bytes;
  };

  static int OpenFabric(fi_fabric_attr* attr, fid_fabric** fabric, void* context);
  static int OpenDomain(fid_fabric* fabric, fi_info* info, fid_domain** domain, void* context);
  static int OpenQueue(fid_domain* domain, fi_cq_attr* attr, fid_cq** queue, void* context);
  static int OpenAddresses(fid_domain* domain, fi_av_attr* attr, fid_av** addresses, void* context);
  static int InsertAddresses(fid_av* addresses, const void* raw, size_t count, fi_addr_t* which,
                             uint64_t flags, void* context);
  static int RemoveAddresses(fid_av* addresses, fi_addr_t* which, size_t count, uint64_t flags);
  static int OpenEndpoint(fid_domain* domain, fi_info* info, fid_ep** endpoint, void* context);
  static int CloseEndpoint(fid* endpoint);
  static int TryWait(fid_fabric* fabric, fid** fids, int count);
  static ssize_t Send(fid_ep* endpoint, const void* bytes, size_t size, void* description,
                      fi_addr_t to, void* context);
  static ssize_t Read(fid_cq* queue, void* into, size_t count);
  static ssize_t ReadError(fid_cq* queue, fi_cq_err_entry* into, uint64_t flags);

  bool Chance(double share) { return std::bernoulli_distribution(share)(random_); }
  void Hold(fid_ep* endpoint, fi_addr_t to, const void* bytes, size_t size);
  void SendHeldIn(Nanos wait, Held* held);
  void SendHeld(Held* held);

  // The replaced table of an object, of which `change` makes ours.
  template <typename Ops, typename Change>
  Ops* Replace(Ops* ops, Change change) {
    auto ours = std::make_shared<Ops>(*ops);
    change(*ours);
    originals_[ours.get()] = ops;
    Ops* at = ours.get();
    tables_.push_back(std::move(ours));
    return at;
  }
  template <typename Ops>
  Ops* Original(Ops* ours) const {
    return static_cast<Ops*>(originals_.at(ours));
  }

  Loop& loop_;
  std::mt19937 random_;
  FabricLibrary library_;
  decltype(&::fi_fabric) open_fabric_;
  std::vector<std::shared_ptr<void>> tables_;
  std::map<void*, void*> originals_;
  std::map<fid_domain*, fid_cq*> queues_;
  std::map<fid_domain*, fid_av*> addresses_;
  std::map<std::pair<fid_av*, fi_addr_t>, int> inserted_;  // how often
  struct Open {
    fid_cq* queue;
    fid_av* addresses;
  };
  std::map<fid_ep*, Open> endpoints_;
  std::map<fid_cq*, std::vector<void*>>
      made_up_;                                  // completions of sends that the provider never saw
  std::map<void*, std::unique_ptr<Held>> held_;  // by the context
  size_t waiting_ = 0;
  std::shared_ptr<char> alive_ = std::make_shared<char>();  // timers may come after this
};

}  // namespace sonde::tree
