#include "daemon/link/libfabric/fabric_link.h"

#include <fmt/core.h>
#include <rdma/fi_errno.h>
#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

namespace sonde::tree {
namespace {

constexpr Nanos kRetryDelay = kMillisecond;
// A failed send is told after what the peer sent before it went away.
constexpr Nanos kFailureDelay = 10 * kMillisecond;

}  // namespace

// One slot a chunk: the receives, then the sends. Mapped, so that unused pages cost nothing.
class FabricLink::Buffers {
 public:
  static Result<std::shared_ptr<Buffers>> Create(std::shared_ptr<FabricDomain> domain,
                                                 uint64_t key) {
    std::shared_ptr<Buffers> buffers(new Buffers(std::move(domain)));
    if (buffers->base_ == MAP_FAILED) return SystemError("map the buffers of a fabric link");
    SONDE_RETURN_IF_ERROR(buffers->Register(key));
    return buffers;
  }
  ~Buffers() {
    registered_.reset();
    if (base_ != MAP_FAILED) munmap(base_, kSize);
  }
  Buffers(const Buffers&) = delete;
  Buffers& operator=(const Buffers&) = delete;

  char* slot(unsigned i) { return static_cast<char*>(base_) + i * kChunk; }
  void* description() { return registered_ ? fi_mr_desc(registered_.get()) : nullptr; }

 private:
  static constexpr size_t kSize = kSlots * kChunk;

  explicit Buffers(std::shared_ptr<FabricDomain> domain)
      : domain_(std::move(domain)),
        base_(mmap(nullptr, kSize, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)) {}

  Status Register(uint64_t key) {
    if (!domain_->registers_memory()) return {};
    fid_mr* region = nullptr;
    const int rc =
        fi_mr_reg(domain_->domain(), base_, kSize, FI_SEND | FI_RECV, 0, key, 0, &region, nullptr);
    if (rc != 0) {
      return domain_->library().Error(
          fmt::format("register {} KiB with {}; is the limit of locked memory (ulimit -l) too low?",
                      kSize >> 10, domain_->name()),
          rc);
    }
    registered_.reset(region);
    return {};
  }

  std::shared_ptr<FabricDomain> domain_;
  void* base_;
  FidPtr<fid_mr> registered_;
};

FabricLink::FabricLink(std::shared_ptr<FabricDomain> domain, std::string peer, bool accepted)
    : domain_(std::move(domain)), peer_(std::move(peer)), accepted_(accepted) {}

FabricLink::~FabricLink() {
  if (timer_ != 0) domain_->loop().Cancel(timer_);
  if (retry_ != 0) domain_->loop().Cancel(retry_);
  if (endpoint_) {
    domain_->ForgetEndpoint(endpoint_.get());
    if (state_ != State::kConnecting) fi_shutdown(endpoint_.get(), 0);
  }
  if (id_ != 0) domain_->Remove(id_);
}

Result<std::unique_ptr<FabricLink>> FabricLink::Connect(std::shared_ptr<FabricDomain> domain,
                                                        std::string_view address) {
  const auto info = domain->InfoFor(address);
  if (!info.ok()) return info.status();
  std::string peer = domain->PeerText(**info);
  std::unique_ptr<FabricLink> link(new FabricLink(std::move(domain), std::move(peer), false));
  SONDE_RETURN_IF_ERROR(link->Start(info->get(), nullptr));
  const int rc = fi_connect(link->endpoint_.get(), (*info)->dest_addr, nullptr, 0);
  if (rc != 0) return link->domain_->library().Error(link->peer_ + ": connect", rc);
  return link;
}

Result<std::unique_ptr<FabricLink>> FabricLink::Accept(std::shared_ptr<FabricDomain> domain,
                                                       FabricRequest request) {
  std::string peer = domain->PeerText(*request.info());
  std::unique_ptr<FabricLink> link(new FabricLink(std::move(domain), std::move(peer), true));
  SONDE_RETURN_IF_ERROR(link->Start(request.info(), &request));
  const int rc = fi_accept(link->endpoint_.get(), nullptr, 0);
  if (rc != 0) return link->domain_->library().Error(link->peer_ + ": accept", rc);
  return link;
}

// `request`: of which `info` is, if it is accepted.
Status FabricLink::Start(fi_info* info, FabricRequest* request) {
  const auto id = domain_->Add(this);
  if (!id.ok()) return id.status();
  id_ = *id;
  auto buffers = Buffers::Create(domain_, id_);
  if (!buffers.ok()) return buffers.status();
  buffers_ = *std::move(buffers);
  auto endpoint = domain_->NewEndpoint(info, id_);
  if (!endpoint.ok()) return endpoint.status();
  endpoint_ = *std::move(endpoint);
  if (request != nullptr) request->Taken();
  for (unsigned slot = 0; slot < kReceives; ++slot) SONDE_RETURN_IF_ERROR(PostReceive(slot));
  ArmTimer(Fabric::kConnectTimeout, "connect");
  return {};
}

Status FabricLink::PostReceive(unsigned slot) {
  const ssize_t rc = fi_recv(endpoint_.get(), buffers_->slot(slot), kChunk, buffers_->description(),
                             0, reinterpret_cast<void*>(Context(slot)));
  if (rc == 0) return {};
  return domain_->library().Error(peer_ + ": receive", rc);
}

void FabricLink::ArmTimer(Nanos delay, std::string_view what) {
  timer_ = domain_->loop().After(delay, [this, what = std::string(what)] {
    timer_ = 0;
    Close({Code::kTimeout, fmt::format("{}: {}: no answer", peer_, what)});
  });
}

void FabricLink::OnConnected() {
  if (state_ != State::kConnecting) return;
  domain_->loop().Cancel(std::exchange(timer_, 0));
  state_ = State::kOpen;
  if (close_when_connected_) CloseWhenSent();
  Flush();
  if (!accepted_) return;
  handed_over_ = true;
  domain_->HandOver(id_);
}

void FabricLink::OnShutdown() {
  if (state_ == State::kDraining) return Close({});
  Close({Code::kUnavailable, fmt::format("{}: closed by the peer", peer_)});
}

void FabricLink::OnError(std::string_view what, int error) {
  Close(domain_->library().Error(fmt::format("{}: {}", peer_, what), error));
}

void FabricLink::OnCompletion(unsigned slot, size_t length) {
  const std::weak_ptr<char> alive = alive_;
  if (slot >= kReceives) {
    busy_sends_ &= ~(1u << (slot - kReceives));
    return Flush();
  }
  // A first message may be read before the event of the connection.
  OnConnected();
  if (alive.expired() || state_ == State::kClosed) return;
  if (length == 0) return OnShutdown();  // the peer's goodbye
  bytes_received_ += length;
  if (!Take({buffers_->slot(slot), std::min(length, kChunk)})) return;
  const Status posted = PostReceive(slot);
  if (!posted.ok()) Close(posted);
}

bool FabricLink::Take(std::string_view chunk) {
  if (state_ != State::kOpen) return true;  // we said goodbye: read only to see the peer's
  const std::weak_ptr<char> alive = alive_;
  const auto buffers = buffers_;
  const Status status = deframer_.Feed(chunk, [&](uint8_t type, std::string_view payload) {
    const auto handler = handler_;
    if (handler->message) handler->message(type, payload);
    return !alive.expired() && state_ == State::kOpen;
  });
  if (alive.expired()) return false;
  if (!status.ok()) Close(status.Within(peer_));
  return !alive.expired() && state_ != State::kClosed;
}

Status FabricLink::Send(uint8_t type, std::string_view payload) {
  const bool open = state_ == State::kOpen || state_ == State::kConnecting;
  if (!open || close_when_connected_ || send_failed_) {
    return {Code::kUnavailable, fmt::format("send to {}: the link is closed", peer_)};
  }
  SONDE_RETURN_IF_ERROR(CheckPayload(payload.size()));
  const size_t size = kFrameHeader + payload.size();
  if (queued() + size > kMaxQueued) {
    return {Code::kLimit, fmt::format("send to {}: {} bytes are waiting", peer_, queued())};
  }
  const auto header = FrameHeader(type, payload);
  std::string_view head(header.data(), header.size());
  const bool direct = state_ == State::kOpen && queued() == 0;
  while (direct && !(head.empty() && payload.empty())) {
    const size_t n = SendChunk(head, payload);
    if (n == 0) break;
    const size_t of_head = std::min(n, head.size());
    head.remove_prefix(of_head);
    payload.remove_prefix(n - of_head);
  }
  out_.append(head);
  out_.append(payload);
  return {};
}

size_t FabricLink::SendChunk(std::string_view first, std::string_view second) {
  const auto slot = static_cast<unsigned>(std::countr_one(busy_sends_));
  if (slot >= kSends || send_failed_) return 0;
  first = first.substr(0, kChunk);
  second = second.substr(0, kChunk - first.size());
  char* to = buffers_->slot(kReceives + slot);
  if (!first.empty()) std::memcpy(to, first.data(), first.size());
  if (!second.empty()) std::memcpy(to + first.size(), second.data(), second.size());
  const size_t size = first.size() + second.size();
  const ssize_t rc = fi_send(endpoint_.get(), to, size, buffers_->description(), 0,
                             reinterpret_cast<void*>(Context(kReceives + slot)));
  if (rc == -FI_EAGAIN) {
    RetryLater();
    return 0;
  }
  if (rc != 0) {
    SendFailed(rc);
    return 0;
  }
  busy_sends_ |= 1u << slot;
  bytes_sent_ += size;
  return size;
}

void FabricLink::Flush() {
  if (state_ != State::kOpen && state_ != State::kFlushing) return;
  while (queued() > 0) {
    const size_t n = SendChunk(std::string_view(out_).substr(out_sent_), {});
    if (n == 0) break;
    out_sent_ += n;
  }
  if (out_sent_ == out_.size()) {
    out_.clear();
    if (out_.capacity() > 4 * kChunk) out_.shrink_to_fit();
    out_sent_ = 0;
    if (state_ == State::kFlushing && SendGoodbye()) state_ = State::kDraining;
  } else if (out_sent_ > out_.size() / 2) {
    out_.erase(0, out_sent_);
    out_sent_ = 0;
  }
}

bool FabricLink::SendGoodbye() {
  const unsigned before = busy_sends_;
  SendChunk({}, {});
  return busy_sends_ != before;
}

// The next completion sends on; without one under way, a timer does.
void FabricLink::RetryLater() {
  if (busy_sends_ != 0 || retry_ != 0) return;
  retry_ = domain_->loop().After(kRetryDelay, [this] {
    retry_ = 0;
    Flush();
  });
}

// The owner may be within Send, so it hears of it later.
void FabricLink::SendFailed(long error) {
  send_failed_ = true;
  if (retry_ != 0) domain_->loop().Cancel(retry_);
  retry_ = domain_->loop().After(kFailureDelay, [this, error] {
    retry_ = 0;
    OnError("send", static_cast<int>(-error));
  });
}

void FabricLink::CloseWhenSent() {
  if (state_ == State::kConnecting) {
    close_when_connected_ = true;
    return;
  }
  if (state_ != State::kOpen) return;
  state_ = State::kFlushing;
  ArmTimer(kCloseTimeout, "close");
  Flush();
}

void FabricLink::Close(const Status& why) {
  if (state_ == State::kClosed) return;
  const bool connected = state_ != State::kConnecting;
  state_ = State::kClosed;
  if (timer_ != 0) domain_->loop().Cancel(std::exchange(timer_, 0));
  if (retry_ != 0) domain_->loop().Cancel(std::exchange(retry_, 0));
  domain_->ForgetEndpoint(endpoint_.get());
  if (connected) fi_shutdown(endpoint_.get(), 0);
  endpoint_.reset();
  buffers_.reset();
  out_.clear();
  out_.shrink_to_fit();
  out_sent_ = 0;
  if (accepted_ && !handed_over_) {
    const auto domain = domain_;
    return domain->DropPending(id_);
  }
  const auto handler = handler_;
  if (handler->closed) handler->closed(why);
}

}  // namespace sonde::tree
