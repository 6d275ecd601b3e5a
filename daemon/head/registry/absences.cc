#include "daemon/head/registry/absences.h"

#include <algorithm>
#include <utility>

namespace sonde::head {

void Absences::Add(uint32_t node, std::string why, Nanos limit) {
  const Nanos until = Clock::System().Monotonic() + limit;
  away_[node] = {until, std::move(why), clock_.Now()};
  in_time_.emplace(until, node);
  latest_ = std::max(latest_, until);
  Schedule();
}

// The timer stays: it may find nobody.
void Absences::Remove(uint32_t node) {
  constexpr size_t kFew = 64;
  away_.erase(node);
  if (in_time_.size() > 2 * away_.size() + kFew) {  // of nodes that come and go
    Queue queue;
    for (const auto& [away, absence] : away_) queue.emplace(absence.until, away);
    in_time_.swap(queue);
  }
}

std::optional<Absences::Overdue> Absences::Of(uint32_t node) const {
  const auto found = away_.find(node);
  if (found == away_.end()) return std::nullopt;
  return Overdue{node, found->second.why, found->second.since};
}

void Absences::Hurry(Nanos limit) {
  const Nanos until = Clock::System().Monotonic() + limit;
  if (latest_ <= until) return;
  latest_ = until;
  for (auto& [node, absence] : away_) {
    if (absence.until <= until) continue;
    absence.until = until;
    in_time_.emplace(until, node);
  }
  Schedule();
}

// From the front: absences that ended, or are due at another time by now.
void Absences::DropOver() {
  while (!in_time_.empty()) {
    const auto& [until, node] = in_time_.top();
    const auto at = away_.find(node);
    if (at != away_.end() && at->second.until == until) return;
    in_time_.pop();
  }
}

std::vector<Absences::Overdue> Absences::TakeUntil(Nanos time) {
  std::vector<Overdue> taken;
  for (DropOver(); !in_time_.empty() && in_time_.top().first <= time; DropOver()) {
    auto entry = away_.extract(in_time_.top().second);
    in_time_.pop();
    taken.push_back({entry.key(), std::move(entry.mapped().why), entry.mapped().since});
  }
  std::sort(taken.begin(), taken.end(),
            [](const Overdue& a, const Overdue& b) { return a.node < b.node; });
  return taken;
}

void Absences::Schedule() {
  DropOver();
  if (in_time_.empty()) return;
  const Nanos next = in_time_.top().first;
  if (timer_ != 0 && armed_ <= next) return;  // when it is due it looks again
  loop_.Cancel(timer_);
  armed_ = next;
  timer_ = loop_.At(next, [this] {
    timer_ = 0;
    const std::vector<Overdue> overdue = TakeUntil(Clock::System().Monotonic());
    Schedule();
    owner_.OnOverdue(overdue);
  });
}

}  // namespace sonde::head
