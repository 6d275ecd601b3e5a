// Connections to a port of this process that a library has accepted and that nobody needs: those
// that say nothing, or less than any request has, and crowds of those that speak.
//
// libfabric's tcp provider keeps the silent ones, a descriptor each, until the stranger goes; an
// endpoint of datagrams that is made of TCP keeps every connection that begins like its provider's.
// So anybody who can reach the port could take all descriptors of the daemon. This shuts down
// connections that have been silent for kPatience; and if more than `most` have spoken, those that
// have said least, of the hosts that have most of them. The provider then closes them. A daemon
// that connects speaks at once, and goes on.
//
// It looks once there are many descriptors more than after the last look. Until there are that
// many, a look costs two system calls every kInterval at most, and only when the process is awake
// anyway.
//
// Thread safety: the thread that drives the library.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/time.h"
#include "daemon/link/log_limit.h"

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
  // Less than this is no request yet: the size of libfabric's header of a request, in bytes.
  static constexpr uint64_t kRequest = 32;

  // `port` of TCP, that listens.
  explicit SilentConnections(uint16_t port, size_t most = SIZE_MAX);

  // To be called often.
  void Look();

 private:
  struct Connection {
    int fd = -1;
    uint64_t received = 0;  // bytes
    Nanos silent_for = 0;
    std::string host;
    size_t place = 0;  // among those of its host
  };
  std::optional<Connection> ConnectionAt(int fd) const;
  std::vector<Connection> Accepted() const;
  // Whether there is something to look at again: what was shut down, or may speak yet.
  bool LookAtAll();
  void ShutSilent(const std::vector<Connection>& silent);
  void ShutCrowd(std::vector<Connection> crowd);
  void Shut(const Connection& one);

  const uint16_t port_;
  const size_t most_;
  int worth_looking_;  // from this number of a new descriptor on
  bool looking_ = false;
  Nanos next_ = 0;
  uint64_t shut_ = 0;
  LogLimit log_limit_;
};

}  // namespace sonde::tree
