// When a head beside srun may take processor time.
//
// Until the nodes' tasks have begun, a host that runs nodes as well needs its processors for that:
// a node's daemon connects when its first task begins. The head's socket listens meanwhile, so
// nobody is refused.
//
// Thread safety: any; nothing is kept.
#pragma once

#include <chrono>

namespace sonde {

struct LaunchPatience {
  std::chrono::milliseconds first{100};  // until any node comes
  std::chrono::milliseconds others{25};  // from then on until the last comes
};

enum class Launched {
  kAll,    // as many have connected as the launch message says
  kSome,   // the others take longer than we wait
  kNone,   // nobody has connected
  kEnded,  // the launcher asks us to finish, or is gone
};

// Waits for the nodes of the step. `listening`: the head's socket, of which nobody accepts yet.
// `lifeline`: its first packet is the launch message, and stays unread.
Launched AwaitLaunchedNodes(int listening, int lifeline, const LaunchPatience& patience = {});

}  // namespace sonde
