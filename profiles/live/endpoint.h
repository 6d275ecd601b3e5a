// Where a running step is served: the file `endpoint.json` of its profile in live/, mode 0600, for
// it has the step's token. docs/archive.md describes it.
//
// Thread safety: functions without state.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core/status.h"

namespace sonde {

struct Endpoint {
  std::string host;     // its name
  std::string address;  // on which the head listens there, numeric; "0.0.0.0", "::": on all
  uint16_t port = 0;
  std::string token;
  int pid = 0;  // of the head
};

std::string ToJson(const Endpoint& endpoint);
// kCorrupt without host, address or port.
Result<Endpoint> EndpointFromJson(std::string_view json);

}  // namespace sonde
