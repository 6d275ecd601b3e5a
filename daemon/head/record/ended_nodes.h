// What nodes that have ended leave in the step's totals: their counters as they were at the end.
//
// For a node that is lost, or missing from rows, these are the values that last arrived; when it is
// back, its own word counts again.
//
// Thread safety: none. Allocates nothing per row while nobody ends.
#pragma once

#include <functional>
#include <map>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "daemon/tree/frame.h"
#include "daemon/tree/tick_merger.h"
#include "series/block/schema.h"

namespace sonde::tree {

class EndedNodes {
 public:
  enum class Fate {
    kAdded,
    kRepeated,  // all of the nodes had said theirs before
    kOverlaps,  // some had; nothing was added
  };
  // Last values, by the columns of the step's series; of SeriesUnion::kLeftOut nothing is kept.
  Fate Add(const FrameInfo& info, std::span<const uint32_t> columns,
           std::span<const Reduced> values);
  // Whether anything is known of its end.
  bool Has(uint32_t node) const {
    const auto lost = lost_.find(node);
    return ended_.Has(node) || (lost != lost_.end() && !lost->second.parts.empty());
  }

  // Adds the counters of nodes that had ended by this row's tick and are not in it themselves.
  // Nothing is added to a column that a node still there could have (`present`) and has not this
  // time: metrics that are not sampled at every tick would else fall, between, to the counters of
  // the ended nodes.
  void AddTo(TickMerger::Row& row, const std::vector<Series>& series,
             const std::vector<bool>& present);
  // Absent nodes for which the last AddTo took other values than the AddTo before, and the tick
  // from which on those before had counted. If rows have newer values of the node than those were,
  // the row's totals rise by what had been counted already.
  struct Renewed {
    uint32_t node;
    Nanos when;
  };
  const std::vector<Renewed>& renewed() const { return renewed_; }
  // Whether a row of that tick got values of some of these nodes as lost ones. Takes out of `late`,
  // the values of a late part of that tick, the counters that the row has of these nodes: such a
  // counter would count twice.
  bool StoodIn(Nanos tick, const NodeSet& nodes, std::vector<Reduced>& late) const;
  // Calls `f` with each frame that another one has to Add to know the same, by the columns of the
  // step's series. Lost nodes that are in `but` are left out.
  void Save(size_t series, const NodeSet& but, const std::function<void(const Frame&)>& f) const;
  // All of them, as the whole step's last values.
  std::vector<Reduced> Final(size_t series);

 private:
  struct Part {
    Nanos when;
    std::vector<uint32_t> columns;
    std::vector<Reduced> values;  // as many
    Nanos until = 0;  // of a lost one: when the node's own last values begin to count; 0: not known
    uint64_t number = 0;  // of a lost one, from 1 on
  };
  struct Lost {
    // In the order of time: a node may be missing several times before the rows are made which it
    // is missing from.
    std::vector<Part> parts;
    // The part that the newest row has; 0: none.
    uint64_t used = 0;
    Nanos used_when = 0;
  };
  static void Merge(const Part& part, std::vector<Reduced>& into);
  void Settle(Nanos tick);
  void AddLost(uint32_t node, Part part);
  void EndLost(const NodeSet& nodes, Nanos when);
  static const Part* LostIn(const TickMerger::Row& row, uint32_t node, std::vector<Part>& parts);
  const Part* Take(const TickMerger::Row& row, uint32_t node, Lost& lost);

  NodeSet ended_;                            // that said so themselves
  std::vector<Part> waiting_;                // of ticks still to come
  std::vector<Reduced> settled_;             // of ticks before
  std::unordered_map<uint32_t, Lost> lost_;  // by node
  uint64_t numbered_ = 0;
  std::vector<Renewed> renewed_;
  // Lost nodes of which a row got values of the same columns.
  struct StandIns {
    std::vector<bool> columns;
    NodeSet nodes;
  };
  static void Note(uint32_t node, std::vector<bool> columns, std::vector<StandIns>& row);
  // Rows that got any; the newest kRows of them.
  static constexpr size_t kRows = 1024;
  std::map<Nanos, std::vector<StandIns>> stood_in_;
};

}  // namespace sonde::tree
