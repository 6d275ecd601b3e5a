#include "daemon/link/libfabric/rdm_domain.h"

#include <fmt/core.h>
#include <rdma/fi_errno.h>
#include <sys/random.h>

#include <algorithm>
#include <cstring>

#include "core/bytes.h"
#include "core/log.h"
#include "daemon/link/address.h"
#include "daemon/link/libfabric/fabric_info.h"
#include "daemon/link/libfabric/rdm_link.h"

namespace sonde::tree {
namespace {

constexpr int kRdmRounds = 16;
constexpr size_t kRdmBatch = 16;
// Marks a listener's address as that of an RDM endpoint; the lower bits are the address format.
constexpr uint32_t kRdmAddress = 1u << 31;
// A descriptor that woke us so often within that time, and for nothing, is left alone for a while,
// every time for longer.
constexpr uint32_t kBarrenLimit = 50;
constexpr Nanos kBarrenTime = 100 * kMillisecond;
// Polls before they become half as frequent: an answer often takes more than one.
constexpr uint32_t kPollsEach = 4;
constexpr Nanos kRestMin = 100 * kMillisecond;
constexpr Nanos kRestMax = 30 * kSecond;

Nanos Now() { return Clock::System().Monotonic(); }

uint64_t RandomNumber() {
  uint64_t number = 0;
  while (number == 0) {
    if (getrandom(&number, sizeof number, 0) != sizeof number) number = 0;
  }
  return number;
}

}  // namespace

RdmDomain::RdmDomain(const FabricLibrary& library, FabricOptions options, FabricInfo info)
    : library_(library),
      options_(std::move(options)),
      provider_(info->fabric_attr->prov_name),
      info_(std::move(info)) {}

RdmDomain::~RdmDomain() {
  if (loop_ == nullptr) return;
  loop_->RemoveSleepCheck(sleep_check_);
  for (const Loop::TimerId timer : {poll_timer_, tidy_timer_}) {
    if (timer != 0) loop_->Cancel(timer);
  }
  if (watching_) loop_->Unwatch(wait_fd_);
}

// --- Opening ---

Result<std::shared_ptr<RdmDomain>> RdmDomain::Open(const FabricLibrary& library,
                                                   FabricOptions options, FabricInfo info) {
  std::shared_ptr<RdmDomain> domain(new RdmDomain(library, std::move(options), std::move(info)));
  SONDE_RETURN_IF_ERROR(domain->OpenQueue());
  SONDE_RETURN_IF_ERROR(domain->OpenEndpoint());
  SONDE_RETURN_IF_ERROR(domain->OpenReceives());
  return domain;
}

Status RdmDomain::Describe(std::string_view what, long rc) const {
  if (rc == 0) return {};
  return library_.Error(fmt::format("{}: {}", name(), what), rc);
}

Status RdmDomain::OpenQueue() {
  if (info_->ep_attr->max_msg_size < kRdmPacket) {
    return {Code::kUnsupported,
            fmt::format("{} sends no messages of {} bytes", name(), kRdmPacket)};
  }
  fid_fabric* fabric = nullptr;
  SONDE_RETURN_IF_ERROR(
      Describe("open the fabric", library_.fabric(info_->fabric_attr, &fabric, nullptr)));
  fabric_.reset(fabric);
  fid_domain* domain = nullptr;
  SONDE_RETURN_IF_ERROR(
      Describe("open a domain", fi_domain(fabric, info_.get(), &domain, nullptr)));
  domain_.reset(domain);
  fi_cq_attr attr{};
  attr.size = kReceives + 2 * kSendsPerLink * options_.max_links;
  attr.format = FI_CQ_FORMAT_MSG;
  attr.wait_obj = FI_WAIT_FD;
  fid_cq* completions = nullptr;
  if (fi_cq_open(domain, &attr, &completions, nullptr) != 0) {
    attr.wait_obj = FI_WAIT_NONE;
    SONDE_RETURN_IF_ERROR(
        Describe("open a completion queue", fi_cq_open(domain, &attr, &completions, nullptr)));
  }
  completions_.reset(completions);
  if (attr.wait_obj == FI_WAIT_FD && fi_control(&completions->fid, FI_GETWAIT, &wait_fd_) != 0) {
    wait_fd_ = -1;
  }
  return {};
}

Status RdmDomain::OpenEndpoint() {
  fi_av_attr attr{};
  attr.type = info_->domain_attr->av_type == FI_AV_MAP ? FI_AV_MAP : FI_AV_TABLE;
  attr.count = options_.max_links;
  fid_av* addresses = nullptr;
  SONDE_RETURN_IF_ERROR(
      Describe("open an address vector", fi_av_open(domain_.get(), &attr, &addresses, nullptr)));
  addresses_.reset(addresses);
  SONDE_RETURN_IF_ERROR(ListenWithin(library_, options_.ports, *info_,
                                     [this](fi_info& info) { return EnableEndpoint(info); }));
  char bytes[kMaxFabricAddress];
  size_t size = sizeof bytes;
  SONDE_RETURN_IF_ERROR(
      Describe("ask for the endpoint's address", fi_getname(&endpoint_->fid, bytes, &size)));
  ByteWriter(own_address_).Fixed<uint32_t>(info_->addr_format);
  own_address_.append(bytes, std::min(size, sizeof bytes));
  return {};
}

Status RdmDomain::EnableEndpoint(fi_info& info) {
  fid_ep* endpoint = nullptr;
  SONDE_RETURN_IF_ERROR(
      Describe("create an endpoint", fi_endpoint(domain_.get(), &info, &endpoint, nullptr)));
  FidPtr<fid_ep> owner(endpoint);
  SONDE_RETURN_IF_ERROR(Describe("bind an endpoint to the completion queue",
                                 fi_ep_bind(endpoint, &completions_->fid, FI_TRANSMIT | FI_RECV)));
  SONDE_RETURN_IF_ERROR(Describe("bind an endpoint to the address vector",
                                 fi_ep_bind(endpoint, &addresses_->fid, 0)));
  SONDE_RETURN_IF_ERROR(Describe("enable an endpoint", fi_enable(endpoint)));
  endpoint_ = std::move(owner);
  return {};
}

Status RdmDomain::OpenReceives() {
  const size_t sends = 2 * kSendsPerLink * options_.max_links;
  slots_ = std::make_unique<RdmSlots>(library_, *info_, domain_.get(), endpoint_.get(),
                                      kReceives + sends);
  for (size_t i = 0; i < kReceives; ++i) {
    const auto slot = slots_->Take();
    if (!slot.ok()) return slot.status();
    (*slot)->receive = true;
    if (!Post(*slot)) return {Code::kIo, fmt::format("{}: takes no receive buffers", name())};
  }
  return {};
}

// False if the provider does not take it now; it is tried again.
bool RdmDomain::Post(RdmSlot* slot) {
  const ssize_t rc = fi_recv(endpoint_.get(), slot->bytes, kRdmPacket, slot->description,
                             FI_ADDR_UNSPEC, &slot->context);
  if (rc == 0) return true;
  unposted_.push_back(slot);
  return false;
}

Status RdmDomain::Attach(Loop& loop) {
  loop_ = &loop;
  // Such an endpoint takes connections whether somebody listens or not.
  const std::string_view raw = std::string_view(own_address_).substr(sizeof(uint32_t));
  const uint16_t port = SocketPort(info_->addr_format, raw);
  if (port != 0) silent_.emplace(port, MostPeers());
  sleep_check_ = loop.AddSleepCheck([this] { return Progress(); });
  return polls() ? Status() : Watch();
}

Status RdmDomain::Watch() {
  barren_ = 0;
  watching_ = true;
  return loop_->Watch(wait_fd_, EPOLLIN, [this](uint32_t) { woken_ = true; });
}

std::string RdmDomain::name() const {
  return fmt::format("{} at {} (libfabric {})", provider_, where(), library_.VersionText());
}

std::string RdmDomain::where() const { return InterfaceText(*info_); }

// --- Addresses ---

Result<std::string> RdmDomain::Listen(Fabric::Accepted accepted) {
  listen_number_ = RandomNumber();
  accepted_ = std::make_shared<const Fabric::Accepted>(std::move(accepted));
  std::string address;
  ByteWriter writer(address);
  writer.Fixed<uint32_t>(info_->addr_format | kRdmAddress);
  writer.Fixed<uint64_t>(listen_number_);
  return address.append(std::string_view(own_address_).substr(sizeof(uint32_t)));
}

void RdmDomain::StopListening() {
  accepted_.reset();
  listen_number_ = 0;
  const auto pending = std::exchange(pending_, {});
}

Result<RdmDomain::Target> RdmDomain::TargetOf(std::string_view address) {
  ByteReader reader(address);
  const auto format = reader.Fixed<uint32_t>();
  const auto number = reader.Fixed<uint64_t>();
  const std::string_view raw = reader.Raw(reader.left());
  if (!reader.ok() || (format & kRdmAddress) == 0 || number == 0 ||
      !IsAddressFor(*info_, format & ~kRdmAddress, raw)) {
    return Status(Code::kUnsupported, fmt::format("{}: connect: {} bytes are no address of this "
                                                  "fabric",
                                                  name(), address.size()));
  }
  std::string hello_address;
  ByteWriter(hello_address).Fixed<uint32_t>(format & ~kRdmAddress);
  hello_address += raw;
  const Result<uint32_t> peer = AddPeer(hello_address);
  if (!peer.ok()) return peer.status();
  return Target{*peer, number, PeerText(hello_address)};
}

// --- Links ---

Result<uint64_t> RdmDomain::Add(RdmLink* link) {
  if (links_.size() >= options_.max_links) {
    return Status(Code::kLimit,
                  fmt::format("{}: {} links are open, no more are taken", name(), links_.size()));
  }
  uint64_t number = RandomNumber();
  while (!links_.emplace(number, link).second) number = RandomNumber();
  return number;
}

void RdmDomain::Remove(uint64_t number) {
  const auto at = links_.find(number);
  if (at == links_.end()) return;
  if (at->second->accepted()) {
    if (former_.size() >= kFormer) former_.pop_front();
    former_.push_back(at->second->peer_number());
  }
  links_.erase(at);
}

std::unique_ptr<RdmLink> RdmDomain::TakePending(uint64_t number) {
  const auto at = std::find_if(pending_.begin(), pending_.end(),
                               [&](const auto& link) { return link->number() == number; });
  if (at == pending_.end()) return nullptr;
  std::unique_ptr<RdmLink> link = std::move(*at);
  pending_.erase(at);
  return link;
}

void RdmDomain::HandOver(uint64_t number) {
  std::unique_ptr<RdmLink> link = TakePending(number);
  const auto accepted = accepted_;
  if (link && accepted && *accepted) (*accepted)(std::move(link));
}

void RdmDomain::DropPending(uint64_t number) { TakePending(number); }

// The oldest of the host, or of the network, that has most of them goes: a crowd of strangers keeps
// out nobody but itself.
void RdmDomain::MakeRoom() {
  std::unordered_map<std::string, size_t> crowds;
  const auto crowd_of = [](const auto& link) { return NetworkOf(HostOf(link->peer())); };
  for (const auto& link : pending_) ++crowds[crowd_of(link)];
  size_t most = 0;
  for (const auto& [host, size] : crowds) most = std::max(most, size);
  const auto at = std::find_if(pending_.begin(), pending_.end(),
                               [&](const auto& link) { return crowds[crowd_of(link)] == most; });
  log::Debug("{}: gives up {}: it has not answered, and others wait", name(), (*at)->peer());
  TakePending((*at)->number());
}

// --- Packets ---

Result<bool> RdmDomain::Send(uint32_t id, const RdmPacket& packet, std::string_view first,
                             std::string_view second) {
  const auto at = peers_.find(id);
  if (at == peers_.end()) return Status(Code::kInternal, "send to an unknown peer");
  const Result<RdmSlot*> taken = slots_->Take();
  if (!taken.ok()) return false;
  RdmSlot* slot = *taken;
  slot->receive = false;
  EncodeHeader(packet, slot->bytes);
  char* to = slot->bytes + kRdmHeader;
  if (!first.empty()) std::memcpy(to, first.data(), first.size());
  if (!second.empty()) std::memcpy(to + first.size(), second.data(), second.size());
  const size_t size = kRdmHeader + first.size() + second.size();
  const ssize_t rc = fi_send(endpoint_.get(), slot->bytes, size, slot->description,
                             at->second.address->second.number, &slot->context);
  poll_wait_ = kPollMin;
  if (rc != 0) {
    slots_->Give(slot);
    if (rc == -FI_EAGAIN) return false;
    return library_.Error("send", rc);
  }
  slot->peer = id;
  slot->link = packet.from;
  ++at->second.under_way;
  return true;
}

void RdmDomain::OnSent(RdmSlot* slot, int error) {
  const uint64_t number = slot->link;
  if (const auto peer = peers_.find(slot->peer); peer != peers_.end()) {
    --peer->second.under_way;
    if (peer->second.retired) Tidy();
  } else {
    --abandoned_;
  }
  slots_->Give(slot);
  const auto at = links_.find(number);
  if (at != links_.end()) at->second->OnSent(error);
}

void RdmDomain::OnReceived(const RdmSlot& slot, size_t length) {
  const auto packet = DecodeRdmPacket({slot.bytes, std::min(length, kRdmPacket)});
  if (!packet) return;
  if (packet->kind == RdmKind::kHello) return OnHello(*packet);
  const auto at = links_.find(packet->to);
  if (at != links_.end()) at->second->OnPacket(*packet);
}

void RdmDomain::OnHello(const RdmPacket& packet) {
  for (const auto& [number, link] : links_) {
    if (link->peer_number() == packet.from) return;  // we know
  }
  if (std::find(former_.begin(), former_.end(), packet.from) != former_.end()) return;
  // Packets that the provider neither sends nor gives up keep buffers, of which links need most.
  if (abandoned_ >= kSendsPerLink * options_.max_links) return;
  const Result<uint32_t> peer = AddPeer(packet.payload);
  if (!peer.ok()) return;
  Target who{*peer, packet.from, PeerText(packet.payload)};
  const bool ours = accepted_ != nullptr && packet.to == listen_number_;
  if (ours && pending_.size() >= options_.max_pending) MakeRoom();
  if (!ours || links_.size() >= options_.max_links) {
    log::Debug("{}: refuses {}: {} links, {} pending", name(), who.text, links_.size(),
               pending_.size());
    return Retire(*peer, RdmPacket{RdmKind::kGone, packet.from, 0, 0, 0, {}});
  }
  auto link = RdmLink::Accept(shared_from_this(), std::move(who), packet.from);
  if (!link.ok()) {
    if (accept_log_limit_.Take()) log::Warning("accept: {}", link.status().message());
    return;
  }
  pending_.push_back(*std::move(link));
}

// --- Waking up ---

void RdmDomain::Drain() {
  if (busy_) return;
  const auto self = shared_from_this();  // a handler may let go of everything
  busy_ = true;
  for (int i = 0; i < kRdmRounds && ReadCompletions(); ++i) {
  }
  std::vector<RdmSlot*> unposted = std::exchange(unposted_, {});
  for (RdmSlot* slot : unposted) Post(slot);
  busy_ = false;
}

// True if there was anything.
bool RdmDomain::ReadCompletions() {
  fi_cq_msg_entry entries[kRdmBatch];
  const ssize_t n = fi_cq_read(completions_.get(), entries, kRdmBatch);
  if (n == -FI_EAVAIL) {
    OnError();
    return true;
  }
  for (ssize_t i = 0; i < n; ++i) {
    auto* slot = static_cast<RdmSlot*>(entries[i].op_context);
    if (slot->receive) {
      OnReceived(*slot, entries[i].len);
      Post(slot);
    } else {
      OnSent(slot, 0);
    }
  }
  found_ = found_ || n > 0;
  return n > 0;
}

void RdmDomain::OnError() {
  fi_cq_err_entry error{};
  if (fi_cq_readerr(completions_.get(), &error, 0) <= 0 || error.op_context == nullptr) return;
  auto* slot = static_cast<RdmSlot*>(error.op_context);
  if (!slot->receive) return OnSent(slot, error.err);
  if (error.err != FI_ECANCELED) Post(slot);  // too long, or damaged: nobody's
}

bool RdmDomain::Progress() {
  const auto self = shared_from_this();
  found_ = false;
  Drain();
  if (silent_) silent_->Look();
  const bool found = std::exchange(found_, false);
  bool may_sleep = true;
  if (watching_) {
    fid* queue = &completions_->fid;
    may_sleep = fi_trywait(fabric_.get(), &queue, 1) != -FI_EAGAIN;
    const bool woken = std::exchange(woken_, false);
    CountBarren(found || (may_sleep && !woken));
  }
  if (watching_) return may_sleep;
  Poll(found);
  return true;
}

// The timer has to run for somebody who may send at any time.
void RdmDomain::Poll(bool found) {
  if (found) {
    poll_wait_ = kPollMin;
    polls_ = 0;
  } else if (std::exchange(polled_, false) && ++polls_ % kPollsEach == 0) {
    poll_wait_ = std::min(2 * poll_wait_, kPollMax);
  }
  const bool needed = accepted_ != nullptr || !links_.empty() || !peers_.empty();
  const Nanos due = Now() + poll_wait_;
  if (poll_timer_ != 0 && (!needed || poll_due_ > due)) {
    loop_->Cancel(std::exchange(poll_timer_, 0));
  }
  if (poll_timer_ != 0 || !needed) return;
  poll_due_ = due;
  poll_timer_ = loop_->At(due, [this] {
    poll_timer_ = 0;
    polled_ = true;
    // The next round watches again, or polls on.
    if (!polls() && Now() >= rest_until_ && !Watch().ok()) rest_until_ = INT64_MAX;
  });
}

// A descriptor that is always ready would keep the loop busy for ever.
void RdmDomain::CountBarren(bool useful) {
  const Nanos now = Now();
  if (useful || now - barren_since_ > kBarrenTime) {
    barren_ = 0;
    barren_since_ = now;
    return;
  }
  if (++barren_ < kBarrenLimit) return;
  loop_->Unwatch(wait_fd_);
  watching_ = false;
  rest_ = std::clamp(2 * rest_, kRestMin, kRestMax);
  rest_until_ = now + rest_;
  log::Debug("{}: its descriptor is ready for nothing; polled for {} ms", name(),
             rest_ / kMillisecond);
}

}  // namespace sonde::tree
