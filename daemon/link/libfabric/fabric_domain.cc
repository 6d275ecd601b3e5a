#include "daemon/link/libfabric/fabric_domain.h"

#include <fmt/core.h>
#include <rdma/fi_errno.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "core/bytes.h"
#include "core/log.h"
#include "daemon/link/address.h"
#include "daemon/link/libfabric/fabric_info.h"
#include "daemon/link/libfabric/fabric_link.h"

namespace sonde::tree {
namespace {

constexpr int kRounds = 16;
constexpr size_t kBatch = 16;
}  // namespace

FabricDomain::FabricDomain(const FabricLibrary& library, FabricOptions options, FabricInfo info)
    : library_(library),
      options_(std::move(options)),
      provider_(info->fabric_attr->prov_name),
      info_(std::move(info)) {}

FabricDomain::~FabricDomain() {
  if (loop_ == nullptr) return;
  loop_->RemoveSleepCheck(sleep_check_);
  loop_->Unwatch(event_fd_);
  loop_->Unwatch(completion_fd_);
}

Result<std::shared_ptr<FabricDomain>> FabricDomain::Open(const FabricLibrary& library,
                                                         FabricOptions options, FabricInfo info) {
  std::shared_ptr<FabricDomain> domain(
      new FabricDomain(library, std::move(options), std::move(info)));
  SONDE_RETURN_IF_ERROR(domain->OpenQueues());
  return domain;
}

Status FabricDomain::Describe(std::string_view what, long rc) const {
  if (rc == 0) return {};
  return library_.Error(fmt::format("{}: {}", name(), what), rc);
}

Status FabricDomain::OpenQueues() {
  fid_fabric* fabric = nullptr;
  SONDE_RETURN_IF_ERROR(
      Describe("open the fabric", library_.fabric(info_->fabric_attr, &fabric, nullptr)));
  fabric_.reset(fabric);
  fi_eq_attr eq_attr{};
  eq_attr.size = 2 * options_.max_links;
  eq_attr.wait_obj = FI_WAIT_FD;
  fid_eq* events = nullptr;
  SONDE_RETURN_IF_ERROR(Describe("open an event queue with a descriptor",
                                 fi_eq_open(fabric, &eq_attr, &events, nullptr)));
  events_.reset(events);
  fid_domain* domain = nullptr;
  SONDE_RETURN_IF_ERROR(
      Describe("open a domain", fi_domain(fabric, info_.get(), &domain, nullptr)));
  domain_.reset(domain);
  fi_cq_attr cq_attr{};
  cq_attr.size = options_.max_links * FabricLink::kSlots;
  cq_attr.format = FI_CQ_FORMAT_MSG;
  cq_attr.wait_obj = FI_WAIT_FD;
  fid_cq* completions = nullptr;
  SONDE_RETURN_IF_ERROR(Describe("open a completion queue with a descriptor",
                                 fi_cq_open(domain, &cq_attr, &completions, nullptr)));
  completions_.reset(completions);
  SONDE_RETURN_IF_ERROR(Describe("ask for the event queue's descriptor",
                                 fi_control(&events->fid, FI_GETWAIT, &event_fd_)));
  return Describe("ask for the completion queue's descriptor",
                  fi_control(&completions->fid, FI_GETWAIT, &completion_fd_));
}

// The work is done before the loop sleeps, whatever woke it; the descriptors only wake it.
Status FabricDomain::Attach(Loop& loop) {
  loop_ = &loop;
  sleep_check_ = loop.AddSleepCheck([this] { return Progress(); });
  SONDE_RETURN_IF_ERROR(loop.Watch(event_fd_, EPOLLIN, [](uint32_t) {}));
  return loop.Watch(completion_fd_, EPOLLIN, [](uint32_t) {});
}

std::string FabricDomain::name() const {
  return fmt::format("{} at {} (libfabric {})", provider_, where(), library_.VersionText());
}

std::string FabricDomain::where() const { return InterfaceText(*info_); }

bool FabricDomain::registers_memory() const {
  return (info_->domain_attr->mr_mode & FI_MR_LOCAL) != 0;
}

Status FabricDomain::ListenOn(fi_info& info) {
  fid_pep* listener = nullptr;
  SONDE_RETURN_IF_ERROR(Describe("create a listening endpoint",
                                 fi_passive_ep(fabric_.get(), &info, &listener, nullptr)));
  FidPtr<fid_pep> owner(listener);
  SONDE_RETURN_IF_ERROR(
      Describe("bind the listening endpoint", fi_pep_bind(listener, &events_->fid, 0)));
  SONDE_RETURN_IF_ERROR(Describe("listen", fi_listen(listener)));
  listener_ = std::move(owner);
  return {};
}

Result<std::string> FabricDomain::Listen(Fabric::Accepted accepted) {
  SONDE_RETURN_IF_ERROR(ListenWithin(library_, options_.ports, *info_,
                                     [this](fi_info& info) { return ListenOn(info); }));
  char bytes[kMaxFabricAddress];
  size_t size = sizeof bytes;
  SONDE_RETURN_IF_ERROR(
      Describe("ask for the listening address", fi_getname(&listener_->fid, bytes, &size)));
  accepted_ = std::make_shared<const Fabric::Accepted>(std::move(accepted));
  const std::string_view raw(bytes, std::min(size, sizeof bytes));
  const uint16_t port = SocketPort(info_->addr_format, raw);
  if (port != 0) silent_.emplace(port);
  std::string address;
  ByteWriter(address).Fixed<uint32_t>(info_->addr_format);
  return address.append(raw);
}

void FabricRequest::Reject() {
  if (listener_ != nullptr) fi_reject(listener_, info_->handle, nullptr, 0);
}

void FabricDomain::StopListening() {
  if (listener_ != nullptr) RejectWaiting();
  listener_.reset();
  silent_.reset();
  accepted_.reset();
  pending_.clear();
}

Result<FabricInfo> FabricDomain::InfoFor(std::string_view address) const {
  ByteReader reader(address);
  const auto format = reader.Fixed<uint32_t>();
  const std::string_view raw = reader.Raw(reader.left());
  if (!reader.ok() || !IsAddressFor(*info_, format, raw)) {
    return Status(Code::kUnsupported, fmt::format("{}: connect: {} bytes are no address of this "
                                                  "fabric",
                                                  name(), address.size()));
  }
  FabricInfo info(library_.dupinfo(info_.get()), {&library_});
  void* destination = std::malloc(raw.size());
  if (info == nullptr || destination == nullptr) {
    std::free(destination);
    return Status(Code::kLimit, "connect over the fabric: out of memory");
  }
  std::memcpy(destination, raw.data(), raw.size());
  std::free(std::exchange(info->dest_addr, destination));
  info->dest_addrlen = raw.size();
  info->addr_format = format;
  if (options_.local_address.empty() && options_.interface.empty()) {  // the route decides
    std::free(std::exchange(info->src_addr, nullptr));
    info->src_addrlen = 0;
  }
  return info;
}

std::string FabricDomain::PeerText(const fi_info& info) const {
  const std::string_view raw(static_cast<const char*>(info.dest_addr),
                             info.dest_addr == nullptr ? 0 : info.dest_addrlen);
  const std::string text =
      IsAddressFor(info, info.addr_format, raw) ? SocketText(info.addr_format, raw) : "";
  return fmt::format("{} over {}", text.empty() ? "?" : text, provider_);
}

Result<uint64_t> FabricDomain::Add(FabricLink* link) {
  if (links_.size() >= options_.max_links) {
    return Status(Code::kLimit,
                  fmt::format("{}: {} links are open, no more are taken", name(), links_.size()));
  }
  const uint64_t id = next_link_++;
  links_.emplace(id, link);
  return id;
}

void FabricDomain::Remove(uint64_t id) { links_.erase(id); }

Result<FidPtr<fid_ep>> FabricDomain::NewEndpoint(fi_info* info, uint64_t link) {
  fid_ep* endpoint = nullptr;
  SONDE_RETURN_IF_ERROR(
      Describe("create an endpoint", fi_endpoint(domain_.get(), info, &endpoint, nullptr)));
  FidPtr<fid_ep> owner(endpoint);
  SONDE_RETURN_IF_ERROR(
      Describe("bind an endpoint to the event queue", fi_ep_bind(endpoint, &events_->fid, 0)));
  SONDE_RETURN_IF_ERROR(Describe("bind an endpoint to the completion queue",
                                 fi_ep_bind(endpoint, &completions_->fid, FI_TRANSMIT | FI_RECV)));
  SONDE_RETURN_IF_ERROR(Describe("enable an endpoint", fi_enable(endpoint)));
  endpoints_[&endpoint->fid] = link;
  return owner;
}

void FabricDomain::ForgetEndpoint(fid_ep* endpoint) { endpoints_.erase(&endpoint->fid); }

FabricLink* FabricDomain::Find(uint64_t id) const {
  const auto at = links_.find(id);
  return at == links_.end() ? nullptr : at->second;
}

FabricLink* FabricDomain::Find(const fid* endpoint) const {
  const auto at = endpoints_.find(endpoint);
  return at == endpoints_.end() ? nullptr : Find(at->second);
}

bool FabricDomain::Progress() {
  const auto self = shared_from_this();  // a handler may let go of everything
  for (int i = 0; i < kRounds; ++i) {
    const bool completed = DrainCompletions();
    const bool happened = ReadEvent();
    if (!completed && !happened) break;
  }
  if (silent_) silent_->Look();
  fid* queues[] = {&events_->fid, &completions_->fid};
  return fi_trywait(fabric_.get(), queues, 2) != -FI_EAGAIN;
}

bool FabricDomain::DrainCompletions() {
  bool any = false;
  for (int i = 0; i < kRounds; ++i) {
    fi_cq_msg_entry entries[kBatch];
    const ssize_t n = fi_cq_read(completions_.get(), entries, kBatch);
    if (n == -FI_EAVAIL) {
      OnCompletionError();
      any = true;
      continue;
    }
    if (n <= 0) break;
    any = true;
    for (ssize_t k = 0; k < n; ++k) {
      const auto context = reinterpret_cast<uintptr_t>(entries[k].op_context);
      FabricLink* link = Find(context >> 8);
      if (link != nullptr) link->OnCompletion(context & 0xff, entries[k].len);
    }
  }
  return any;
}

void FabricDomain::OnCompletionError() {
  fi_cq_err_entry error{};
  if (fi_cq_readerr(completions_.get(), &error, 0) <= 0) return;
  if (error.err == FI_ECANCELED) return;  // what follows a shutdown
  const auto context = reinterpret_cast<uintptr_t>(error.op_context);
  FabricLink* link = Find(context >> 8);
  if (link == nullptr) return;
  link->OnError((context & 0xff) < FabricLink::kReceives ? "receive" : "send", error.err);
}

bool FabricDomain::ReadEvent() {
  if (!put_off_.empty()) {
    const Event event = put_off_.front();
    put_off_.pop_front();
    OnEvent(event);
    return true;
  }
  const std::optional<Event> event = NextEvent();
  if (event) OnEvent(*event);
  return event.has_value();
}

// Requests that have come and were not looked at yet. Whoever stops listening may be within a call
// of a link, so links hear of their own events later.
void FabricDomain::RejectWaiting() {
  constexpr int kMost = 4096;  // the provider may go on accepting meanwhile
  for (int i = 0; i < kMost; ++i) {
    const std::optional<Event> event = NextEvent();
    if (!event) return;
    if (event->error == 0 && event->type == FI_CONNREQ) {
      const FabricRequest rejected(FabricInfo(event->info, {&library_}), listener_.get());
    } else {
      put_off_.push_back(*event);
    }
  }
}

std::optional<FabricDomain::Event> FabricDomain::NextEvent() {
  // Room for what a peer may send along with its request; it is not looked at.
  alignas(fi_eq_cm_entry) char bytes[sizeof(fi_eq_cm_entry) + 256];
  Event event;
  const ssize_t n = fi_eq_read(events_.get(), &event.type, bytes, sizeof bytes, 0);
  if (n == -FI_EAVAIL) {
    fi_eq_err_entry error{};
    if (fi_eq_readerr(events_.get(), &error, 0) <= 0) return std::nullopt;
    event.fid = error.fid;
    event.error = error.err;
    return event;
  }
  fi_eq_cm_entry entry;
  if (n < static_cast<ssize_t>(sizeof entry)) return std::nullopt;
  std::memcpy(&entry, bytes, sizeof entry);
  event.fid = entry.fid;
  event.info = entry.info;
  return event;
}

void FabricDomain::OnEvent(const Event& event) {
  if (event.error == 0 && event.type == FI_CONNREQ) {
    return OnConnectRequest(FabricInfo(event.info, {&library_}));
  }
  if (event.error == 0 && event.type == FI_SHUTDOWN) {
    // What arrived before the end is taken before the end.
    while (DrainCompletions()) {
    }
  }
  FabricLink* link = Find(event.fid);
  if (event.error != 0) {
    if (link != nullptr) return link->OnError("connect", event.error);
    return log::Debug("{}: {}", name(), library_.strerror(event.error));
  }
  if (link == nullptr) return;
  if (event.type == FI_CONNECTED) link->OnConnected();
  if (event.type == FI_SHUTDOWN) link->OnShutdown();
}

void FabricDomain::OnConnectRequest(FabricInfo info) {
  if (listener_ == nullptr) return;  // never: those that waited were rejected
  FabricRequest request(std::move(info), listener_.get());
  const std::string peer = PeerText(*request.info());
  if (pending_.size() >= options_.max_pending || links_.size() >= options_.max_links) {
    log::Debug("{}: rejects {}: {} links, {} pending", name(), peer, links_.size(),
               pending_.size());
    return;
  }
  auto link = FabricLink::Accept(shared_from_this(), std::move(request));
  if (!link.ok()) {
    if (accept_log_limit_.Take()) log::Warning("accept {}: {}", peer, link.status().message());
    return;
  }
  const uint64_t id = (*link)->id();
  pending_.emplace(id, *std::move(link));
}

void FabricDomain::HandOver(uint64_t link) {
  const auto at = pending_.find(link);
  if (at == pending_.end()) return;
  std::unique_ptr<FabricLink> connected = std::move(at->second);
  pending_.erase(at);
  const auto accepted = accepted_;
  if (accepted && *accepted) (*accepted)(std::move(connected));
}

void FabricDomain::DropPending(uint64_t link) { pending_.erase(link); }

}  // namespace sonde::tree
