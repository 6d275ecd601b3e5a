// Where nodes come to their head: the socket that srun has bound, and one of the head's own. Both
// take connections and let those in that prove the key.
//
// Nodes come back to the head's own: srun has a process of its own that holds the socket it gave
// us, so that nothing would refuse them there when this process is dead.
//
// Thread safety: the loop's thread only.
#pragma once

#include <memory>
#include <string>

#include "core/status.h"
#include "core/unique_fd.h"
#include "daemon/launch_message.h"
#include "daemon/link/link.h"
#include "daemon/link/listener.h"
#include "daemon/link/trust/acceptor.h"
#include "daemon/loop.h"

namespace sonde::head {

class Rendezvous {
 public:
  class Owner {
   public:
    // A node that has proved the key.
    virtual void OnProven(const tree::Registration& who, std::unique_ptr<tree::Link> link) = 0;
    // Where the first node has reached this host, numeric.
    virtual void OnLocalHost(std::string host) = 0;

   protected:
    ~Owner() = default;
  };

  Rendezvous(Loop& loop, const StepKey& key, Owner& owner);

  // `ports`: of sockets of the head's own, as in sonde.conf.
  Status Listen(UniqueFd socket, const std::string& ports);
  // Where nodes come back; 0: only where they came at first.
  uint16_t own_port() const {
    return own_listener_ == nullptr ? uint16_t{0} : own_listener_->port();
  }

 private:
  void ListenToThoseThatComeBack(const std::string& ports);

  Loop& loop_;
  Owner& owner_;
  tree::Acceptor acceptor_;
  std::unique_ptr<tree::Listener> listener_;
  std::unique_ptr<tree::Listener> own_listener_;
  bool local_host_known_ = false;
};

}  // namespace sonde::head
