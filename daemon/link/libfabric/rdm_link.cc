#include "daemon/link/libfabric/rdm_link.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

namespace sonde::tree {
namespace {

constexpr Nanos kRetryMin = kMillisecond;
constexpr Nanos kRetryMax = 50 * kMillisecond;
// A failed send is told after what the peer sent before it went away.
constexpr Nanos kRdmFailureDelay = 10 * kMillisecond;
// Control packets that may be under way beside data.
constexpr uint32_t kControls = 4;
constexpr size_t kKept = 64u << 10;

std::string Seconds(Nanos time) {
  return fmt::format("{:g} s", static_cast<double>(time) / static_cast<double>(kSecond));
}

}  // namespace

RdmLink::RdmLink(std::shared_ptr<RdmDomain> domain, RdmDomain::Target who, bool accepted)
    : domain_(std::move(domain)),
      peer_(who.peer),
      peer_text_(std::move(who.text)),
      accepted_(accepted) {}

RdmLink::~RdmLink() {
  StopTimers();
  if (state_ == State::kClosed) return;
  const bool tell = peer_number_ != 0 && !gone_;
  domain_->Retire(peer_, tell ? std::optional(Packet(RdmKind::kGone)) : std::nullopt);
  if (number_ != 0) domain_->Remove(number_);
}

Result<std::unique_ptr<RdmLink>> RdmLink::Connect(std::shared_ptr<RdmDomain> domain,
                                                  std::string_view address) {
  Result<RdmDomain::Target> who = domain->TargetOf(address);
  if (!who.ok()) return who.status();
  const uint64_t listener = who->number;
  std::unique_ptr<RdmLink> link(new RdmLink(std::move(domain), *std::move(who), false));
  SONDE_RETURN_IF_ERROR(link->Start());
  link->listener_ = listener;
  link->ArmClose(Fabric::kConnectTimeout, "connect");
  link->Flush();
  return link;
}

Result<std::unique_ptr<RdmLink>> RdmLink::Accept(std::shared_ptr<RdmDomain> domain,
                                                 RdmDomain::Target who, uint64_t number) {
  std::unique_ptr<RdmLink> link(new RdmLink(std::move(domain), std::move(who), true));
  link->peer_number_ = number;  // so that it is told if it comes to nothing
  SONDE_RETURN_IF_ERROR(link->Start());
  link->state_ = State::kOpen;
  link->ArmClose(Fabric::kConnectTimeout, "connect");
  link->Flush();
  return link;
}

Status RdmLink::Start() {
  const auto number = domain_->Add(this);
  if (!number.ok()) return number.status();
  number_ = *number;
  heard_ = delivered_ = Clock::System().Monotonic();
  return {};
}

// --- Sending ---

RdmPacket RdmLink::Packet(RdmKind kind) const {
  const bool hello = kind == RdmKind::kHello;
  return {kind, hello ? listener_ : peer_number_, number_, next_, expected_, {}};
}

bool RdmLink::SendControl(RdmKind kind) {
  if (under_way_ >= RdmDomain::kSendsPerLink + kControls || !send_failed_.ok()) return false;
  std::string_view payload;
  if (kind == RdmKind::kHello) payload = domain_->own_address();
  const Result<bool> sent = domain_->Send(peer_, Packet(kind), payload);
  if (!sent.ok()) SendFailed(sent.status());
  if (!sent.ok() || !*sent) return false;
  ++under_way_;
  told_ = expected_;
  return true;
}

// How many bytes went; a bye has none, so it is 1 for that. 0: not now, or failed.
size_t RdmLink::SendSequenced(RdmKind kind, std::string_view first, std::string_view second) {
  if (under_way_ >= RdmDomain::kSendsPerLink || next_ - acknowledged_ >= kWindow) return 0;
  if (!send_failed_.ok()) return 0;
  first = first.substr(0, kChunk);
  second = second.substr(0, kChunk - first.size());
  const Result<bool> sent = domain_->Send(peer_, Packet(kind), first, second);
  if (!sent.ok()) SendFailed(sent.status());
  if (!sent.ok()) return 0;
  if (!*sent) {
    RetryLater();
    return 0;
  }
  ++under_way_;
  ++next_;
  told_ = expected_;
  retry_wait_ = 0;
  bytes_sent_ += first.size() + second.size();
  return kind == RdmKind::kBye ? 1 : first.size() + second.size();
}

Status RdmLink::Send(uint8_t type, std::string_view payload) {
  const bool open = state_ == State::kOpen || state_ == State::kConnecting;
  if (!open || close_when_connected_ || !send_failed_.ok()) {
    return {Code::kUnavailable, fmt::format("send to {}: the link is closed", peer_text_)};
  }
  SONDE_RETURN_IF_ERROR(CheckPayload(payload.size()));
  const size_t size = kFrameHeader + payload.size();
  if (queued() + size > kMaxQueued) {
    return {Code::kLimit, fmt::format("send to {}: {} bytes are waiting", peer_text_, queued())};
  }
  if (queued() == 0 && next_ == acknowledged_) delivered_ = Clock::System().Monotonic();
  const auto header = FrameHeader(type, payload);
  std::string_view head(header.data(), header.size());
  const bool direct = state_ == State::kOpen && greeted_ && queued() == 0;
  while (direct && !(head.empty() && payload.empty())) {
    const size_t n = SendSequenced(RdmKind::kData, head, payload);
    if (n == 0) break;
    const size_t of_head = std::min(n, head.size());
    head.remove_prefix(of_head);
    payload.remove_prefix(n - of_head);
  }
  out_.append(head);
  out_.append(payload);
  return {};
}

// Says hello, or welcome, first; then what is queued, then goodbye.
void RdmLink::Flush() {
  if (state_ == State::kClosed) return;
  if (!greeted_) {
    greeted_ = SendControl(accepted_ ? RdmKind::kWelcome : RdmKind::kHello);
    if (!greeted_) return RetryLater();
    retry_wait_ = 0;
  }
  if (state_ != State::kOpen && state_ != State::kFlushing) return;
  while (queued() > 0) {
    const size_t n = SendSequenced(RdmKind::kData, std::string_view(out_).substr(out_sent_), {});
    if (n == 0) break;
    out_sent_ += n;
  }
  if (out_sent_ == out_.size()) {
    out_.clear();
    if (out_.capacity() > kKept) out_.shrink_to_fit();
    out_sent_ = 0;
    if (state_ == State::kFlushing && SendSequenced(RdmKind::kBye, {}, {}) != 0) {
      state_ = State::kDraining;
    }
  } else if (out_sent_ > out_.size() / 2) {
    out_.erase(0, out_sent_);
    out_sent_ = 0;
  }
}

// The next completion sends on; without one under way, a timer does, ever more seldom: to a peer
// that is gone it will never work.
void RdmLink::RetryLater() {
  if (retry_ != 0 || !send_failed_.ok()) return;
  retry_wait_ = std::clamp(2 * retry_wait_, kRetryMin, kRetryMax);
  retry_ = domain_->loop().After(retry_wait_, [this] {
    retry_ = 0;
    Flush();
  });
}

// The owner may be within Send, so it hears of it later.
void RdmLink::SendFailed(const Status& why) {
  if (!send_failed_.ok()) return;
  send_failed_ = why.Within(peer_text_);
  if (retry_ != 0) domain_->loop().Cancel(retry_);
  retry_ = domain_->loop().After(kRdmFailureDelay, [this] {
    retry_ = 0;
    Close(Status(send_failed_));
  });
}

void RdmLink::OnSent(int error) {
  --under_way_;
  if (error != 0) return SendFailed(domain_->library().Error("send", error));
  Flush();
}

// --- Receiving ---

void RdmLink::OnPacket(const RdmPacket& packet) {
  // Whatever knows our number is an answer: data may overtake the welcome.
  const bool answer = state_ == State::kConnecting;
  if (state_ == State::kClosed || (packet.from != peer_number_ && !answer)) return;
  const std::weak_ptr<char> alive = alive_;
  heard_ = Clock::System().Monotonic();
  gone_ = gone_ || packet.kind == RdmKind::kGone;
  if (answer && !gone_) OnWelcome(packet.from);
  if (accepted_ && !handed_over_) {
    if (gone_) return Close({Code::kUnavailable, "gone"});
    handed_over_ = true;
    Stand();
    domain_->HandOver(number_);
    if (alive.expired() || state_ == State::kClosed) return;
  }
  const uint32_t fresh = packet.acknowledged - acknowledged_;
  if (fresh != 0 && fresh <= next_ - acknowledged_) {
    acknowledged_ = packet.acknowledged;
    delivered_ = heard_;
    Flush();
  }
  switch (packet.kind) {
    case RdmKind::kData:
    case RdmKind::kBye:
      return OnSequenced(packet);
    case RdmKind::kProbe:
      if (!SendControl(RdmKind::kAck)) AcknowledgeIn(kRetryMax);
      return;
    case RdmKind::kGone:
      gone_at_ = packet.sequence;
      return OnGone();
    default:
      return;
  }
}

void RdmLink::OnWelcome(uint64_t number) {
  peer_number_ = number;
  state_ = State::kOpen;
  Stand();
  // Any packet sent now tells the peer that its answer came; an acknowledgement does, too.
  const uint32_t before = next_;
  if (close_when_connected_) CloseWhenSent();
  Flush();
  if (next_ == before && !SendControl(RdmKind::kAck)) AcknowledgeIn(kRetryMin);
}

// The link works from now on.
void RdmLink::Stand() {
  if (close_timer_ != 0) domain_->loop().Cancel(std::exchange(close_timer_, 0));
  heard_ = delivered_ = Clock::System().Monotonic();
  ArmClock();
}

void RdmLink::OnSequenced(const RdmPacket& packet) {
  const uint32_t ahead = packet.sequence - expected_;
  if (ahead > UINT32_MAX / 2) return;  // there already
  if (ahead >= kWindow) {
    return Close({Code::kCorrupt, fmt::format("{}: a packet beyond the window", peer_text_)});
  }
  if (ahead != 0) {
    ahead_.try_emplace(packet.sequence, Held{packet.kind, std::string(packet.payload)});
    return;
  }
  if (!Take(packet.kind, packet.payload)) return;
  for (auto at = ahead_.find(expected_); at != ahead_.end(); at = ahead_.find(expected_)) {
    const Held held = std::move(at->second);
    ahead_.erase(at);
    if (!Take(held.kind, held.chunk)) return;
  }
  Acknowledge();
  if (gone_) OnGone();
}

// Takes the next packet in order. False if the link is closed, or gone.
bool RdmLink::Take(RdmKind kind, std::string_view chunk) {
  ++expected_;
  const std::weak_ptr<char> alive = alive_;
  if (kind == RdmKind::kBye) {
    OnBye();
    return false;
  }
  bytes_received_ += chunk.size();
  if (state_ != State::kOpen) return true;  // we said goodbye: read only to see the peer's
  const Status status = deframer_.Feed(chunk, [&](uint8_t type, std::string_view payload) {
    const auto handler = handler_;
    if (handler->message) handler->message(type, payload);
    return !alive.expired() && state_ == State::kOpen;
  });
  if (alive.expired()) return false;
  if (!status.ok()) Close(status.Within(peer_text_));
  return !alive.expired() && state_ != State::kClosed;
}

void RdmLink::OnBye() {
  if (state_ == State::kDraining) return Close({});
  Close({Code::kUnavailable, fmt::format("{}: closed by the peer", peer_text_)});
}

// Called once all has arrived that was sent before.
void RdmLink::OnGone() {
  if (state_ == State::kConnecting) {
    return Close({Code::kUnavailable, fmt::format("{}: connect: refused", peer_text_)});
  }
  if (expected_ == gone_at_ || state_ != State::kOpen) OnBye();
}

void RdmLink::Acknowledge() {
  if (expected_ - told_ >= kWindow / 2) {
    if (!SendControl(RdmKind::kAck)) AcknowledgeIn(kRetryMin);
  } else if (expected_ != told_) {
    AcknowledgeIn(std::min(kSecond, domain_->options().silence / 10));
  }
}

void RdmLink::AcknowledgeIn(Nanos wait) {
  if (ack_timer_ != 0) return;
  ack_timer_ = domain_->loop().After(wait, [this] {
    ack_timer_ = 0;
    if (!SendControl(RdmKind::kAck)) AcknowledgeIn(kRetryMax);
  });
}

// --- Time ---

void RdmLink::ArmClock() {
  const Nanos silence = domain_->options().silence;
  const Nanos now = Clock::System().Monotonic();
  const Nanos half = heard_ + silence / 2;
  clock_due_ = half > now ? half : std::max(std::min(now + silence / 4, heard_ + silence), now);
  clock_ = domain_->loop().At(clock_due_, [this] {
    clock_ = 0;
    OnClock();
  });
}

void RdmLink::OnClock() {
  const Nanos silence = domain_->options().silence;
  const std::weak_ptr<char> alive = alive_;
  // This process did not run in time: the peer gets the time to be heard.
  if (Clock::System().Monotonic() - clock_due_ > silence / 10)
    heard_ = delivered_ = Clock::System().Monotonic() - silence / 2;
  domain_->Drain();
  if (alive.expired() || state_ == State::kClosed) return;
  const Nanos now = Clock::System().Monotonic();
  if (queued() == 0 && next_ == acknowledged_) delivered_ = now;
  if (now - heard_ >= silence) {
    return Close(
        {Code::kTimeout, fmt::format("{}: nothing heard for {}", peer_text_, Seconds(silence))});
  }
  if (now - delivered_ >= silence) {
    return Close({Code::kTimeout, fmt::format("{}: nothing could be delivered for {}", peer_text_,
                                              Seconds(silence))});
  }
  if (now - heard_ >= silence / 2) SendControl(RdmKind::kProbe);
  ArmClock();
}

void RdmLink::ArmClose(Nanos delay, std::string_view what) {
  if (close_timer_ != 0) domain_->loop().Cancel(close_timer_);
  close_timer_ = domain_->loop().After(delay, [this, what = std::string(what)] {
    close_timer_ = 0;
    Close({Code::kTimeout, fmt::format("{}: {}: no answer", peer_text_, what)});
  });
}

// --- The end ---

void RdmLink::CloseWhenSent() {
  if (state_ == State::kConnecting) {
    close_when_connected_ = true;
    return;
  }
  if (state_ != State::kOpen) return;
  state_ = State::kFlushing;
  ArmClose(kCloseTimeout, "close");
  Flush();
}

void RdmLink::StopTimers() {
  for (Loop::TimerId* timer : {&clock_, &close_timer_, &retry_, &ack_timer_}) {
    if (*timer != 0) domain_->loop().Cancel(std::exchange(*timer, 0));
  }
}

void RdmLink::Close(const Status& why) {
  if (state_ == State::kClosed) return;
  const bool tell = peer_number_ != 0 && !gone_;
  domain_->Retire(peer_, tell ? std::optional(Packet(RdmKind::kGone)) : std::nullopt);
  domain_->Remove(number_);
  state_ = State::kClosed;
  StopTimers();
  ahead_.clear();
  out_ = std::string();
  out_sent_ = 0;
  if (accepted_ && !handed_over_) {
    const auto domain = domain_;
    return domain->DropPending(number_);
  }
  const auto handler = handler_;
  if (handler->closed) handler->closed(why);
}

}  // namespace sonde::tree
