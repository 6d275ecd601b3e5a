#include "daemon/head/registry/succession.h"

#include <string>
#include <utility>

namespace sonde::head {

using tree::Type;

Succession::Succession(Loop& loop, Nanos after, Send send, Standing standing)
    : loop_(loop), send_(std::move(send)), on_standing_(std::move(standing)) {
  begin_timer_ = loop_.After(after, [this] {
    begin_timer_ = 0;
    begun_ = true;
    Choose();
  });
}

Succession::~Succession() {
  loop_.Cancel(begin_timer_);
  loop_.Cancel(tell_timer_);
}

void Succession::Add(uint32_t node) {
  there_.insert(node);
  asked_.erase(node);  // whatever it was asked before it went away
  unable_.erase(node);
  if (const auto back = away_.extract(node); !back.empty()) on_standing_(back.mapped(), false);
  if (!begun_) return;
  if (!told_.empty()) Tell(node);
  Choose();
}

void Succession::Remove(uint32_t node, bool done) {
  there_.erase(node);
  asked_.erase(node);
  unable_.erase(node);
  if (const auto stood = standing_.extract(node); !stood.empty()) {
    TellSoon();
    if (!done && on_standing_) {
      away_[node] = stood.mapped();
      on_standing_(stood.mapped(), true);
    }
  }
  if (begun_) Choose();
}

void Succession::Choose() {
  size_t chosen = 0;
  size_t passed = 0;
  for (const uint32_t node : there_) {
    if (unable_.contains(node) && ++passed <= kMostUnable) continue;
    if (chosen++ == kSuccessors) break;
    if (asked_.insert(node).second) send_(node, Type::kStandby, "");
  }
}

void Succession::OnStandingBy(uint32_t node, std::string_view payload) {
  tree::StandingBy answer;
  if (!Decode(payload, answer).ok() || !asked_.contains(node)) return;
  if (answer.port == 0) {
    if (unable_.insert(node).second) Choose();
    return;
  }
  standing_[node] = {node, answer.host, answer.port};
  TellSoon();
}

// The acting head stays the first, also when another node tells later that it stands by.
tree::Successors Succession::List() const {
  tree::Successors list;
  if (acting_) list.places.push_back(*acting_);
  size_t standing = 0;
  for (const auto& [node, place] : standing_) {
    if (standing++ == kSuccessors) break;
    if (!acting_ || node != acting_->index) list.places.push_back(place);
  }
  return list;
}

void Succession::TellOf(const tree::Place& acting) {
  acting_ = acting;
  loop_.Cancel(std::exchange(tell_timer_, 0));
  TellAll();
}

void Succession::TellAll() {
  std::string text = Encode(List());
  if (text == told_) return;
  told_ = std::move(text);
  for (const uint32_t node : there_) Tell(node);
}

void Succession::Tell(uint32_t node) { send_(node, Type::kSuccessors, told_); }

void Succession::TellSoon() {
  if (tell_timer_ != 0) return;
  tell_timer_ = loop_.After(kDelay, [this] {
    tell_timer_ = 0;
    TellAll();
  });
}

}  // namespace sonde::head
