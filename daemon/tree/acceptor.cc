#include "daemon/tree/acceptor.h"

#include "core/log.h"

namespace sonde::tree {

Acceptor::Acceptor(Loop& loop, const StepKey& key, Proven proven)
    : loop_(loop), key_(key), proven_(std::move(proven)) {}

Acceptor::~Acceptor() {
  for (const auto& [link, pending] : pending_) loop_.Cancel(pending.timer);
}

void Acceptor::Take(std::unique_ptr<Link> link) {
  if (pending_.size() >= kMaxPending) return;  // closed with its owner
  Link* raw = link.get();
  raw->SetMaxMessage(kMaxUnprovenMessage);
  raw->SetHandler(
      {.message = [this, raw](uint8_t type,
                              std::string_view payload) { OnMessage(raw, type, payload); },
       .closed = [this, raw](const Status& why) { Refuse(raw, why); }});
  Pending& pending =
      pending_.emplace(raw, Pending{std::move(link), AcceptingHandshake(key_)}).first->second;
  pending.timer = loop_.After(kPatience, [this, raw] {
    Refuse(raw, Status(Code::kTimeout, "did not prove the key in time"));
  });
}

void Acceptor::OnMessage(Link* link, uint8_t type, std::string_view payload) {
  const auto at = pending_.find(link);
  if (at == pending_.end()) return;
  const Result<std::string> answer = at->second.handshake.OnMessage(type, payload);
  if (!answer.ok()) return Refuse(link, answer.status());
  if (!at->second.handshake.proven()) {
    Send(*link, Type::kChallenge, *answer);
    return;
  }
  Pending pending = std::move(at->second);
  pending_.erase(at);
  loop_.Cancel(pending.timer);
  link->SetMaxMessage(kMaxMessage);
  link->SetHandler({});
  proven_(pending.handshake.registration(), std::move(pending.link));
}

void Acceptor::Refuse(Link* link, const Status& why) {
  const auto at = pending_.find(link);
  if (at == pending_.end()) return;
  ++refused_;
  const Nanos now = Clock::System().Monotonic();
  if (now - last_log_ >= kSecond) {
    last_log_ = now;
    log::Info("connection from {} refused: {} ({} so far)", link->peer(), why.message(), refused_);
  }
  loop_.Cancel(at->second.timer);
  // Not from within the link's own callback.
  loop_.Post([keep = std::shared_ptr<Link>(std::move(at->second.link))] {});
  pending_.erase(at);
}

}  // namespace sonde::tree
