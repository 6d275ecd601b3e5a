// A link over TCP: the connection of every daemon to the head.
//
// Connecting, sending and receiving never block. A peer whose machine is gone is noticed after
// about 10 s (keepalive and TCP_USER_TIMEOUT), one that refuses or closes at once. The memory of a
// link is what waits to be sent (kMaxQueued) and one unfinished message.
//
// Thread safety: the loop's thread only.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/background.h"
#include "daemon/link/address.h"
#include "daemon/link/link.h"
#include "daemon/loop.h"

namespace sonde::tree {

class SocketLink final : public Link {
 public:
  // Resolving and connecting together.
  static constexpr Nanos kConnectTimeout = 10 * kSecond;

  // A link that is being connected; messages wait in it meanwhile. Every address of the host is
  // tried. A numeric host costs nothing; a name is resolved on a thread of its own, because the
  // resolver may block. An error only if it fails at once, later ones reach `closed`.
  static Result<std::unique_ptr<SocketLink>> Connect(Loop& loop, const std::string& host,
                                                     uint16_t port);
  // Takes over an accepted connection.
  static Result<std::unique_ptr<SocketLink>> Adopt(Loop& loop, UniqueFd fd);
  ~SocketLink() override;

  Status Send(uint8_t type, std::string_view payload) override;
  void ExpectMore() override { more_ = true; }
  void CloseWhenSent() override;
  size_t queued() const override { return out_.size() - out_sent_; }
  void SetMaxMessage(size_t bytes) override { deframer_.SetMaxMessage(bytes); }
  std::string peer() const override { return peer_; }

  // Unknown until connected.
  Address local_address() const { return LocalAddress(fd_.get()); }
  Address peer_address() const { return PeerAddress(fd_.get()); }

 private:
  enum class State { kConnecting, kOpen, kFlushing, kDraining, kClosed };

  SocketLink(Loop& loop, std::string peer) : loop_(loop), peer_(std::move(peer)) {}

  void Resolved(const Result<std::vector<Address>>& addresses);
  // Starts connecting to the next address; the last failure if there is none.
  Status TryNext();
  Status TryAddress(const Address& address);
  Status StartWatching(uint32_t epoll_events);
  void OnReady(uint32_t epoll_events);
  void FinishConnect();
  // False if the link is gone or closed.
  bool Receive();
  bool Take(std::string_view bytes);
  void Flush();
  // Hands bytes to the kernel; how many it took. A failure is remembered.
  size_t Write(std::string_view header, std::string_view payload, int flags);
  void WriteFailed(int error);
  void EndOutput();
  void UpdateEvents();
  void Close(const Status& why);
  Status Error(std::string_view what, int error) const;

  Loop& loop_;
  std::string peer_;
  State state_ = State::kConnecting;
  bool close_when_connected_ = false;
  UniqueFd fd_;
  std::vector<Address> candidates_;
  size_t next_candidate_ = 0;
  Status last_failure_;
  std::unique_ptr<BackgroundCall> resolving_;
  Loop::TimerId timer_ = 0;
  uint32_t watching_ = 0;
  bool more_ = false;  // ExpectMore was called for the next message
  int write_error_ = 0;
  std::string out_;
  size_t out_sent_ = 0;
  Deframer deframer_;
  // Expires with this: a callback that may destroy the link keeps a weak pointer.
  std::shared_ptr<char> alive_ = std::make_shared<char>();
};

}  // namespace sonde::tree
