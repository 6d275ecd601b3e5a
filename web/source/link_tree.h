// How the daemons of a running step are linked, as its head knows it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/time.h"

namespace sonde::web {

struct LinkTree {
  enum class State : uint8_t {
    kConnected,
    kAway,  // its connection to the head broke; it has a while to come back
    kLost,  // it did not
    kLeft,  // said goodbye, or another daemon of its host took its place
  };
  static constexpr uint32_t kHead = 0xffffffff;

  // A daemon, by index in the order in which they came.
  struct Node {
    std::string host;  // "": the head before knew it, and it has not come to this one
    uint32_t parent = kHead;
    std::string carrier;  // of the link to the parent: "sockets", a libfabric provider
    State state = State::kConnected;
    Nanos since = 0;      // of the state
    Nanos last_tick = 0;  // the newest one that has its sample in the whole step's row; 0: none
    std::string note;     // why it is away or lost, in words
  };

  std::string head;         // host
  uint32_t expected = 0;    // nodes of the step, as far as known
  uint32_t registered = 0;  // of these
  Nanos now = 0;
  Nanos period = 0;
  Nanos newest_tick = 0;  // of the whole step's rows; 0: none
  std::vector<Node> nodes;
};

std::string_view ToString(LinkTree::State state);

}  // namespace sonde::web
