#include "daemon/link/trust/acceptor.h"

#include <algorithm>

#include "core/log.h"
#include "daemon/link/address.h"
#include "daemon/link/send.h"
#include "daemon/link/trust/protocol.h"

namespace sonde::tree {

Acceptor::Acceptor(Loop& loop, const StepKey& key, Channel channel, Proven proven,
                   size_t max_pending)
    : loop_(loop),
      key_(key),
      channel_(std::move(channel)),
      proven_(std::move(proven)),
      max_pending_(max_pending) {}

Acceptor::~Acceptor() {
  for (const auto& [link, pending] : pending_) loop_.Cancel(pending.timer);
}

void Acceptor::Take(std::unique_ptr<Link> link) {
  if (pending_.size() >= max_pending_) MakeRoom();
  Link* raw = link.get();
  raw->SetMaxMessage(kMaxUnprovenMessage);
  raw->SetHandler(
      {.message = [this, raw](uint8_t type,
                              std::string_view payload) { OnMessage(raw, type, payload); },
       .closed = [this, raw](const Status& why) { Refuse(raw, why); }});
  const std::string host = HostOf(raw->peer());
  Network& network = networks_[NetworkOf(host)];
  ++network.size;
  Crowd& crowd = network.hosts[host];
  const auto place = crowd.insert(crowd.end(), {raw, came_++});
  const Loop::TimerId timer = loop_.After(kPatience, [this, raw] {
    Refuse(raw, Status(Code::kTimeout, "did not prove the key in time"));
  });
  pending_.emplace(
      raw, Pending{std::move(link), AcceptingHandshake(key_, channel_), host, place, timer});
}

void Acceptor::MakeRoom() {
  const auto largest =
      std::max_element(networks_.begin(), networks_.end(),
                       [](const auto& a, const auto& b) { return a.second.size < b.second.size; });
  const auto& hosts = largest->second.hosts;
  const auto crowd = std::max_element(hosts.begin(), hosts.end(), [](const auto& a, const auto& b) {
    const Crowd& x = a.second;
    const Crowd& y = b.second;
    return x.size() != y.size() ? x.size() < y.size() : x.front().number > y.front().number;
  });
  Refuse(crowd->second.front().link, Status(Code::kLimit, "too many have not proved the key yet"));
}

void Acceptor::OnMessage(Link* link, uint8_t type, std::string_view payload) {
  const auto at = pending_.find(link);
  if (at == pending_.end()) return;
  Result<HandshakeStep> step = at->second.handshake.OnMessage(type, payload);
  if (!step.ok()) {
    const bool other_release = step.status().code() == Code::kUnsupported;
    if (other_release && other_release_) other_release_(at->second.host, step.status());
    return Refuse(link, step.status());
  }
  if (step->answer) Send(*link, step->answer->type, step->answer->payload);
  if (!at->second.handshake.proven()) return;
  Pending pending = Extract(at);
  link->SetHandler({});
  std::unique_ptr<Link> proven = SealWith(*std::move(step->seals), std::move(pending.link));
  proven->SetMaxMessage(kMaxMessage);
  proven_(pending.handshake.registration(), std::move(proven));
}

void Acceptor::Refuse(Link* link, const Status& why) {
  const auto at = pending_.find(link);
  if (at == pending_.end()) return;
  ++refused_;
  if (log_limit_.Take()) {
    log::Info("connection from {} refused: {} ({} so far)", link->peer(), why.message(), refused_);
  }
  // Not from within the link's own callback.
  DestroyLater(loop_, Extract(at).link);
}

Acceptor::Pending Acceptor::Extract(Entry at) {
  Pending pending = std::move(at->second);
  pending_.erase(at);
  loop_.Cancel(pending.timer);
  const auto network = networks_.find(NetworkOf(pending.host));
  const auto crowd = network->second.hosts.find(pending.host);
  crowd->second.erase(pending.place);
  if (crowd->second.empty()) network->second.hosts.erase(crowd);
  if (--network->second.size == 0) networks_.erase(network);
  return pending;
}

}  // namespace sonde::tree
