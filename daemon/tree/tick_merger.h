// Merging frames by tick: what an inner node and the head do with what their children send.
//
// Contributors (a stream of a child's link) add frames. A tick is emitted once when every
// contributor has added its part, or when its time is up; ticks are emitted in order. A part that
// comes later is handed on by itself, so it is late and not lost. A part whose nodes are in the
// tick already came before, over another link, and is dropped.
//
// What a tick costs does not grow with the nodes in its parts, as long as the parts are of the same
// nodes as at the tick before. At the head all nodes of a step contribute until they have a parent:
// what one of them costs does not grow with their number.
//
// Thread safety: none. Allocates nothing per frame once warm.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/time.h"
#include "daemon/tree/frame.h"
#include "daemon/tree/ring.h"
#include "daemon/tree/series_union.h"

namespace sonde::tree {

class TickMerger {
 public:
  using Id = uint32_t;

  // A frame that was merged: its number, and whose numbers these are. A sender outlives its
  // streams, so it can be told of a row that is emitted when it contributes no more.
  struct Source {
    uint32_t sender;
    uint64_t number;
  };
  struct Row {
    Nanos tick = 0;
    NodeSet nodes;
    std::vector<Reduced> values;          // by series()
    std::vector<QuantileSketch> spreads;  // of those that have it
    std::vector<Source> sources;
  };
  // What became of a frame.
  enum class Fate {
    kMerged,    // it is, or was, in a row that is emitted
    kCovered,   // all its nodes are in a waiting row: told of with that row
    kRepeated,  // all its nodes had been in the tick already
    kOverlaps,  // some had; the others' samples of this tick are lost
    kTooLate,   // the tick is forgotten
    kTooEarly,  // the tick lies far ahead of the time (FrameIntake)
    kUnknown,   // it has nodes that there are not (FrameIntake)
  };
  // `late`: a part of a tick that was emitted before.
  using Emit = std::function<void(const Row& row, bool late)>;

  // `remember`: of so many emitted ticks it knows which nodes were in them; a part of an older one
  // is too late.
  TickMerger(size_t remember, Emit emit) : remember_(remember), emit_(std::move(emit)) {}

  // The union of all series ever added.
  const SeriesUnion& all() const { return union_; }
  const std::vector<Series>& series() const { return union_.series(); }
  const Schema::Ptr& schema() { return union_.schema(); }
  // Where the columns of another schema are in it, which grows if it must and can: otherwise
  // SeriesUnion::kLeftOut.
  std::vector<uint32_t> ColumnsOf(const Schema& schema) { return union_.ColumnsOf(schema); }

  // Ticks after `joined` wait for it.
  Id AddContributor(Nanos joined);
  // Its columns from now on.
  void SetSchema(Id id, Schema::Ptr schema);
  Fate Add(Id id, const Frame& frame, uint32_t sender);
  // Ends a contributor that will add no more.
  void Remove(Id id);
  // The contributor goes on elsewhere, but ticks up to `until` still wait for it: its parts may
  // come another way. 0: it is back.
  // False if it is not here (any more).
  bool Leave(Id id, Nanos until);
  // All contributors, if any, are on their way elsewhere.
  bool idle() const;

  // Emits what waits for missing parts since before `tick`.
  void EmitUpTo(Nanos tick);
  // How many ticks wait.
  size_t waiting() const { return rows_.size(); }
  // The oldest tick that waits, 0 if none does.
  Nanos oldest() const { return rows_.empty() ? 0 : rows_.front().row.tick; }

  // For each column whether a contributor has it, or had it at the tick that is emitted: those in a
  // row may have ended by then.
  const std::vector<bool>& Present();

 private:
  // Of one schema; contributors share it.
  struct Columns {
    Schema::Ptr schema;
    std::vector<uint32_t> columns;  // its column -> ours
    std::vector<uint32_t> spreads;  // the same of those that have their spread
  };
  using ColumnsPtr = std::shared_ptr<const Columns>;
  struct Contributor {
    Id id;
    Nanos joined;
    ColumnsPtr columns;  // nullptr until it has a schema
    Nanos last_tick = 0;
    Nanos leaves = 0;  // 0: stays
  };
  struct Emitted {
    Nanos tick = 0;
    NodeSet nodes;
  };
  // Whose parts a row has: few ranges are put together as they come, sets of many stay apart until
  // the row is emitted.
  struct Parts {
    NodeSet few;
    std::vector<NodeSet> many;
  };
  // The nodes of the row are told when it is emitted.
  struct Waiting {
    Row row;
    Parts parts;
  };
  // Rows whose buffers are kept; at short ticks as many wait at a time.
  static constexpr size_t kMaxSpare = 64;

  Contributor* Find(Id id);
  Waiting& RowOf(Nanos tick);
  void Start(Row& row, Nanos tick) const;
  static bool Awaits(const Contributor& contributor, Nanos tick);
  bool Complete(const Row& row);
  ColumnsPtr ColumnsFor(Schema::Ptr schema);
  void MergeInto(Row& row, const Contributor& from, const Frame& frame, uint32_t sender);
  bool Intersects(const Parts& parts, const NodeSet& nodes) const;
  static void AddTo(Parts& parts, const NodeSet& nodes);
  static NodeSet NodesOf(const Parts& parts);
  void TellNodes(Waiting& waiting);
  Fate AddLate(const Contributor& from, const Frame& frame, uint32_t sender);
  void KeepColumns(const Contributor& gone);
  void EmitComplete();
  void EmitFirst();

  const size_t remember_;
  Emit emit_;
  SeriesUnion union_;
  std::vector<Contributor> contributors_;  // by id
  std::unordered_map<const Schema*, std::weak_ptr<const Columns>> columns_;
  size_t columns_limit_ = 16;  // with more, those that nobody has any more are forgotten
  Id next_id_ = 1;
  // None of the first `complete_` contributors is waited for by the tick `complete_at_`.
  Nanos complete_at_ = 0;
  size_t complete_ = 0;
  std::vector<Waiting> rows_;   // by tick
  std::vector<Waiting> spare_;  // with their buffers
  Row late_;
  Nanos emitted_ = 0;  // the newest tick that was
  // The parts of that one and their nodes: usually the next tick has the same.
  Parts last_parts_;
  NodeSet last_nodes_;
  Ring<Emitted> history_;  // ascending
  // Columns of contributors that are gone, while ticks that these have taken part in wait.
  std::vector<std::pair<Nanos, ColumnsPtr>> gone_;  // newest tick, columns
  std::vector<bool> present_;                       // empty after these have changed
};

}  // namespace sonde::tree
