// A link: messages between two daemons, in order, whatever carries them.
//
// Four carriers implement it: a socket (the rendezvous connection), libfabric's connections and its
// datagrams (tree.fabric), and the memory of one process (head and node). On the wire a message is
//   u32 length of what follows | u8 type | payload
// the same on all of them; a carrier moves bytes and knows nothing of the messages. Sending never
// blocks: what the peer does not take yet is queued up to a limit. That a message was sent does
// not mean that it arrived: whoever needs to know asks for an acknowledgement.
//
// Thread safety: the loop's thread only. A handler may destroy the link from within its callbacks.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "core/status.h"
#include "core/time.h"
#include "daemon/loop.h"

namespace sonde::tree {

// The bound on one message: a decoder never holds more. Before the peer has proved the key the
// bound is much lower.
inline constexpr size_t kMaxMessage = 8u << 20;
inline constexpr size_t kMaxUnprovenMessage = 4096;
// What a link that seals adds to a message at most.
inline constexpr size_t kRoomToSeal = 32;
// What may wait in a link to be sent; more is refused with kLimit.
inline constexpr size_t kMaxQueued = 32u << 20;
// How long CloseWhenSent waits for the peer.
inline constexpr Nanos kCloseTimeout = 5 * kSecond;
// The bytes in front of a payload.
inline constexpr size_t kFrameHeader = 5;

class Link {
 public:
  struct Handler {
    std::function<void(uint8_t type, std::string_view payload)> message;
    // Once, at the end; no message comes after it. Not called when the link is destroyed by its
    // owner. `why` is ok only after CloseWhenSent.
    std::function<void(const Status& why)> closed;
  };

  // Closes at once: what is still queued is lost.
  virtual ~Link() = default;

  void SetHandler(Handler handler) {
    handler_ = std::make_shared<const Handler>(std::move(handler));
  }

  // Queues the message. kLimit if too much waits already, kUnavailable if the link is closed; the
  // message is dropped then.
  virtual Status Send(uint8_t type, std::string_view payload) = 0;
  // Another message follows the next one at once: both may go together, as one packet that wakes
  // the peer once. If it does not come after all, the next one goes within 0.2 s.
  virtual void ExpectMore() {}
  // Says goodbye: takes no more messages in either direction, sends what is queued, and calls
  // `closed` with an ok Status once the peer has closed in its turn, or with the reason why it has
  // not, kCloseTimeout later at the latest. The link must live until then.
  virtual void CloseWhenSent() = 0;
  // Bytes accepted and not yet handed to the carrier.
  virtual size_t queued() const = 0;
  // A received message whose type and payload are longer than this closes the link.
  // kMaxUnprovenMessage at first.
  virtual void SetMaxMessage(size_t bytes) = 0;
  // The peer as a person would name it: "10.0.0.7:51234", "10.0.0.7:51234 over tcp".
  virtual std::string peer() const = 0;
  // Nobody of the step passes on what it carries (daemon/link/via_links.h).
  virtual bool direct() const { return true; }

  virtual uint64_t bytes_sent() const { return bytes_sent_; }
  virtual uint64_t bytes_received() const { return bytes_received_; }

 protected:
  // A carrier copies the pointer for the time of a call: the handler may replace itself or destroy
  // the link that holds it.
  std::shared_ptr<const Handler> handler_ = std::make_shared<const Handler>();
  uint64_t bytes_sent_ = 0;
  uint64_t bytes_received_ = 0;
};

// The host in what Link::peer() returns, without the port.
inline std::string HostOf(const std::string& peer) { return peer.substr(0, peer.rfind(':')); }

// Destroys a link that may be on the stack, once that is unwound. It calls nobody any more.
void DestroyLater(Loop& loop, std::unique_ptr<Link> link);

// Takes a byte stream apart into messages. Holds at most one unfinished message.
class Deframer {
 public:
  void SetMaxMessage(size_t bytes) { max_message_ = bytes; }
  // Feeds bytes and calls `f` for every whole message; `f` returns false to stop (its owner is
  // gone, nothing of this may be touched any more). The payload is valid until `f` returns, even
  // then. kCorrupt for a length that is zero or beyond the bound.
  Status Feed(std::string_view bytes,
              const std::function<bool(uint8_t type, std::string_view payload)>& f);

 private:
  // The length of the message that starts here, kFrameHeader bytes of it being known.
  Result<size_t> WholeSize(std::string_view start) const;

  std::string pending_;
  size_t max_message_ = kMaxUnprovenMessage;
};

// kLimit for a payload of so many bytes, which no peer would take.
Status CheckPayload(size_t bytes);
// What stands in front of a payload.
std::array<char, kFrameHeader> FrameHeader(uint8_t type, std::string_view payload);
// The bytes of one message, appended to `out`.
void AppendMessage(uint8_t type, std::string_view payload, std::string& out);

}  // namespace sonde::tree
