// In place of daemon/link/trust/protocol.cc: a version of the protocol more, and on every link both
// ends begin with a message of a type that this release does not know.
#include "daemon/link/trust/protocol.h"

#include <utility>

#include "daemon/link/trust/sealed_link.h"

namespace sonde::tree {

uint32_t ProtocolVersion() { return 3; }

std::unique_ptr<Link> SealWith(LinkSeals seals, std::unique_ptr<Link> link) {
  constexpr uint8_t kOfTheNextRelease = 250;
  auto sealed = std::make_unique<SealedLink>(std::move(link), std::move(seals));
  static_cast<void>(sealed->Send(kOfTheNextRelease, "what only that release understands"));
  return sealed;
}

}  // namespace sonde::tree
