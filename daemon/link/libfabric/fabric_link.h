// A link over one FI_EP_MSG endpoint.
//
// The byte stream goes in chunks of up to kChunk, from and into a few buffers of the link's own, so
// that its memory is bounded by kSlots * kChunk and what is queued; of that, only pages that were
// used are resident. An empty chunk is the sender's goodbye: endpoints have no half-close.
//
// Owned by whoever connected or accepted it, by the FabricDomain while it is being accepted. Thread
// safety: the loop's thread only.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "daemon/link/libfabric/fabric_domain.h"
#include "daemon/link/link.h"

namespace sonde::tree {

class FabricLink final : public Link {
 public:
  static constexpr size_t kChunk = 16u << 10;
  static constexpr unsigned kReceives = 4;
  static constexpr unsigned kSends = 4;
  static constexpr unsigned kSlots = kReceives + kSends;

  static Result<std::unique_ptr<FabricLink>> Connect(std::shared_ptr<FabricDomain> domain,
                                                     std::string_view address);
  // Answers a connection request; the link is handed over when it is connected.
  static Result<std::unique_ptr<FabricLink>> Accept(std::shared_ptr<FabricDomain> domain,
                                                    FabricRequest request);
  ~FabricLink() override;

  Status Send(uint8_t type, std::string_view payload) override;
  void CloseWhenSent() override;
  size_t queued() const override { return out_.size() - out_sent_; }
  void SetMaxMessage(size_t bytes) override { deframer_.SetMaxMessage(bytes); }
  std::string peer() const override { return peer_; }

  // From the domain. Each may destroy the link.
  uint64_t id() const { return id_; }
  void OnConnected();
  void OnShutdown();
  void OnCompletion(unsigned slot, size_t length);
  void OnError(std::string_view what, int error);

 private:
  enum class State { kConnecting, kOpen, kFlushing, kDraining, kClosed };
  class Buffers;

  FabricLink(std::shared_ptr<FabricDomain> domain, std::string peer, bool accepted);
  Status Start(fi_info* info, FabricRequest* request);
  Status PostReceive(unsigned slot);
  bool Take(std::string_view chunk);
  // Sends one chunk made of these; how many bytes of it went. 0: not now, or failed.
  size_t SendChunk(std::string_view first, std::string_view second);
  bool SendGoodbye();
  void Flush();
  void RetryLater();
  void SendFailed(long error);
  void ArmTimer(Nanos delay, std::string_view what);
  void Close(const Status& why);
  uint64_t Context(unsigned slot) const { return id_ << 8 | slot; }

  std::shared_ptr<FabricDomain> domain_;
  std::string peer_;
  const bool accepted_;
  bool handed_over_ = false;
  bool close_when_connected_ = false;
  State state_ = State::kConnecting;
  uint64_t id_ = 0;
  // Shared with a delivery under way: a payload lies in it.
  std::shared_ptr<Buffers> buffers_;
  FidPtr<fid_ep> endpoint_;
  unsigned busy_sends_ = 0;  // one bit a slot
  Loop::TimerId timer_ = 0;
  Loop::TimerId retry_ = 0;
  bool send_failed_ = false;
  std::string out_;
  size_t out_sent_ = 0;
  Deframer deframer_;
  // Expires with this: a callback that may destroy the link keeps a weak pointer.
  std::shared_ptr<char> alive_ = std::make_shared<char>();
};

}  // namespace sonde::tree
