#include "profiles/reading/counted_before.h"

#include <algorithm>
#include <cmath>

namespace sonde {

void CountedBefore::Take(uint32_t node, size_t series, std::span<const Nanos> times,
                         std::span<const double> values) {
  for (size_t row = 0; row < times.size(); ++row) {
    const Point point{times[row], values[row]};
    if (point.time >= time_ || std::isnan(point.value)) continue;
    Point& last = lasts_.try_emplace({series, node}, point).first->second;
    if (point.time > last.time) last = point;
    Point& first = firsts_.try_emplace({series, node}, point).first->second;
    if (point.time < first.time) first = point;
  }
}

void CountedBefore::Look(const Read& read, const std::function<bool(const SeriesOfNode&)>& wanted,
                         const std::function<bool(const BlockInfo&, Nanos)>& may_have,
                         const std::function<bool(Nanos, Nanos)>& ahead, Found& found) const {
  for (const Place& place : places_) {
    Columns columns = *place.columns;
    std::erase_if(columns, [&](const auto& column) {
      const SeriesOfNode of{column.second, place.key.node};
      const auto at = found.find(of);
      return !wanted(of) || (at != found.end() && !may_have(place.info, at->second.time));
    });
    if (columns.empty()) continue;
    const Result<Block> block = read(place, columns);
    if (!block.ok()) continue;
    for (size_t c = 0; c < columns.size(); ++c) {
      for (size_t row = 0; row < block->times.size(); ++row) {
        const Point point{block->times[row], block->Column(c)[row]};
        if (point.time >= time_ || std::isnan(point.value)) continue;
        const auto [at, is_new] = found.try_emplace({columns[c].second, place.key.node}, point);
        if (!is_new && ahead(point.time, at->second.time)) at->second = point;
      }
    }
  }
}

std::map<size_t, std::vector<Point>> CountedBefore::Find(const Read& read) {
  Found lasts = std::move(lasts_);
  std::stable_sort(places_.begin(), places_.end(),
                   [](const Place& a, const Place& b) { return a.info.last > b.info.last; });
  Look(
      read, [](const SeriesOfNode&) { return true; },
      [](const BlockInfo& info, Nanos last) { return info.last > last; },
      [](Nanos a, Nanos b) { return a > b; }, lasts);
  std::map<size_t, size_t> daemons;
  for (const auto& [of, last] : lasts) ++daemons[of.first];
  Found firsts;
  for (const auto& [of, first] : firsts_) {
    if (daemons[of.first] > 1) firsts.emplace(of, first);
  }
  std::stable_sort(places_.begin(), places_.end(),
                   [](const Place& a, const Place& b) { return a.info.first < b.info.first; });
  Look(
      read, [&](const SeriesOfNode& of) { return daemons[of.first] > 1; },
      [](const BlockInfo& info, Nanos first) { return info.first < first; },
      [](Nanos a, Nanos b) { return a < b; }, firsts);
  std::map<size_t, std::vector<Point>> points;
  for (const auto& [of, first] : firsts) points[of.first].push_back(first);
  for (const auto& [of, last] : lasts) {
    const auto first = firsts.find(of);
    if (first == firsts.end() || first->second.time != last.time) points[of.first].push_back(last);
  }
  return points;
}

}  // namespace sonde
