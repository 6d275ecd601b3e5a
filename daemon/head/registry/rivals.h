// Finds out whether another head acts in this one's place.
//
// A head that its nodes did not reach for a while, or that did not run, is dead for them: a node
// that stood by has gone on. When that is over nobody comes back by himself. But this head knows
// where the nodes listen that stood by. Such a port lets nobody in while its node is no acting
// head; an acting head answers a hello with an offer, which proves the key. So this head connects
// to those nodes that it has lost, says hello and waits. It does not go on to prove itself: it is
// no node. An acting head also connects to nodes with lower indexes that stood by: one of these may
// have lost the head later, and have gone on as well.
//
// Thread safety: the loop's thread only.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string_view>

#include "daemon/launch_message.h"
#include "daemon/link/socket_link.h"
#include "daemon/link/trust/handshake.h"
#include "daemon/loop.h"
#include "daemon/message/message.h"

namespace sonde::head {

class Rivals {
 public:
  // A connection that is not made within kConnect is tried again, for the host may be in reach
  // again while the kernel still waits; after a failure in kPause.
  static constexpr Nanos kConnect = 2 * kSecond;
  static constexpr Nanos kPause = kSecond;
  // Nodes watched at a time, the last ones lost: more than three do not stand by at a time.
  static constexpr size_t kMost = 8;

  // `found`: there is one. It may destroy this.
  using Found = std::function<void(const tree::Place& place)>;
  Rivals(Loop& loop, const StepKey& key, Found found)
      : loop_(loop), key_(key), found_(std::move(found)) {}
  ~Rivals();
  Rivals(const Rivals&) = delete;
  Rivals& operator=(const Rivals&) = delete;

  // The connection of a node that stood by is lost.
  void Watch(const tree::Place& place);
  // Of an acting head: nodes with lower indexes, as its launch message names them.
  void WatchAll(std::string_view places);
  // It is back.
  void Forget(uint32_t node);
  bool empty() const { return probes_.empty(); }

 private:
  struct Probe {
    tree::Place place;
    std::unique_ptr<tree::SocketLink> link;
    std::unique_ptr<tree::ConnectingHandshake> handshake;
    uint64_t since = 0;
    Loop::TimerId timer = 0;
  };

  void Try(Probe& probe);
  void TryLater(Probe& probe);
  void Close(Probe& probe);
  void OnMessage(uint32_t node, uint8_t type, std::string_view payload);

  Loop& loop_;
  const StepKey key_;
  const Found found_;
  uint64_t watched_ = 0;
  std::map<uint32_t, Probe> probes_;  // by node
};

}  // namespace sonde::head
