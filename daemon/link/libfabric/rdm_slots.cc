#include "daemon/link/libfabric/rdm_slots.h"

#include <fmt/core.h>
#include <sys/mman.h>

#include <array>

namespace sonde::tree {

struct RdmSlots::Slab {
  static constexpr size_t kSize = kSlab * kRdmPacket;

  Slab() : base(mmap(nullptr, kSize, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)) {}
  ~Slab() {
    registered.reset();
    if (base != MAP_FAILED) munmap(base, kSize);
  }
  Slab(const Slab&) = delete;
  Slab& operator=(const Slab&) = delete;

  void* base;
  FidPtr<fid_mr> registered;
  std::array<RdmSlot, kSlab> slots{};
};

RdmSlots::RdmSlots(const FabricLibrary& library, const fi_info& info, fid_domain* domain,
                   fid_ep* endpoint, size_t limit)
    : library_(library), info_(info), domain_(domain), endpoint_(endpoint), limit_(limit) {}

RdmSlots::~RdmSlots() = default;

Result<RdmSlot*> RdmSlots::Take() {
  if (free_.empty()) SONDE_RETURN_IF_ERROR(Grow());
  RdmSlot* slot = free_.back();
  free_.pop_back();
  return slot;
}

Status RdmSlots::Grow() {
  if ((slabs_.size() + 1) * kSlab > limit_) {
    return {Code::kLimit, fmt::format("all {} buffers wait for peers", slabs_.size() * kSlab)};
  }
  auto slab = std::make_unique<Slab>();
  if (slab->base == MAP_FAILED) return SystemError("map buffers for the fabric");
  SONDE_RETURN_IF_ERROR(Register(*slab));
  for (size_t i = kSlab; i-- > 0;) {
    RdmSlot& slot = slab->slots[i];
    slot.bytes = static_cast<char*>(slab->base) + i * kRdmPacket;
    slot.description = slab->registered ? fi_mr_desc(slab->registered.get()) : nullptr;
    free_.push_back(&slot);
  }
  slabs_.push_back(std::move(slab));
  return {};
}

Status RdmSlots::Register(Slab& slab) {
  const int mode = info_.domain_attr->mr_mode;
  if ((mode & FI_MR_LOCAL) == 0) return {};
  fid_mr* region = nullptr;
  const uint64_t key = slabs_.size() + 1;
  int rc =
      fi_mr_reg(domain_, slab.base, Slab::kSize, FI_SEND | FI_RECV, 0, key, 0, &region, nullptr);
  if (rc == 0) {
    slab.registered.reset(region);
    if ((mode & FI_MR_ENDPOINT) != 0) {
      rc = fi_mr_bind(region, &endpoint_->fid, 0);
      if (rc == 0) rc = fi_mr_enable(region);
    }
  }
  if (rc == 0) return {};
  return library_.Error(
      fmt::format("register {} KiB with {}; is the limit of locked memory (ulimit -l) too low?",
                  Slab::kSize >> 10, info_.fabric_attr->prov_name),
      rc);
}

}  // namespace sonde::tree
