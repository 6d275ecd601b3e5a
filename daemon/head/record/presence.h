// Which nodes are in the rows of the whole step: the description's runs (PresenceRun, core/job.h),
// kept row by row.
//
// A node is in a row if its sample of that tick is in it in full. So it is absent from a row
//   - for which it gave no sample, or one that found the row sealed (RowPath::OnRow);
//   - in which other values of its own stand for it, even if its sample came later: the counters of
//     that sample are not in the row (EndedNodes::StoodIn). All nodes of that part are absent then.
// The daemon that takes the place of another on the same host is another node.
//
// A tick without any row, between two rows, is a run of 0 nodes: the nodes' own series may well
// have it. Rows before the first run, if there are any, are not known.
//
// `back_from` tells readers which rows not to trust. Of a run in which nodes are back it is the
// last tick at which the one that was away longest was there, and less than `first`. If it is
// `first` itself, the run is of rows with different nodes: more than kMaxPresenceRuns are not kept,
// the first two are put together then. The run that comes of it has the first tick of the one, the
// smaller number of nodes of the two, and `joined` and `left` of both added up.
//
// The last row, which RowPath::Finish appends beside the ticks, at the step's end or later, is no
// sample of anything and belongs to no run. Its counters are what every node had counted to its
// end, so they are the whole step's totals whatever the runs say, but for nodes of which nothing is
// known (the profile's notes tell). Its gauges are of the nodes' ends, and so of different times.
//
// An acting head begins with the runs of the head before (Inherit). These tell how many nodes were
// in the last row, but not which. If all that could be there were, the runs go on as if there had
// been one head. Else the first row begins a run in which all nodes came, `left` is all that were
// in the row before, and `back_from` is the last tick before anybody is known to have been away. If
// it is not known which row was the last, all runs before are one of rows with different nodes, and
// rows of its ticks, which may be the head's or ours, are in it.
//
// A row of the same nodes as the one before costs a comparison of the two sets; what a late part
// costs grows with the ranges of its row's set. At most kOpenRows sets are kept.
//
// Thread safety: the loop's thread only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

#include "core/job.h"
#include "core/time.h"
#include "daemon/tree/node_set.h"
#include "series/query/query.h"

namespace sonde::head {

class Presence {
 public:
  // A part that comes still later changes nothing here. More rows than the record keeps open.
  static constexpr size_t kOpenRows = 160;

  explicit Presence(Nanos period) : period_(period) {}

  // Goes on behind the row of `newest`, the last that the head before stored, with what it told of
  // its nodes and runs. Before any row; 0: it stored no row that is known.
  void Inherit(const JobDescription& before, Nanos newest);
  // A row that is newer than all before. Gives whether it may be of other nodes than that one.
  // `caught_up`: what stands in for absent nodes was old in the row before and is not in this one:
  // a run begins, though it has the same nodes.
  bool OnRow(Nanos tick, const tree::NodeSet& nodes, bool caught_up = false);
  // A part that came later, and is in its row in full.
  void OnLatePart(Nanos tick, const tree::NodeSet& nodes);

  // The newest tick that has the node's sample in full; 0: none that is known.
  Nanos LastTickOf(uint32_t node) const;

  // Whether anything changed since Runs was called.
  bool changed() const { return changed_; }
  const std::vector<PresenceRun>& Runs();

 private:
  struct Run {
    Nanos first;
    tree::NodeSet nodes;
    bool caught_up = false;
  };
  // What the next run is compared with.
  struct Before {
    tree::NodeSet nodes;
    uint32_t unknown = 0;  // nodes that were there besides, of which it is not known who they are
    std::vector<Nanos> away;  // by node: when it was there last; 0: never, or it is in `nodes`
  };

  static void Add(const Run& run, Nanos last_before, Before& before,
                  std::vector<PresenceRun>& runs);
  bool Begin(Nanos tick, const tree::NodeSet& nodes, bool caught_up = false);
  void Settle();
  void JoinWithNext(size_t run);
  Nanos LastRowBefore(size_t run) const;

  const Nanos period_;
  std::vector<PresenceRun> done_;  // of rows that do not change any more
  Nanos done_last_ = 0;            // the tick of their last row
  Nanos uncertain_ = 0;            // rows up to there may be the head's before
  Nanos dropped_ = 0;              // of the newest row that rows_ has no more
  Before before_;                  // as it was then
  std::deque<Run> open_;           // neighbours have different nodes, or the second one caught up
  std::deque<Nanos> rows_;         // ticks of the newest rows
  Nanos newest_ = 0;
  bool changed_ = false;
  std::vector<PresenceRun> runs_;
};

// Whether nodes are missing in some rows of [start, end] of a step that runs: longer than while
// they came or went. `absences`: of these runs (series/query/pieces/absences.h).
bool LackNodes(const std::vector<TimeRange>& absences, const std::vector<PresenceRun>& runs,
               Nanos start, Nanos end);

}  // namespace sonde::head
