// Messages of daemon/message/ over links.
//
// Thread safety: as Link.
#pragma once

#include <cstdint>
#include <string_view>

#include "daemon/link/link.h"
#include "daemon/message/message.h"

namespace sonde::tree {

// False if the link did not take it: closed, or too much waits in it.
inline bool Send(Link& link, Type type, std::string_view payload) {
  return link.Send(static_cast<uint8_t>(type), payload).ok();
}

}  // namespace sonde::tree
