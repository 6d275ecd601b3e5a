#include "daemon/collect/gpu/xid.h"

#include <algorithm>
#include <array>

namespace sonde::collect::gpu {
namespace {

struct Xid {
  unsigned number;
  std::string_view text;
};
constexpr std::array kXids = {
    Xid{13, "graphics engine exception, mostly the application's own error"},
    Xid{31, "memory page fault, mostly the application's own error"},
    Xid{32, "invalid or corrupted push buffer stream"},
    Xid{38, "driver firmware error"},
    Xid{43, "GPU stopped processing, mostly the application's own error"},
    Xid{45, "the application's work was removed, mostly after another error"},
    Xid{48, "double bit ECC error"},
    Xid{61, "internal micro-controller breakpoint"},
    Xid{62, "internal micro-controller halt"},
    Xid{63, "memory page retired or row remapped"},
    Xid{64, "failure to retire a memory page or to remap a row"},
    Xid{68, "video processor exception"},
    Xid{69, "graphics engine class error"},
    Xid{74, "NVLink error"},
    Xid{79, "GPU has fallen off the bus"},
    Xid{92, "high rate of single bit ECC errors"},
    Xid{94, "contained memory error"},
    Xid{95, "uncontained memory error"},
    Xid{109, "context switch timeout"},
    Xid{119, "timeout of a call to the GPU's system processor"},
    Xid{120, "error of the GPU's system processor"},
    Xid{140, "unrecovered ECC error"},
};

}  // namespace

std::string_view XidText(unsigned xid) {
  const auto* const at = std::find_if(kXids.begin(), kXids.end(),
                                      [&](const Xid& known) { return known.number == xid; });
  return at == kXids.end() ? std::string_view() : at->text;
}

}  // namespace sonde::collect::gpu
