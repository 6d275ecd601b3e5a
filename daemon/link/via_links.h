// Control connections that come to the head through a gateway.
//
// In a large step most nodes do not connect to the head: some nodes are gateways, and each passes
// on what other nodes say to the head, and what the head says to them, over its own control
// connection. A node proves the key to its gateway, which tells the head of it:
//   gateway -> head  kViaOpen {varint channel, registration}
//   both             kVia {varint channel, u8 type, payload}
//   both             kViaClose {varint channel}
// The gateway numbers the channels from 0 and uses no number twice. What each side says of a
// channel that the other has closed is passed over.
//
// ViaLinks is the head's end: it makes a link of each channel. A link whose message the gateway's
// connection does not take ends, so that the node comes again and is told all of it.
//
// Thread safety: the loop's thread only.
#pragma once

#include <cmath>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/status.h"
#include "daemon/link/link.h"
#include "daemon/loop.h"
#include "daemon/message/message.h"

namespace sonde::tree {

// So many gateways has a step of so many nodes: neither the head nor a gateway then has more
// connections than that.
inline uint32_t GatewaysOf(uint64_t nodes) {
  return static_cast<uint32_t>(std::ceil(std::sqrt(static_cast<double>(nodes))));
}

// What stands in front of a message of a channel: varint and type.
inline constexpr size_t kViaOverhead = 11;

// The payload of a kVia.
struct ViaMessage {
  uint64_t channel = 0;
  uint8_t type = 0;
  std::string_view payload;
};
std::string EncodeVia(const ViaMessage& message);
Status DecodeVia(std::string_view bytes, ViaMessage& message);

struct ViaOpen {
  uint64_t channel = 0;
  Registration who;
};
std::string Encode(const ViaOpen& open);
Status Decode(std::string_view bytes, ViaOpen& open);

// A kViaClose is the channel alone (VarintBytes).
Status DecodeChannel(std::string_view bytes, uint64_t& channel);

class ViaLinks {
 public:
  using Opened = std::function<void(const Registration& who, std::unique_ptr<Link> link)>;

  // `gateway`: its control connection, which must outlive this, or be given up by Lose.
  ViaLinks(Loop& loop, Link& gateway, Opened opened);
  ~ViaLinks();

  // The gateway's connection is lost: all links end.
  void Lose();
  // One of the three messages. A failure means that the gateway's connection must be closed.
  // Nothing in here may be destroyed meanwhile.
  Status OnMessage(Type type, std::string_view payload);

 private:
  class Channel;
  // Lives as long as any of the links.
  struct State {
    Link* gateway = nullptr;  // nullptr: lost
    std::unordered_map<uint64_t, Channel*> channels;
    // Closed, and the gateway's connection was too full to say so: the node would be deaf.
    std::vector<uint64_t> untold;

    void TellClosed();
  };

  Status OnOpen(std::string_view payload);
  Status OnVia(std::string_view payload);
  Status OnClose(std::string_view payload);

  Loop& loop_;
  Opened opened_;
  uint64_t next_ = 0;  // channel
  std::shared_ptr<State> state_;
};

}  // namespace sonde::tree
