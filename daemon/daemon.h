// One sonded process: a role, wired to its lifeline.
//
// There are two programs, so that the many nodes do not load what only the one head needs: `sonded`
// is the node role and starts `sonded-head`, beside it, for the others.
//
// Thread safety: the loop's thread only.
#pragma once

#include <functional>
#include <memory>
#include <string_view>
#include <vector>

#include "core/config.h"
#include "core/socket_file.h"
#include "core/status.h"
#include "core/unique_fd.h"
#include "daemon/launch_message.h"
#include "daemon/launcher_line.h"
#include "daemon/loop.h"

namespace sonde {

// What a role is made of.
struct DaemonSetup {
  Loop& loop;
  LauncherLine& lifeline;
  const LaunchMessage& launch;
  const Config& config;
  Status config_error;  // why `config` holds the defaults, if it should not
};

// What the launcher has made for the daemon; each may be missing.
struct Sockets {
  UniqueFd listen;       // the head's, for its rendezvous
  UniqueFd application;  // a node's, which listens already
  SocketFile proxy;      // a node's, for programs for metric-proxy; it listens already
};

class Daemon : public LauncherLine::Receiver {
 public:
  virtual Status Start(Sockets sockets) = 0;
};

// The life of the process, from its inherited descriptors to its exit code. `make` gives null for a
// role that is not this program's.
int RunDaemon(const std::function<std::unique_ptr<Daemon>(const DaemonSetup&)>& make);

}  // namespace sonde
