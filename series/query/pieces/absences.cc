#include "series/query/pieces/absences.h"

#include <algorithm>
#include <iterator>
#include <limits>

namespace sonde {
namespace {

constexpr Nanos kEver = std::numeric_limits<Nanos>::max();

bool BeginsBefore(const TimeRange& a, const TimeRange& b) { return a.first < b.first; }

// Those that touch put together.
std::vector<TimeRange> Apart(const std::vector<TimeRange>& sorted) {
  std::vector<TimeRange> apart;
  apart.reserve(sorted.size());
  for (const TimeRange& range : sorted) {
    if (apart.empty() || range.first > apart.back().last) {
      apart.push_back(range);
    } else {
      apart.back().last = std::max(apart.back().last, range.last);
    }
  }
  return apart;
}

}  // namespace

HostTimes::HostTimes(const std::vector<NodeInfo>& nodes, const HostNumbers& hosts) : anew_(kEver) {
  struct Host {
    TimeRange there;
    Nanos first_joined;  // of the daemon that came first
  };
  std::vector<Host> times;
  times.reserve(hosts.size());
  beside_.reserve(2 * nodes.size());
  for (size_t i = 0; i < nodes.size(); ++i) {
    const NodeInfo& node = nodes[i];
    // Beside the ticks lie the first sample of a node and its last one. The row behind them may be
    // right.
    beside_.push_back(node.joined);
    if (node.left != 0 && !node.lost) beside_.push_back(node.left);
    const Nanos left = node.left != 0 ? std::max(node.left, node.end_in_rows - 1) : kEver;
    if (hosts[i] == times.size()) {
      times.push_back({{node.joined, left}, node.joined});
      continue;
    }
    Host& host = times[hosts[i]];
    anew_ = std::min(anew_, std::max(host.first_joined, node.joined));
    host.there = {std::min(host.there.first, node.joined), std::max(host.there.last, left)};
  }
  std::sort(beside_.begin(), beside_.end());
  changes_.reserve(2 * times.size());
  for (const Host& host : times) {
    changes_.push_back({host.there.first, 1});
    if (host.there.last != kEver) changes_.push_back({host.there.last + 1, -1});
  }
  std::sort(changes_.begin(), changes_.end(),
            [](const Change& a, const Change& b) { return a.time < b.time; });
}

// From one change to the next: how many hosts are there, and how many are in the rows.
void HostTimes::AddAbsences(const std::vector<PresenceRun>& presence,
                            std::vector<TimeRange>& ranges) const {
  int64_t there = 0;
  int64_t in_rows = 0;
  Nanos since = 0;
  bool absent = true;  // before the first run nothing is known
  auto change = changes_.begin();
  auto run = presence.begin();
  while (change != changes_.end() || run != presence.end()) {
    const bool is_run =
        change == changes_.end() || (run != presence.end() && run->first < change->time);
    const Nanos time = is_run ? run->first : change->time;
    for (; change != changes_.end() && change->time == time; ++change) there += change->there;
    for (; run != presence.end() && run->first == time; ++run) in_rows = run->nodes;
    const bool now = in_rows < there || in_rows == 0;
    if (now == absent) continue;
    if (absent && time > since) ranges.push_back({since, time - 1});
    since = time;
    absent = now;
  }
  if (absent) ranges.push_back({since, kEver});
}

std::vector<TimeRange> HostTimes::Absences(const std::vector<PresenceRun>& presence, Nanos end,
                                           bool each_value) const {
  if (presence.empty()) return {{0, kEver}};
  std::vector<TimeRange> ranges;
  for (const PresenceRun& run : presence) {
    const Nanos before = std::max<Nanos>(run.first - 1, 0);
    if (run.joined > 0 || run.left > 0) ranges.push_back({before, before});
  }
  if (each_value && anew_ != kEver) ranges.push_back({anew_, kEver});
  if (end != 0) ranges.push_back({end, kEver});  // the last row is no sample
  AddAbsences(presence, ranges);
  std::sort(ranges.begin(), ranges.end(), BeginsBefore);
  std::vector<TimeRange> beside;
  beside.reserve(beside_.size());
  for (const Nanos time : beside_) beside.push_back({time, time});
  std::vector<TimeRange> all;
  all.reserve(ranges.size() + beside.size());
  std::merge(ranges.begin(), ranges.end(), beside.begin(), beside.end(), std::back_inserter(all),
             BeginsBefore);
  return Apart(all);
}

std::vector<TimeRange> AbsencesOf(const std::vector<NodeInfo>& nodes,
                                  const std::vector<PresenceRun>& presence, Nanos end,
                                  bool each_value) {
  const HostNumbers hosts(nodes, HostNumbers::Same::kNode);
  return HostTimes(nodes, hosts).Absences(presence, end, each_value);
}

}  // namespace sonde
