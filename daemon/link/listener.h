// Accepts TCP connections and makes links of them.
//
// How many connections may be open before they have proved the key is the owner's to bound: a
// connection it does not want it destroys. When the process has no descriptor left, connections
// wait in the kernel's queue and accepting is tried again after kRetry.
//
// Thread safety: the loop's thread only. `accepted` may destroy the listener.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "daemon/link/log_limit.h"
#include "daemon/link/socket_link.h"
#include "daemon/loop.h"

namespace sonde::tree {

// A listening socket at a numeric address, on a port of the range; {0, 0} lets the kernel choose.
Result<UniqueFd> ListenAt(const std::string& host, PortRange ports);

class Listener {
 public:
  static constexpr Nanos kRetry = 100 * kMillisecond;
  using Accepted = std::function<void(std::unique_ptr<SocketLink>)>;

  // A socket that listens already, for example inherited.
  static Result<std::unique_ptr<Listener>> Adopt(Loop& loop, UniqueFd fd, Accepted accepted);
  // A new one, as ListenAt.
  static Result<std::unique_ptr<Listener>> Open(Loop& loop, const std::string& host,
                                                PortRange ports, Accepted accepted);
  ~Listener();
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;

  Address address() const { return LocalAddress(fd_.get()); }
  uint16_t port() const;

 private:
  Listener(Loop& loop, UniqueFd fd, Accepted accepted);
  Status StartWatching();
  void AcceptSome();
  void Pause(int error);

  Loop& loop_;
  UniqueFd fd_;
  std::shared_ptr<const Accepted> accepted_;
  Loop::TimerId retry_ = 0;
  LogLimit log_limit_;
  std::shared_ptr<char> alive_ = std::make_shared<char>();
};

}  // namespace sonde::tree
