#include "daemon/head/registry/absences.h"

#include <algorithm>
#include <utility>

namespace sonde::head {

void Absences::Add(uint32_t node, std::string why, Nanos limit) {
  away_[node] = {Clock::System().Monotonic() + limit, std::move(why), clock_.Now()};
  Schedule();
}

// The timer stays: when it finds nobody, that costs less than to look at all who are away here.
void Absences::Remove(uint32_t node) { away_.erase(node); }

std::optional<Absences::Overdue> Absences::Of(uint32_t node) const {
  const auto found = away_.find(node);
  if (found == away_.end()) return std::nullopt;
  return Overdue{node, found->second.why, found->second.since};
}

void Absences::Hurry(Nanos limit) {
  const Nanos until = Clock::System().Monotonic() + limit;
  for (auto& [node, absence] : away_) absence.until = std::min(absence.until, until);
  Schedule();
}

std::vector<Absences::Overdue> Absences::TakeUntil(Nanos time) {
  std::vector<Overdue> taken;
  std::erase_if(away_, [&](auto& entry) {
    if (entry.second.until > time) return false;
    taken.push_back({entry.first, std::move(entry.second.why), entry.second.since});
    return true;
  });
  return taken;
}

void Absences::Schedule() {
  loop_.Cancel(std::exchange(timer_, 0));
  Nanos next = INT64_MAX;
  for (const auto& [node, absence] : away_) next = std::min(next, absence.until);
  if (next == INT64_MAX) return;
  timer_ = loop_.At(next, [this] {
    timer_ = 0;
    const std::vector<Overdue> overdue = TakeUntil(Clock::System().Monotonic());
    Schedule();
    owner_.OnOverdue(overdue);
  });
}

}  // namespace sonde::head
