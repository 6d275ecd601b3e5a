#include "daemon/head/registry/absences.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace sonde::head {

void Absences::Add(uint32_t node, std::string why, Nanos limit) {
  const auto [at, added] = away_.try_emplace(node);
  if (!added) in_time_.erase({at->second.until, node});
  at->second = {Clock::System().Monotonic() + limit, std::move(why), clock_.Now()};
  in_time_.emplace(at->second.until, node);
  Schedule();
}

// The timer stays: it may find nobody.
void Absences::Remove(uint32_t node) {
  const auto at = away_.find(node);
  if (at == away_.end()) return;
  in_time_.erase({at->second.until, node});
  away_.erase(at);
}

std::optional<Absences::Overdue> Absences::Of(uint32_t node) const {
  const auto found = away_.find(node);
  if (found == away_.end()) return std::nullopt;
  return Overdue{node, found->second.why, found->second.since};
}

void Absences::Hurry(Nanos limit) {
  const Nanos until = Clock::System().Monotonic() + limit;
  while (!in_time_.empty() && in_time_.rbegin()->first > until) {
    const uint32_t node = in_time_.rbegin()->second;
    in_time_.erase(std::prev(in_time_.end()));
    away_[node].until = until;
    in_time_.emplace(until, node);
  }
  Schedule();
}

std::vector<Absences::Overdue> Absences::TakeUntil(Nanos time) {
  std::vector<Overdue> taken;
  while (!in_time_.empty() && in_time_.begin()->first <= time) {
    auto entry = away_.extract(in_time_.begin()->second);
    in_time_.erase(in_time_.begin());
    taken.push_back({entry.key(), std::move(entry.mapped().why), entry.mapped().since});
  }
  std::sort(taken.begin(), taken.end(),
            [](const Overdue& a, const Overdue& b) { return a.node < b.node; });
  return taken;
}

void Absences::Schedule() {
  if (in_time_.empty()) return;
  const Nanos next = in_time_.begin()->first;
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
