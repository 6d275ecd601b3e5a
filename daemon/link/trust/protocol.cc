#include "daemon/link/trust/protocol.h"

#include <utility>

#include "daemon/link/trust/sealed_link.h"

namespace sonde::tree {

uint32_t ProtocolVersion() { return 2; }

std::unique_ptr<Link> SealWith(LinkSeals seals, std::unique_ptr<Link> link) {
  return std::make_unique<SealedLink>(std::move(link), std::move(seals));
}

}  // namespace sonde::tree
