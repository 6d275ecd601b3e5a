#include "daemon/head/record/presence.h"

#include <algorithm>
#include <utility>

#include "profiles/model/presence.h"

namespace sonde::head {
namespace {

// The last tick before anybody was away, as far as the runs tell.
Nanos BeforeAnyAbsence(const std::vector<PresenceRun>& runs, Nanos period, Nanos newest) {
  const auto absence = std::find_if(runs.begin(), runs.end(), [](const PresenceRun& run) {
    return run.left > 0 || run.IsMixed();
  });
  if (absence == runs.end()) return newest;
  return absence == runs.begin() ? absence->first : absence->first - period;
}

}  // namespace

// --- From the head before ---

void Presence::Inherit(const JobDescription& before, Nanos newest) {
  if (before.presence.empty()) return;
  for (const PresenceRun& run : before.presence) {
    if (newest == 0 || run.first <= newest) done_.push_back(run);
  }
  if (newest == 0) {  // whatever it stored
    uncertain_ = done_.back().first;
    for (const PresenceRun& run : done_) PutTogether(run, done_.front());
    done_.resize(1);
  }
  if (done_.empty()) return;
  newest_ = newest;
  done_last_ = std::max({newest, uncertain_, done_.back().first});
  // Those that had left by then cannot have been in the newest row.
  tree::NodeSet possible;
  const auto count = static_cast<uint32_t>(before.nodes.size());
  for (uint32_t i = 0; i < count; ++i) {
    const NodeInfo& node = before.nodes[i];
    if (node.left == 0 || node.left > done_last_) possible.Add(tree::NodeSet(i));
  }
  const PresenceRun& last = done_.back();
  before_.away.assign(count, BeforeAnyAbsence(done_, period_, done_last_));
  if (!last.IsMixed() && last.nodes == possible.size()) {
    possible.ForEach([this](uint32_t node) { before_.away[node] = 0; });
    before_.nodes = std::move(possible);
  } else {
    before_.unknown = last.nodes;
  }
  changed_ = true;
}

// --- Rows ---

bool Presence::OnRow(Nanos tick, const tree::NodeSet& nodes, bool caught_up) {
  if (tick <= newest_ || tick <= uncertain_) return true;
  if (newest_ != 0 && tick > newest_ + period_) Begin(newest_ + period_, {});
  const bool others = Begin(tick, nodes, caught_up);
  rows_.push_back(tick);
  newest_ = tick;
  if (rows_.size() > kOpenRows) Settle();
  return others;
}

bool Presence::Begin(Nanos tick, const tree::NodeSet& nodes, bool caught_up) {
  if (!caught_up && !open_.empty() && open_.back().nodes == nodes) return false;
  open_.push_back({tick, nodes, caught_up});
  changed_ = true;
  return true;
}

void Presence::OnLatePart(Nanos tick, const tree::NodeSet& nodes) {
  const auto row = std::lower_bound(rows_.begin(), rows_.end(), tick);
  if (row == rows_.end() || *row != tick) return;
  const auto behind = std::upper_bound(open_.begin(), open_.end(), tick,
                                       [](Nanos t, const Run& run) { return t < run.first; });
  auto run = static_cast<size_t>(behind - open_.begin()) - 1;
  if (open_[run].nodes.HasAll(nodes)) return;
  const auto insert = [&](Nanos first) {
    Run more = {first, open_[run].nodes, false};
    open_.insert(open_.begin() + static_cast<std::ptrdiff_t>(run) + 1, std::move(more));
  };
  // The rows of its run behind it, and those before it, stay as they are.
  const auto next = row + 1;
  const bool is_last =
      next == rows_.end() || (run + 1 < open_.size() && open_[run + 1].first <= *next);
  if (!is_last) insert(*next);
  if (open_[run].first != tick) {
    insert(tick);
    ++run;
  }
  open_[run].nodes.Add(nodes);
  JoinWithNext(run);
  if (run > 0) JoinWithNext(run - 1);
  changed_ = true;
}

void Presence::JoinWithNext(size_t run) {
  if (run + 1 >= open_.size() || open_[run].nodes != open_[run + 1].nodes) return;
  if (open_[run + 1].caught_up) return;
  open_.erase(open_.begin() + static_cast<std::ptrdiff_t>(run) + 1);
}

Nanos Presence::LastTickOf(uint32_t node) const {
  for (size_t i = open_.size(); i-- > 0;) {
    if (!open_[i].nodes.Has(node)) continue;
    return i + 1 < open_.size() ? LastRowBefore(i + 1) : newest_;
  }
  if (before_.nodes.Has(node)) return done_last_;
  return node < before_.away.size() ? before_.away[node] : 0;
}

// --- Runs ---

Nanos Presence::LastRowBefore(size_t run) const {
  if (run == 0) return done_last_;
  const auto row = std::lower_bound(rows_.begin(), rows_.end(), open_[run].first);
  return row == rows_.begin() ? dropped_ : *(row - 1);
}

void Presence::Add(const Run& run, Nanos last_before, Before& before,
                   std::vector<PresenceRun>& runs) {
  const tree::NodeSet joined = run.nodes.Without(before.nodes);
  const tree::NodeSet left = before.nodes.Without(run.nodes);
  PresenceRun told;
  told.first = run.first;
  told.nodes = static_cast<uint32_t>(run.nodes.size());
  told.joined = static_cast<uint32_t>(joined.size());
  told.left = static_cast<uint32_t>(left.size()) + before.unknown;
  if (told.joined == 0 && told.left == 0 && !run.caught_up && !runs.empty()) return;
  // Behind the end are nodes that have never been away, as all are that come for the first time.
  std::vector<Nanos>& away = before.away;
  if (!away.empty()) {
    joined.ForEach([&](uint32_t node) {
      const Nanos since = node < away.size() ? std::exchange(away[node], 0) : 0;
      if (since == 0) return;
      told.back_from = told.back_from == 0 ? since : std::min(told.back_from, since);
    });
  }
  left.ForEach([&](uint32_t node) {
    if (node >= away.size()) away.resize(node + 1);
    away[node] = last_before;
  });
  before.nodes = run.nodes;
  before.unknown = 0;
  runs.push_back(told);
}

void Presence::Settle() {
  while (rows_.size() > kOpenRows) {
    dropped_ = rows_.front();
    rows_.pop_front();
    while (open_.size() > 1 && open_[1].first <= rows_.front()) {
      Add(open_[0], done_last_, before_, done_);
      LimitPresence(done_);
      done_last_ = LastRowBefore(1);
      open_.pop_front();
    }
  }
}

const std::vector<PresenceRun>& Presence::Runs() {
  if (!std::exchange(changed_, false)) return runs_;
  runs_ = done_;
  Before before = before_;
  for (size_t i = 0; i < open_.size(); ++i) Add(open_[i], LastRowBefore(i), before, runs_);
  LimitPresence(runs_);
  return runs_;
}

bool LackNodes(const std::vector<TimeRange>& absences, const std::vector<PresenceRun>& runs,
               Nanos start, Nanos end) {
  if (runs.empty()) return false;
  const Nanos from = std::max(start, runs.front().first);
  const auto first =
      std::lower_bound(absences.begin(), absences.end(), from,
                       [](const TimeRange& range, Nanos time) { return range.last < time; });
  const auto behind =
      std::upper_bound(first, absences.end(), end,
                       [](Nanos time, const TimeRange& range) { return time < range.first; });
  return std::any_of(first, behind, [](const TimeRange& absence) {
    const bool only_came_or_went = absence.first == absence.last;
    return !only_came_or_went;
  });
}

}  // namespace sonde::head
