// Sending profiles: what the command, the process beside a running step and catching up share.
//
// Thread safety: functions without state; each call may be in a thread of its own.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "core/config.h"
#include "core/status.h"
#include "forward/delivery.h"
#include "forward/exporter.h"

namespace sonde::forward {

// The destinations of sonde.conf, forward.NAME = ..., those that are right; none with forward = no.
// `error`: what is wrong with the first that is not.
std::vector<Destination> ConfiguredDestinations(const Config& config, Status& error);

// What became of sending one profile.
struct Sent {
  Exporter::Progress progress;
  uint64_t requests = 0;
  uint64_t bytes = 0;
  bool done = false;         // and nothing of it will have to be sent
  bool nothing_new = false;  // it was done before
  std::string refusal;       // why samples were refused; "" if none were
};
struct SendOptions {
  bool again = false;  // what was sent before as well
  Exporter::OnProgress on_progress;
};
// Sends what of a profile has not been sent yet. kBusy: another process does.
Result<Sent> SendProfile(const std::string& archive, const std::string& key,
                         const Destination& destination, Patience& patience,
                         const SendOptions& options);

// Sends what earlier steps have left: the records of that destination that are not done and whose
// steps do not run. `skip`: a profile that is left alone. Ends with the first failure that is not
// of one profile alone.
Status CatchUp(const std::string& archive, const Destination& destination, Patience& patience,
               const std::string& skip);

// Whether somebody answers there, and who.
Result<std::string> ProbeDestination(const Destination& destination);

}  // namespace sonde::forward
