#include "series/query/pieces/absences.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <utility>

namespace sonde {
namespace {

constexpr Nanos kEver = std::numeric_limits<Nanos>::max();

using Hosts = std::map<std::pair<std::string, std::string>, TimeRange>;  // by job and name

// From when to when nodes of that host are there.
Hosts HostsOf(const std::vector<NodeInfo>& nodes) {
  Hosts hosts;
  for (const NodeInfo& node : nodes) {
    const Nanos left = node.left != 0 ? std::max(node.left, node.end_in_rows - 1) : kEver;
    const auto [at, is_new] =
        hosts.try_emplace({node.job, node.host}, TimeRange{node.joined, left});
    if (is_new) continue;
    at->second.first = std::min(at->second.first, node.joined);
    at->second.last = std::max(at->second.last, left);
  }
  return hosts;
}

// How many are in the rows, and how many are there, from one change to the next.
struct Change {
  int64_t there = 0;  // more than before
  int64_t rows = -1;  // in the rows; -1: as before
};

std::map<Nanos, Change> ChangesOf(const std::vector<NodeInfo>& nodes,
                                  const std::vector<PresenceRun>& presence) {
  std::map<Nanos, Change> changes;
  for (const auto& [name, range] : HostsOf(nodes)) {
    ++changes[range.first].there;
    if (range.last != kEver) --changes[range.last + 1].there;
  }
  for (const PresenceRun& run : presence) changes[run.first].rows = run.nodes;
  return changes;
}

// Beside the ticks lie the first sample of a node and its last one. The row behind them may be
// right.
void AddComingAndGoing(const std::vector<NodeInfo>& nodes, const std::vector<PresenceRun>& presence,
                       std::vector<TimeRange>& ranges) {
  const auto add = [&](Nanos time) { ranges.push_back({time, time}); };
  for (const NodeInfo& node : nodes) {
    add(node.joined);
    if (node.left != 0 && !node.lost) add(node.left);
  }
  for (const PresenceRun& run : presence) {
    if (run.joined > 0 || run.left > 0) add(std::max<Nanos>(run.first - 1, 0));
  }
}

// From when on a host has a second daemon; kEver: no host has.
Nanos FirstStartedAnew(const std::vector<NodeInfo>& nodes) {
  Nanos first = kEver;
  std::map<std::pair<std::string, std::string>, Nanos> hosts;
  for (const NodeInfo& node : nodes) {
    const auto [at, is_new] = hosts.try_emplace({node.job, node.host}, node.joined);
    if (!is_new) first = std::min(first, std::max(at->second, node.joined));
  }
  return first;
}

// Sorted, and those that touch put together.
std::vector<TimeRange> Apart(std::vector<TimeRange> ranges) {
  std::sort(ranges.begin(), ranges.end(),
            [](const TimeRange& a, const TimeRange& b) { return a.first < b.first; });
  std::vector<TimeRange> apart;
  for (const TimeRange& range : ranges) {
    if (apart.empty() || range.first > apart.back().last) {
      apart.push_back(range);
    } else {
      apart.back().last = std::max(apart.back().last, range.last);
    }
  }
  return apart;
}

}  // namespace

std::vector<TimeRange> AbsencesOf(const std::vector<NodeInfo>& nodes,
                                  const std::vector<PresenceRun>& presence, Nanos end,
                                  bool each_value) {
  if (presence.empty()) return {{0, kEver}};
  std::vector<TimeRange> ranges;
  AddComingAndGoing(nodes, presence, ranges);
  const Nanos anew = each_value ? FirstStartedAnew(nodes) : kEver;
  if (anew != kEver) ranges.push_back({anew, kEver});
  if (end != 0) ranges.push_back({end, kEver});  // the last row is no sample
  int64_t there = 0;
  int64_t in_rows = 0;
  Nanos since = 0;
  bool absent = true;  // before the first run nothing is known
  for (const auto& [time, change] : ChangesOf(nodes, presence)) {
    there += change.there;
    if (change.rows >= 0) in_rows = change.rows;
    const bool now = in_rows < there || in_rows == 0;
    if (now == absent) continue;
    if (absent && time > since) ranges.push_back({since, time - 1});
    since = time;
    absent = now;
  }
  if (absent) ranges.push_back({since, kEver});
  return Apart(std::move(ranges));
}

}  // namespace sonde
