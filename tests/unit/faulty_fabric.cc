#include "tests/unit/faulty_fabric.h"

#include <gtest/gtest.h>
#include <rdma/fi_errno.h>

#include <algorithm>

namespace sonde::tree {
namespace {

FaultyFabric* the_one = nullptr;

}  // namespace

FaultyFabric::FaultyFabric(Loop& loop, uint32_t seed)
    : loop_(loop), random_(seed), library_(**FabricLibrary::Load()) {
  EXPECT_EQ(the_one, nullptr);
  the_one = this;
  open_fabric_ = library_.fabric;
  library_.fabric = OpenFabric;
}

FaultyFabric::~FaultyFabric() { the_one = nullptr; }

int FaultyFabric::OpenFabric(fi_fabric_attr* attr, fid_fabric** fabric, void* context) {
  const int rc = the_one->open_fabric_(attr, fabric, context);
  if (rc != 0 || the_one->originals_.contains((*fabric)->ops)) return rc;
  (*fabric)->ops = the_one->Replace((*fabric)->ops, [](fi_ops_fabric& ops) {
    ops.domain = OpenDomain;
    ops.trywait = TryWait;
  });
  return rc;
}

int FaultyFabric::OpenDomain(fid_fabric* fabric, fi_info* info, fid_domain** domain,
                             void* context) {
  const int rc = the_one->Original(fabric->ops)->domain(fabric, info, domain, context);
  if (rc != 0) return rc;
  (*domain)->ops = the_one->Replace((*domain)->ops, [](fi_ops_domain& ops) {
    ops.av_open = OpenAddresses;
    ops.cq_open = OpenQueue;
    ops.endpoint = OpenEndpoint;
  });
  return rc;
}

int FaultyFabric::OpenQueue(fid_domain* domain, fi_cq_attr* attr, fid_cq** queue, void* context) {
  const int rc = the_one->Original(domain->ops)->cq_open(domain, attr, queue, context);
  if (rc != 0) return rc;
  the_one->queues_[domain] = *queue;
  the_one->made_up_.erase(*queue);
  (*queue)->ops = the_one->Replace((*queue)->ops, [](fi_ops_cq& ops) {
    ops.read = Read;
    ops.readerr = ReadError;
  });
  return rc;
}

int FaultyFabric::OpenAddresses(fid_domain* domain, fi_av_attr* attr, fid_av** addresses,
                                void* context) {
  const int rc = the_one->Original(domain->ops)->av_open(domain, attr, addresses, context);
  if (rc != 0) return rc;
  the_one->addresses_[domain] = *addresses;
  (*addresses)->ops = the_one->Replace((*addresses)->ops, [](fi_ops_av& ops) {
    ops.insert = InsertAddresses;
    ops.remove = RemoveAddresses;
  });
  return rc;
}

int FaultyFabric::InsertAddresses(fid_av* addresses, const void* raw, size_t count,
                                  fi_addr_t* which, uint64_t flags, void* context) {
  const int n =
      the_one->Original(addresses->ops)->insert(addresses, raw, count, which, flags, context);
  for (int i = 0; i < n; ++i) ++the_one->inserted_[{addresses, which[i]}];
  return n;
}

// Providers do not look whether an address is one of theirs.
int FaultyFabric::RemoveAddresses(fid_av* addresses, fi_addr_t* which, size_t count,
                                  uint64_t flags) {
  for (size_t i = 0; i < count; ++i) --the_one->inserted_[{addresses, which[i]}];
  for (auto& [context, held] : the_one->held_) {
    const auto at = the_one->endpoints_.find(held->endpoint);
    if (at == the_one->endpoints_.end() || at->second.addresses != addresses) continue;
    if (the_one->inserted_[{addresses, held->to}] == 0) held->endpoint = nullptr;
  }
  return the_one->Original(addresses->ops)->remove(addresses, which, count, flags);
}

int FaultyFabric::OpenEndpoint(fid_domain* domain, fi_info* info, fid_ep** endpoint,
                               void* context) {
  if (the_one->no_endpoints) return -FI_ENOMEM;
  const int rc = the_one->Original(domain->ops)->endpoint(domain, info, endpoint, context);
  if (rc != 0) return rc;
  // Endpoints with connections have no addresses.
  const auto addresses = the_one->addresses_.find(domain);
  the_one->endpoints_[*endpoint] = {
      the_one->queues_.at(domain),
      addresses == the_one->addresses_.end() ? nullptr : addresses->second};
  (*endpoint)->msg = the_one->Replace((*endpoint)->msg, [](fi_ops_msg& ops) { ops.send = Send; });
  (*endpoint)->fid.ops =
      the_one->Replace((*endpoint)->fid.ops, [](fi_ops& ops) { ops.close = CloseEndpoint; });
  return rc;
}

int FaultyFabric::CloseEndpoint(fid* endpoint) {
  the_one->endpoints_.erase(reinterpret_cast<fid_ep*>(endpoint));
  return the_one->Original(endpoint->ops)->close(endpoint);
}

int FaultyFabric::TryWait(fid_fabric* fabric, fid** fids, int count) {
  const bool made_up = std::any_of(fids, fids + count, [](fid* one) {
    const auto at = the_one->made_up_.find(reinterpret_cast<fid_cq*>(one));
    return at != the_one->made_up_.end() && !at->second.empty();
  });
  return made_up ? -FI_EAGAIN : the_one->Original(fabric->ops)->trywait(fabric, fids, count);
}

ssize_t FaultyFabric::Send(fid_ep* endpoint, const void* bytes, size_t size, void* description,
                           fi_addr_t to, void* context) {
  FaultyFabric& self = *the_one;
  const auto complete = [&] {
    self.made_up_[self.endpoints_.at(endpoint).queue].push_back(context);
  };
  if (self.Chance(self.faults.lost)) {
    ++self.lost;
    complete();
    return 0;
  }
  if (self.Chance(self.faults.late)) {
    ++self.late;
    self.Hold(endpoint, to, bytes, size);
    complete();
    return 0;
  }
  const ssize_t rc =
      self.Original(endpoint->msg)->send(endpoint, bytes, size, description, to, context);
  if (rc == 0 && self.Chance(self.faults.twice)) {
    ++self.twice;
    self.Hold(endpoint, to, bytes, size);
  }
  return rc;
}

void FaultyFabric::Hold(fid_ep* endpoint, fi_addr_t to, const void* bytes, size_t size) {
  auto held = std::make_unique<Held>(
      Held{{}, endpoint, to, std::string(static_cast<const char*>(bytes), size)});
  Held* const at = held.get();
  held_[&at->context] = std::move(held);
  const Nanos wait = std::uniform_int_distribution<Nanos>(0, faults.latest)(random_);
  ++waiting_;
  loop_.After(wait, [this, at, alive = std::weak_ptr<char>(alive_)] {
    if (alive.expired()) return;
    --waiting_;
    SendHeld(at);
  });
}

void FaultyFabric::SendHeldIn(Nanos wait, Held* held) {
  loop_.After(wait, [this, held, alive = std::weak_ptr<char>(alive_)] {
    if (!alive.expired()) SendHeld(held);
  });
}

// Nothing to an address that the domain has let go of meanwhile.
void FaultyFabric::SendHeld(Held* held) {
  if (!endpoints_.contains(held->endpoint)) return;
  const ssize_t rc = Original(held->endpoint->msg)
                         ->send(held->endpoint, held->bytes.data(), held->bytes.size(), nullptr,
                                held->to, &held->context);
  if (rc == -FI_EAGAIN) SendHeldIn(kMillisecond, held);
}

ssize_t FaultyFabric::Read(fid_cq* queue, void* into, size_t count) {
  FaultyFabric& self = *the_one;
  auto* entries = static_cast<fi_cq_msg_entry*>(into);
  const ssize_t n = self.Original(queue->ops)->read(queue, into, count);
  if (n < 0 && n != -FI_EAGAIN) return n;
  auto* const end = std::remove_if(
      entries, entries + std::max<ssize_t>(n, 0),
      [&](const fi_cq_msg_entry& entry) { return self.held_.erase(entry.op_context) > 0; });
  auto taken = static_cast<size_t>(end - entries);
  std::vector<void*>& made_up = self.made_up_[queue];
  for (; taken < count && !made_up.empty(); ++taken) {
    entries[taken] = {made_up.front(), FI_SEND, 0};
    made_up.erase(made_up.begin());
  }
  return taken > 0 ? static_cast<ssize_t>(taken) : -FI_EAGAIN;
}

ssize_t FaultyFabric::ReadError(fid_cq* queue, fi_cq_err_entry* into, uint64_t flags) {
  const ssize_t n = the_one->Original(queue->ops)->readerr(queue, into, flags);
  return n > 0 && the_one->held_.erase(into->op_context) > 0 ? -FI_EAGAIN : n;
}

}  // namespace sonde::tree
