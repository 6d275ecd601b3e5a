// The peers of an RdmDomain: its address vector, and who may leave it when.
#include <fmt/core.h>

#include <algorithm>

#include "core/bytes.h"
#include "daemon/link/libfabric/fabric_info.h"
#include "daemon/link/libfabric/rdm_domain.h"

namespace sonde::tree {
std::string RdmDomain::PeerText(std::string_view address) const {
  ByteReader reader(address);
  const auto format = reader.Fixed<uint32_t>();
  const std::string_view raw = reader.Raw(reader.left());
  std::string text = SocketText(format, raw);
  if (text.empty()) {
    char bytes[256] = {};
    size_t size = sizeof bytes - 1;
    if (fi_av_straddr(addresses_.get(), raw.data(), bytes, &size) != nullptr) text = bytes;
  }
  return fmt::format("{} over {}", text.empty() ? "?" : text, provider_);
}

// `address` as in a hello.
Result<uint32_t> RdmDomain::AddPeer(std::string_view address) {
  ByteReader reader(address);
  const auto format = reader.Fixed<uint32_t>();
  const std::string_view raw = reader.Raw(reader.left());
  if (!reader.ok() || raw.size() > kMaxFabricAddress || !IsAddressFor(*info_, format, raw)) {
    return Status(Code::kInvalid, "no address of this fabric");
  }
  if (peers_.size() >= MostPeers()) ForgetOldest();
  if (peers_.size() >= MostPeers()) {
    return Status(Code::kLimit, fmt::format("{}: too many peers", name()));
  }
  const Result<Known::value_type*> known = Insert(raw);
  if (!known.ok()) return known.status();
  ++(*known)->second.peers;
  const uint32_t id = next_peer_++;
  peers_.emplace(id, Peer{.address = *known});
  return id;
}

Result<RdmDomain::Known::value_type*> RdmDomain::Insert(std::string_view raw) {
  const auto [at, added] = known_.try_emplace(std::string(raw));
  if (!added) return &*at;
  // Providers read as much as their own addresses have.
  if (fi_av_insert(addresses_.get(), raw.data(), 1, &at->second.number, 0, nullptr) == 1)
    return &*at;
  known_.erase(at);
  return Status(Code::kIo, fmt::format("{}: takes no such address", name()));
}

void RdmDomain::Retire(uint32_t id, const std::optional<RdmPacket>& last) {
  const auto at = peers_.find(id);
  if (at == peers_.end()) return;
  at->second.retired = true;
  at->second.last = last;
  at->second.until = Clock::System().Monotonic() + kFarewellLimit;
  tidy_wait_ = kPollMin;
  Tidy();
}

RdmDomain::PeerAt RdmDomain::Forget(PeerAt at) {
  abandoned_ += at->second.under_way;
  Address& address = at->second.address->second;
  if (--address.peers == 0) {
    fi_av_remove(addresses_.get(), &address.number, 1, 0);
    known_.erase(at->second.address->first);
  }
  return peers_.erase(at);
}

// For want of room, forgets a retired peer to which the last word has not been sent.
void RdmDomain::ForgetOldest() {
  auto oldest = peers_.end();
  for (auto at = peers_.begin(); at != peers_.end(); ++at) {
    if (!at->second.retired) continue;
    if (oldest == peers_.end() || at->second.until < oldest->second.until) oldest = at;
  }
  if (oldest != peers_.end()) Forget(oldest);
}

// Lets go of retired peers whose packets are sent, or will never be.
void RdmDomain::Tidy() {
  bool wait = false;
  for (auto at = peers_.begin(); at != peers_.end();) {
    Peer& peer = at->second;
    if (peer.retired && peer.last) {
      const RdmPacket last = *peer.last;
      const Result<bool> sent = Send(at->first, last);
      if (!sent.ok() || *sent) peer.last.reset();
    }
    const bool done = !peer.last && peer.under_way == 0;
    if (peer.retired && (done || Clock::System().Monotonic() > peer.until)) {
      at = Forget(at);
      continue;
    }
    wait = wait || peer.retired;
    ++at;
  }
  if (!wait || tidy_timer_ != 0 || loop_ == nullptr) return;
  tidy_wait_ = std::min(2 * tidy_wait_, kPollMax);
  tidy_timer_ = loop_->After(tidy_wait_, [this] {
    tidy_timer_ = 0;
    Tidy();
  });
}

}  // namespace sonde::tree
