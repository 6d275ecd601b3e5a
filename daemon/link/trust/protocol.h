// The version of the protocol between daemons, and what becomes of a link once both its ends have
// proved the key.
//
// Files of their own, since releases differ in it: the tests link programs that have another
// protocol.cc (tests/next_release/).
//
// Thread safety: functions without state.
#pragma once

#include <cstdint>
#include <memory>

#include "daemon/link/link.h"
#include "daemon/link/trust/seal.h"

namespace sonde::tree {

// The highest version that this release speaks. Two daemons speak the lower one of their highest.
uint32_t ProtocolVersion();
// And the lowest: that of the release before, as soon as there is one. Version 1 made a link's keys
// of the step's key alone.
inline constexpr uint32_t kLeastVersion = 2;

// The link to go on with.
std::unique_ptr<Link> SealWith(LinkSeals seals, std::unique_ptr<Link> link);

}  // namespace sonde::tree
