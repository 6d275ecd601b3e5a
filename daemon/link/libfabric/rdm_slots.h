// Buffers for the packets of an FI_EP_RDM endpoint, each with what the provider needs beside it.
//
// They come in slabs, which are mapped, and registered if the provider asks for that, when they are
// first needed; of a slab only pages that were used are resident. A buffer that the provider was
// given belongs to the provider until it says otherwise, even if the sending link is long gone.
//
// Thread safety: one thread at a time.
#pragma once

#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "daemon/link/libfabric/fabric_library.h"
#include "daemon/link/libfabric/rdm_packet.h"

namespace sonde::tree {

struct RdmSlot {
  // First: the provider gets its address as the context of the operation, and may write into it.
  fi_context2 context;
  char* bytes = nullptr;  // kRdmPacket
  void* description = nullptr;
  bool receive = false;
  uint32_t peer = 0;  // of a send
  uint64_t link = 0;  // 0: nobody's any more
};

class RdmSlots {
 public:
  static constexpr size_t kSlab = 8;

  // `limit`: slots in all.
  RdmSlots(const FabricLibrary& library, const fi_info& info, fid_domain* domain, fid_ep* endpoint,
           size_t limit);
  ~RdmSlots();
  RdmSlots(const RdmSlots&) = delete;
  RdmSlots& operator=(const RdmSlots&) = delete;

  // kLimit if all are in use.
  Result<RdmSlot*> Take();
  void Give(RdmSlot* slot) { free_.push_back(slot); }

 private:
  struct Slab;
  Status Grow();
  Status Register(Slab& slab);

  const FabricLibrary& library_;
  const fi_info& info_;
  fid_domain* const domain_;
  fid_ep* const endpoint_;
  const size_t limit_;
  std::vector<std::unique_ptr<Slab>> slabs_;
  std::vector<RdmSlot*> free_;  // the last one given is the next one taken: its pages are there
};

}  // namespace sonde::tree
