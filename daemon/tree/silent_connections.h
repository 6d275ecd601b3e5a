// Connections to a port of this process that a library has accepted and that say nothing.
//
// libfabric's tcp provider keeps them, a descriptor each, until the stranger goes: whoever can
// reach the port could take all descriptors of the daemon. This shuts those down that have been
// silent for kPatience, once there are many descriptors more than after the last look; the provider
// then closes them. A daemon that connects speaks at once. Until there are that many, a look costs
// two system calls every kInterval at most, and only when the process is awake anyway.
//
// Thread safety: the thread that drives the library.
#pragma once

#include <cstdint>

#include "core/time.h"
#include "daemon/tree/log_limit.h"

namespace sonde::tree {

class SilentConnections {
 public:
  static constexpr Nanos kInterval = 100 * kMillisecond;
  static constexpr Nanos kPatience = kSecond;
  // In a flood of more than kFlood of them.
  static constexpr Nanos kFloodPatience = 50 * kMillisecond;
  static constexpr int kFlood = 256;
  // So many more descriptors than after the last look are worth another one.
  static constexpr int kMore = 64;

  // `port` of TCP, that listens.
  explicit SilentConnections(uint16_t port);

  // To be called often.
  void Look();

 private:
  // Looks at the descriptors below this one; whether there are silent ones left that may speak yet.
  bool ShutDown(int below);

  uint16_t port_;
  int worth_looking_;   // from this number of a new descriptor on
  int look_below_ = 0;  // the highest such number since there were none; 0: there are none
  Nanos next_ = 0;
  uint64_t shut_ = 0;
  LogLimit log_limit_;
};

}  // namespace sonde::tree
