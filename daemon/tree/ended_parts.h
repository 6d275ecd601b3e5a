// Last values of nodes that have ended, on their way up: those that come within a short time become
// one frame, so that the end of a large step is no flood.
//
// Thread safety: none.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "daemon/tree/frame.h"
#include "daemon/tree/series_union.h"
#include "daemon/tree/tick_merger.h"

namespace sonde::tree {

class EndedParts {
 public:
  // False if some of the nodes are in it already: it came over another link before.
  bool Add(const FrameInfo& info, const Schema& schema, std::span<const Reduced> values,
           TickMerger::Source source);
  bool empty() const { return info_.nodes.empty(); }
  // When the last of them ended; 0: nobody has.
  Nanos tick() const { return info_.tick; }

  struct Part {
    FrameInfo info;
    Schema::Ptr schema;
    std::vector<Reduced> values;
    std::vector<TickMerger::Source> sources;
  };
  // All that waits, which then waits no more.
  Part Take();

 private:
  SeriesUnion union_;
  FrameInfo info_;
  std::vector<Reduced> values_;
  std::vector<TickMerger::Source> sources_;
};

}  // namespace sonde::tree
