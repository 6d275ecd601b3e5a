#include "daemon/head/registry/succession.h"

#include <string>
#include <utility>

#include "core/bytes.h"

namespace sonde::head {

using tree::Type;

Succession::Succession(Loop& loop, Nanos after, Send send, IsEarlier is_earlier)
    : loop_(loop), send_(std::move(send)), is_earlier_(std::move(is_earlier)) {
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
  if (!begun_) return;
  if (!told_.empty()) Tell(node);
  Choose();
}

void Succession::Remove(uint32_t node) {
  there_.erase(node);
  asked_.erase(node);
  unable_.erase(node);
  if (standing_.erase(node) > 0) TellSoon();
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

std::string Succession::List() {
  tree::Successors list;
  told_earlier_.clear();
  for (const auto& [node, place] : standing_) {
    if (list.places.size() == kSuccessors) break;
    list.places.push_back(place);
    if (is_earlier_(node)) told_earlier_.push_back(node);
  }
  return Encode(list);
}

void Succession::Tell(uint32_t node) {
  for (const uint32_t one : told_earlier_) {
    std::string earlier;
    ByteWriter(earlier).Varint(one);
    send_(node, Type::kEarlier, earlier);
  }
  send_(node, Type::kSuccessors, told_);
}

void Succession::TellSoon() {
  if (tell_timer_ != 0) return;
  tell_timer_ = loop_.After(kDelay, [this] {
    tell_timer_ = 0;
    if (std::string list = List(); list != told_) {
      told_ = std::move(list);
      for (const uint32_t node : there_) Tell(node);
    }
  });
}

}  // namespace sonde::head
