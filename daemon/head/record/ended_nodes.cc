#include "daemon/head/record/ended_nodes.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace sonde::tree {

EndedNodes::Fate EndedNodes::Add(const FrameInfo& info, std::span<const uint32_t> columns,
                                 std::span<const Reduced> values) {
  if (ended_.Intersects(info.nodes)) {
    return ended_.HasAll(info.nodes) ? Fate::kRepeated : Fate::kOverlaps;
  }
  Part part{.when = info.tick};
  const size_t n = std::min(columns.size(), values.size());
  for (size_t i = 0; i < n; ++i) {
    if (columns[i] == SeriesUnion::kLeftOut) continue;
    part.columns.push_back(columns[i]);
    part.values.push_back(values[i]);
  }
  if (info.lost) {
    AddLost(info.nodes.first(), std::move(part));
    return Fate::kAdded;
  }
  EndLost(info.nodes, info.tick);
  ended_.Add(info.nodes);
  waiting_.push_back(std::move(part));
  return Fate::kAdded;
}

void EndedNodes::Merge(const Part& part, std::vector<Reduced>& into) {
  for (size_t i = 0; i < part.columns.size(); ++i) {
    if (part.columns[i] >= into.size()) into.resize(part.columns[i] + 1);
    into[part.columns[i]].Merge(part.values[i]);
  }
}

void EndedNodes::Settle(Nanos tick) {
  std::erase_if(waiting_, [&](const Part& part) {
    if (part.when > tick) return false;
    Merge(part, settled_);
    return true;
  });
}

// A parent that the node has left may tell of it after the next one has.
void EndedNodes::AddLost(uint32_t node, Part part) {
  std::vector<Part>& parts = lost_[node].parts;
  part.number = ++numbered_;
  const auto at = std::find_if(parts.begin(), parts.end(),
                               [&](const Part& other) { return other.when >= part.when; });
  if (at != parts.end() && at->when == part.when) {
    *at = std::move(part);
  } else {
    parts.insert(at, std::move(part));
  }
}

// What a node had before it ended counts in rows before its end that are still to come.
void EndedNodes::EndLost(const NodeSet& nodes, Nanos when) {
  for (auto& [node, lost] : lost_) {
    if (!nodes.Has(node)) continue;
    std::erase_if(lost.parts, [&](const Part& part) { return part.when >= when; });
    for (Part& part : lost.parts) part.until = when;
  }
}

// What stands in for the node in that row, if it is missing. Forgets what no later row needs: a
// node that is in a row later than its loss is back.
const EndedNodes::Part* EndedNodes::LostIn(const TickMerger::Row& row, uint32_t node,
                                           std::vector<Part>& parts) {
  const auto behind = std::find_if(parts.begin(), parts.end(),
                                   [&](const Part& part) { return part.when > row.tick; });
  if (behind == parts.begin()) return nullptr;
  const auto newest = std::prev(behind);
  const bool over = row.nodes.Has(node) || (newest->until != 0 && newest->until <= row.tick);
  parts.erase(parts.begin(), over ? behind : newest);
  return over ? nullptr : &parts.front();
}

const EndedNodes::Part* EndedNodes::Take(const TickMerger::Row& row, uint32_t node, Lost& lost) {
  const Part* part = LostIn(row, node, lost.parts);
  const uint64_t number = part == nullptr ? 0 : part->number;
  if (lost.used != 0 && lost.used != number && !row.nodes.Has(node)) {
    renewed_.push_back({node, lost.used_when});
  }
  lost.used = number;
  lost.used_when = part == nullptr ? 0 : part->when;
  return part;
}

void EndedNodes::AddTo(TickMerger::Row& row, const std::vector<Series>& series,
                       const std::vector<bool>& present) {
  Settle(row.tick);
  renewed_.clear();
  const auto add = [&](size_t column, const Reduced& value) {
    const bool is_counter = series[column].metric.type == MetricType::kCounter;
    if (!is_counter || (row.values[column].count == 0 && present[column])) return false;
    row.values[column].Merge(value);
    return value.count > 0;
  };
  const size_t n = std::min(settled_.size(), row.values.size());
  for (size_t i = 0; i < n; ++i) add(i, settled_[i]);
  if (lost_.empty()) return;
  for (auto& [node, lost] : lost_) {
    const Part* part = Take(row, node, lost);
    if (part == nullptr) continue;
    std::vector<bool> got(row.values.size());
    for (size_t i = 0; i < part->columns.size(); ++i) {
      const size_t column = part->columns[i];
      if (column < got.size() && add(column, part->values[i])) got[column] = true;
    }
    Note(node, std::move(got), stood_in_[row.tick]);
  }
  std::erase_if(lost_, [](const auto& lost) { return lost.second.parts.empty(); });
  while (stood_in_.size() > kRows) stood_in_.erase(stood_in_.begin());
}

// Nearly all nodes have the same columns.
void EndedNodes::Note(uint32_t node, std::vector<bool> columns, std::vector<StandIns>& row) {
  const auto known = std::find_if(row.begin(), row.end(), [&](const StandIns& stand_ins) {
    return stand_ins.columns == columns;
  });
  if (known != row.end()) return known->nodes.Add(NodeSet(node));
  row.push_back({std::move(columns), NodeSet(node)});
}

bool EndedNodes::StoodIn(Nanos tick, const NodeSet& nodes, std::vector<Reduced>& late) const {
  const auto row = stood_in_.find(tick);
  if (row == stood_in_.end()) return false;
  bool any = false;
  for (const StandIns& stand_ins : row->second) {
    if (!stand_ins.nodes.Intersects(nodes)) continue;
    any = true;
    for (size_t i = 0; i < late.size() && i < stand_ins.columns.size(); ++i) {
      if (stand_ins.columns[i]) late[i] = Reduced();
    }
  }
  return any;
}

void EndedNodes::Save(size_t series, const NodeSet& but,
                      const std::function<void(const Frame&)>& f) const {
  uint64_t number = 0;
  if (!ended_.empty()) {
    Frame frame;
    frame.number = ++number;
    frame.stream = Stream::kEnded;
    frame.nodes = ended_;
    frame.values = settled_;
    for (const Part& part : waiting_) {
      frame.tick = std::max(frame.tick, part.when);
      Merge(part, frame.values);
    }
    frame.values.resize(series);
    f(frame);
  }
  for (const auto& [node, lost] : lost_) {
    if (lost.parts.empty() || ended_.Has(node) || but.Has(node)) continue;
    const Part& part = lost.parts.back();
    Frame frame;
    frame.number = ++number;
    frame.tick = part.when;
    frame.stream = Stream::kEnded;
    frame.lost = true;
    frame.nodes = NodeSet(node);
    Merge(part, frame.values);
    frame.values.resize(series);
    f(frame);
  }
}

std::vector<Reduced> EndedNodes::Final(size_t series) {
  Settle(INT64_MAX);
  std::vector<Reduced> all = settled_;
  all.resize(series);
  for (const auto& [node, lost] : lost_) {
    if (!lost.parts.empty() && !ended_.Has(node)) Merge(lost.parts.back(), all);
  }
  return all;
}

}  // namespace sonde::tree
