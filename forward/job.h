// Sending profiles: shared by the command, the process beside a running step and catching up.
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

// The valid destinations of sonde.conf, forward.NAME = ...; none with forward = no. `error`: what
// is wrong with the first invalid one.
std::vector<Destination> ConfiguredDestinations(const Config& config, Status& error);

// The result of sending one profile.
struct Sent {
  Exporter::Progress progress;
  uint64_t requests = 0;
  uint64_t bytes = 0;
  bool done = false;         // and nothing of it has to be sent any more
  bool nothing_new = false;  // it was done before
  std::string refusal;       // why samples were refused; "" if none were
};
struct SendOptions {
  bool again = false;  // also send what was sent before
  Exporter::OnProgress on_progress;
};
// Sends the rows of a profile that were not sent yet. kBusy: another process sends them.
Result<Sent> SendProfile(const std::string& archive, const std::string& key,
                         const Destination& destination, Patience& patience,
                         const SendOptions& options);

// Sends what earlier steps have left: that destination's records that are not done and whose steps
// do not run. `skip`: a profile that is left alone. Ends with the first failure that concerns more
// than one profile.
Status CatchUp(const std::string& archive, const Destination& destination, Patience& patience,
               const std::string& skip);

// Whether a receiver answers at the destination, and which.
Result<std::string> ProbeDestination(const Destination& destination);

}  // namespace sonde::forward
