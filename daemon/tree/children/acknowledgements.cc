#include "daemon/tree/children/acknowledgements.h"

#include <algorithm>
#include <string>
#include <utility>

#include "core/bytes.h"
#include "daemon/link/send.h"

namespace sonde::tree {

Acknowledgements::Account& Acknowledgements::Add(Link& link) {
  const uint32_t sender = next_sender_++;
  return accounts_.try_emplace(sender, link, sender).first->second;
}

void Acknowledgements::Remove(Account& account) {
  if (account.place_ != SIZE_MAX) {
    Account*& place = senders_[account.place_];
    place = senders_.back();
    place->place_ = account.place_;
    senders_.pop_back();
  }
  accounts_.erase(account.sender_);
}

Status Acknowledgements::OnFrame(Account& account, uint64_t number, bool last_values) {
  // Frames that were under way over the former link come again over this one.
  auto& pending = account.pending_;
  if (!pending.empty() && number <= pending.back().number) pending.Clear();
  if (pending.size() >= kMaxPending) return {Code::kLimit, "too many frames under way"};
  if (account.place_ == SIZE_MAX) {
    account.place_ = senders_.size();
    senders_.push_back(&account);
  }
  pending.Push() = {.number = number, .last_values = last_values};
  if (at_head()) Arrived(account, number, last_values);
  return {};
}

void Acknowledgements::Forwarded(std::span<const TickMerger::Source> sources, uint64_t number) {
  for (const TickMerger::Source& source : sources) {
    const auto at = accounts_.find(source.sender);
    if (at == accounts_.end()) continue;
    auto& pending = at->second.pending_;
    const size_t before =
        pending.CountWhile([&](const auto& frame) { return frame.number < source.number; });
    if (before == pending.size() || pending[before].number != source.number) continue;
    pending[before].sent_as = number;
    pending[before].sent = true;
  }
}

void Acknowledgements::Refuse(TickMerger::Source source) {
  const auto at = accounts_.find(source.sender);
  if (at == accounts_.end()) return;
  std::string payload;
  ByteWriter(payload).Varint(source.number);
  Send(at->second.link_, Type::kRefused, payload);
  Forwarded({&source, 1}, 0);
}

std::vector<Link*> Acknowledgements::BroughtIn(uint64_t number) const {
  std::vector<Link*> links;
  for (const auto& [sender, account] : accounts_) {
    bool has = false;
    for (size_t i = 0; i < account.pending_.size(); ++i) {
      const Account::Pending& one = account.pending_[i];
      has = has || (one.sent && one.sent_as == number);
    }
    if (has) links.push_back(&account.link_);
  }
  return links;
}

// A child waits for word of last values, and of whatever it sends once it has ended.
void Acknowledgements::Arrived(Account& account, uint64_t number, bool last_values) {
  account.acked_ = std::max(account.acked_, number);
  if (last_values || account.ended_) account.awaited_ = account.acked_;
}

void Acknowledgements::TakeOffArrived(Account& account) const {
  while (!account.pending_.empty()) {
    const Account::Pending& first = account.pending_.front();
    if (!first.sent || first.sent_as > acknowledged_) break;
    if (at_head()) {
      account.in_rows_ = first.number;
    } else {
      Arrived(account, first.number, first.last_values);
    }
    account.pending_.PopFront();
  }
}

// A child that waits for word gets it without waiting for the pulse.
void Acknowledgements::Settle(Account& account) {
  TakeOffArrived(account);
  const bool much = account.acked_ >= account.told_ + kMaxUntold;
  if (much || account.awaited_ > account.told_) Tell(account);
}

void Acknowledgements::Pulse(Account& account) {
  TakeOffArrived(account);
  Tell(account);
}

void Acknowledgements::Tell(Account& account) const {
  account.told_ = account.acked_;
  std::string payload;
  ByteWriter w(payload);
  w.Varint(account.acked_);
  if (at_head()) w.Varint(account.safe_);
  Send(account.link_, Type::kAck, payload);
}

void Acknowledgements::BeginSafe() {
  for (Account* account : senders_) {
    TakeOffArrived(*account);
    account->marked_ = account->in_rows_;
  }
}

void Acknowledgements::EndSafe() {
  for (Account* account : senders_) account->safe_ = account->marked_;
}

void Acknowledgements::Acknowledged(uint64_t number) {
  acknowledged_ = std::max(acknowledged_, number);
  for (auto& [sender, account] : accounts_) Settle(account);
}

}  // namespace sonde::tree
