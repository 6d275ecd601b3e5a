// Where nodes come to their head, and come back to it: takes connections at the socket that srun,
// or the node that stood by, has bound for it, and lets those in that prove the key. The socket is
// the head's alone: when that is dead, nodes are refused there.
//
// Thread safety: the loop's thread only.
#pragma once

#include <cstdint>
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
    // The first time that a daemon of a release with which this one does not work was refused; said
    // of itself, for it has proved nothing.
    virtual void OnOtherRelease(std::string note) = 0;

   protected:
    ~Owner() = default;
  };

  // `index`: as the nodes know the head. `nodes`: so many may come in one moment.
  Rendezvous(Loop& loop, const StepKey& key, uint32_t index, Owner& owner, uint32_t nodes);

  Status Listen(UniqueFd socket);

 private:
  Loop& loop_;
  Owner& owner_;
  tree::Acceptor acceptor_;
  std::unique_ptr<tree::Listener> listener_;
  bool local_host_known_ = false;
  bool other_release_told_ = false;
};

}  // namespace sonde::head
