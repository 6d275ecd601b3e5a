// A link over an FI_EP_RDM endpoint: a byte stream made of packets, with a window, acknowledgements
// and a clock of its own, since such an endpoint reports neither a peer's end nor a refusal.
//
// The sender has at most kWindow packets that the receiver has not acknowledged, and at most
// RdmDomain::kSendsPerLink that the provider has not sent. Acknowledgements ride on what goes the
// other way, or go alone when half of the window, or some time, is used up. Packets are put in
// order by their number. A peer of whom nothing is heard for half of options.silence is asked for a
// sign; after all of it, or if nothing could be delivered for so long, the link is closed.
//
// Owned by whoever connected or accepted it, by the RdmDomain while it is being accepted. Thread
// safety: the loop's thread only.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "daemon/link/libfabric/rdm_domain.h"
#include "daemon/link/link.h"

namespace sonde::tree {

class RdmLink final : public Link {
 public:
  static constexpr uint32_t kWindow = 8;
  static constexpr size_t kChunk = kRdmPacket - kRdmHeader;

  static Result<std::unique_ptr<RdmLink>> Connect(std::shared_ptr<RdmDomain> domain,
                                                  std::string_view address);
  // Answers a hello from the link `number` of a peer; handed over when the peer says more.
  static Result<std::unique_ptr<RdmLink>> Accept(std::shared_ptr<RdmDomain> domain,
                                                 RdmDomain::Target who, uint64_t number);
  ~RdmLink() override;

  Status Send(uint8_t type, std::string_view payload) override;
  void CloseWhenSent() override;
  size_t queued() const override { return out_.size() - out_sent_; }
  void SetMaxMessage(size_t bytes) override { deframer_.SetMaxMessage(bytes); }
  std::string peer() const override { return peer_text_; }

  // From the domain. Each may destroy the link.
  uint64_t number() const { return number_; }
  uint64_t peer_number() const { return peer_number_; }
  bool accepted() const { return accepted_; }
  void OnPacket(const RdmPacket& packet);
  void OnSent(int error);

 private:
  enum class State { kConnecting, kOpen, kFlushing, kDraining, kClosed };

  RdmLink(std::shared_ptr<RdmDomain> domain, RdmDomain::Target who, bool accepted);
  Status Start();
  RdmPacket Packet(RdmKind kind) const;
  bool SendControl(RdmKind kind);
  size_t SendSequenced(RdmKind kind, std::string_view first, std::string_view second);
  void Flush();
  void RetryLater();
  void SendFailed(const Status& why);
  void OnWelcome(uint64_t number);
  void Stand();
  void OnSequenced(const RdmPacket& packet);
  bool Take(RdmKind kind, std::string_view chunk);
  void OnBye();
  void OnGone();
  void Acknowledge();
  void AcknowledgeIn(Nanos wait);
  void ArmClock();
  void OnClock();
  void ArmClose(Nanos delay, std::string_view what);
  void StopTimers();
  void Close(const Status& why);

  std::shared_ptr<RdmDomain> domain_;
  const uint32_t peer_;
  const std::string peer_text_;
  const bool accepted_;
  bool handed_over_ = false;
  bool close_when_connected_ = false;
  bool greeted_ = false;  // hello or welcome is sent
  State state_ = State::kConnecting;
  uint64_t number_ = 0;
  uint64_t peer_number_ = 0;  // 0: not known yet
  uint64_t listener_ = 0;     // of the peer, for the hello

  // Sending.
  uint32_t next_ = 0;          // number of the next packet
  uint32_t acknowledged_ = 0;  // by the peer: all before it
  uint32_t under_way_ = 0;
  std::string out_;
  size_t out_sent_ = 0;
  Status send_failed_;
  // Receiving.
  uint32_t expected_ = 0;  // number of the next packet
  uint32_t told_ = 0;      // what we have acknowledged
  struct Held {
    RdmKind kind;
    std::string chunk;
  };
  std::map<uint32_t, Held> ahead_;  // packets that came before their time
  bool gone_ = false;               // the peer has closed, after all before gone_at_
  uint32_t gone_at_ = 0;
  Deframer deframer_;

  // Monotonic times.
  Nanos heard_ = 0;      // when anything came from the peer
  Nanos delivered_ = 0;  // when something was delivered, or nothing waited to be
  Nanos clock_due_ = 0;
  Loop::TimerId clock_ = 0;
  Loop::TimerId close_timer_ = 0;
  Loop::TimerId retry_ = 0;
  Loop::TimerId ack_timer_ = 0;
  Nanos retry_wait_ = 0;
  // Expires with this: a callback that may destroy the link keeps a weak pointer.
  std::shared_ptr<char> alive_ = std::make_shared<char>();
};

}  // namespace sonde::tree
