// Merging frames by tick: what an inner node and the head do with what their children send.
//
// Contributors (a child's link, or the node's own sampling) add frames. A tick is emitted once when
// every contributor has added its part, or when its time is up; ticks are emitted in order. A part
// that comes later is handed on by itself, so it is late and not lost. Counters of contributors
// that ended stay in the totals: a final frame is kept and merged into every later tick, but for
// values that those still there could have and have not: metrics that are not sampled at every tick
// would else fall, between, to what the ended ones had. For each metric whose counters are kept see
// MetricType::kCounter.
//
// Thread safety: none. Allocates nothing per frame once warm.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/time.h"
#include "daemon/tree/frame.h"
#include "series/schema.h"

namespace sonde::tree {

class TickMerger {
 public:
  // `late`: a part of a tick that was emitted before; nothing of those that ended is in it.
  using Emit = std::function<void(const Frame& frame, bool late)>;
  using Id = uint32_t;

  TickMerger(uint32_t node, Emit emit) : node_(node), emit_(std::move(emit)) {}

  // The union of all series ever added, in a stable order: new ones go to the end.
  const std::vector<Series>& series() const { return series_; }
  void SetNode(uint32_t node) { node_ = node; }

  // Ticks after `joined` wait for it.
  Id AddContributor(Nanos joined);
  // Its columns from now on.
  void SetSchema(Id id, Schema::Ptr schema);
  // A final frame ends the contributor.
  void Add(Id id, const Frame& frame);
  // Ends a contributor that will add no more and sent no final frame. `keep_counters`: it was lost
  // for good, what it last sent counts as its final frame, unless other nodes are in that too: they
  // go on. False: it goes on elsewhere.
  // Whether its counters stay in the totals.
  bool Remove(Id id, bool keep_counters);
  // It goes on elsewhere, but ticks until then still wait: its parts may come another way. 0: it is
  // back.
  // False if it is not here (any more).
  bool Leave(Id id, Nanos until);

  // Emits what waits for missing parts since before `tick`.
  void EmitUpTo(Nanos tick);
  // The oldest tick that waits, 0 if none does.
  Nanos oldest() const { return rows_.empty() ? 0 : rows_.front().tick; }

  // Everything that ended: the node's own last word, or the whole step's last row.
  Frame Final(Nanos now);

 private:
  struct Contributor {
    Id id;
    Nanos joined;
    Schema::Ptr schema;
    std::vector<uint32_t> columns;  // its column -> ours
    Nanos last_tick = 0;
    std::vector<Reduced> last;  // each as it was last there, for Remove
    uint32_t last_nodes = 0;    // that are in it
    Nanos leaves = 0;           // 0: stays
  };
  struct Departed {
    Nanos when;
    std::vector<Reduced> values;  // by our columns
  };

  Contributor* Find(Id id);
  std::vector<uint32_t> ColumnsOf(const Schema::Ptr& schema);
  Frame& RowOf(Nanos tick);
  bool Complete(const Frame& row) const;
  void MergeInto(std::vector<Reduced>& row, const Contributor& from,
                 const std::vector<Reduced>& values);
  void Depart(const Contributor& from, const std::vector<Reduced>& values, Nanos when);
  void FoldDeparted(Nanos tick);
  void EmitComplete();
  void EmitFirst();
  void UpdatePresent();

  uint32_t node_;
  Emit emit_;
  std::vector<Series> series_;
  std::unordered_map<std::string, uint32_t> index_;
  std::vector<Contributor> contributors_;
  Id next_id_ = 1;
  std::vector<Frame> rows_;   // by tick
  std::vector<Frame> spare_;  // with their buffers
  Frame late_;
  Nanos emitted_ = 0;  // the newest tick that was
  std::vector<Departed> pending_;
  std::vector<Reduced> departed_;
  // By our columns, whether a contributor has it; empty after contributors have changed.
  std::vector<bool> present_;
};

}  // namespace sonde::tree
