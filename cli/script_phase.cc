#include "cli/script_phase.h"

#include "libclient/error.h"
#include "libclient/library.h"

namespace sonde::client {

int TellScriptPhase(uint8_t kind, const char* name) {
  ClearError();
  const Lock lock;
  int code = Attach();
  if (code == SONDE_OK) code = CheckText("phase", Text(name), kMaxNameLength);
  if (code == SONDE_OK) {
    const uint64_t ticket = Ring<Moments>::Draw(library.segment);
    if (library.moments.HasPlace(ticket) || library.moments.Extend(library.segment, ticket)) {
      WriteMoment(library.segment, ticket, kind, Text(name), 0, {});
    } else {
      code = SONDE_SYSTEM;
    }
  }
  return Finish(code, name);
}

}  // namespace sonde::client
