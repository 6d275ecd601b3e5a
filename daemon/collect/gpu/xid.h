// What NVIDIA's driver means by an XID, for the few that users meet.
//
// Source: NVIDIA, "XID Errors", docs.nvidia.com/deploy/xid-errors.
//
// Thread safety: a function without state.
#pragma once

#include <string_view>

namespace sonde::collect::gpu {

// "" for one that is not in the list.
std::string_view XidText(unsigned xid);

}  // namespace sonde::collect::gpu
