// The way of a row at the head: from what its children send, through the counters of nodes that
// have ended, into the step's record.
//
// Parts of a tick are merged into a row. A row waits for its parts, but no longer than a while; a
// part that comes later is merged into the row in the record. The row that goes into the record has
// in addition what ended and lost nodes had counted, so that totals never fall. What becomes of
// each sample is counted as the step's coverage, and told as its presence.
//
// It owns the head's children, their merged ticks and the last values of ended nodes.
//
// Thread safety: the loop's thread only.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/time.h"
#include "daemon/head/record/coverage_count.h"
#include "daemon/head/record/ended_nodes.h"
#include "daemon/head/record/presence.h"
#include "daemon/head/record/step_record.h"
#include "daemon/loop.h"
#include "daemon/message/message.h"
#include "daemon/step_clock.h"
#include "daemon/tree/children/children.h"
#include "daemon/tree/query_fanout.h"
#include "daemon/tree/tick_merger.h"
#include "series/block/joined.h"

namespace sonde::head {

class RowPath final : private tree::Children::Owner {
 public:
  // The head. It is not called by the constructor, nor once this is gone.
  class Owner {
   public:
    // A node's block, and what its application told, which take other ways.
    virtual void OnBlock(tree::BlockMessage block) = 0;
    virtual void OnJoinedBlocks(const JoinedBlocks& joined, std::string_view bytes) = 0;
    virtual void OnMoments(const collect::Moments& moments) = 0;
    // A new row is in the record; its columns are `series`.
    virtual void OnNewRow(const tree::TickMerger::Row& row, const std::vector<Series>& series) = 0;
    // A row is in the record, a new one or an earlier one again; coverage counts it already.
    virtual void OnRecorded(Nanos tick, bool late) = 0;
    // Last values of nodes have come; `lost`: of one that may be back, `first`.
    virtual void OnLastValues(uint32_t first, bool lost) = 0;

   protected:
    ~Owner() = default;
  };

  RowPath(Loop& loop, StepClock& clock, StepRecord& record, tree::QueryFanout& queries,
          Owner& owner);
  ~RowPath();
  RowPath(const RowPath&) = delete;
  RowPath& operator=(const RowPath&) = delete;

  tree::Children& children() { return children_; }
  CoverageCount& coverage() { return coverage_; }
  void UpdateCoverage();
  // From now on even the first tick does not wait for ever.
  void Begin() { ScheduleExpiry(); }
  // A node was lost: the record gets a note, which follows what becomes of the node's values.
  void OnLost(uint32_t node, std::string why);
  // No row waits for anything any more.
  void Stop() { stopped_ = true; }

  // For another head, and from the one before: the newest row, and last values of nodes, those of
  // the head's own children as if these were lost; and, in the description, which nodes are in the
  // rows.
  Nanos newest() const { return whole_.tick; }
  Nanos LastTickOf(uint32_t node) const { return presence_.LastTickOf(node); }
  const Schema::Ptr& schema() { return merger_.schema(); }
  using OnLastValues = std::function<void(const tree::Frame&)>;
  void LastValues(const OnLastValues& children, const OnLastValues& ended);
  void Inherit(const JobDescription& before, Nanos newest);
  std::vector<uint32_t> ColumnsOf(const Schema& schema) { return merger_.ColumnsOf(schema); }
  // By these columns of the step's series.
  void InheritLastValues(const tree::FrameInfo& info, std::span<const uint32_t> columns,
                         std::span<const Reduced> values);
  // Of an acting head, when it begins: for a second no row is made. Nodes send the ticks of many
  // seconds again, their own samples before those of nodes below them; a row made of the former
  // alone would have old values in place of the latter.
  void Gather();
  // From now on another head may store rows of this step, too.
  void SetNotAlone() { alone_ = false; }
  // See Children.
  void BeginSafe();
  void EndSafe() { children_.EndSafe(); }
  // Rows since BeginSafe.
  uint32_t unsafe_rows() const { return unsafe_rows_; }

  // The step ends at `now`: all that waits goes into the record, and the last row, with what all
  // nodes counted to their ends.
  void Finish(Nanos now);
  // Notes what is missing of that many nodes. After Finish.
  void NoteMissing(size_t nodes);

 private:
  void OnRow(const tree::TickMerger::Row& row, bool late);
  bool Amend(const tree::TickMerger::Row& late);
  void PublishPresence();
  void Append(const tree::TickMerger::Row& row);
  bool HasCaughtUp() const;
  void OnBlock(tree::BlockMessage block) override { owner_.OnBlock(std::move(block)); }
  void OnJoinedBlocks(const JoinedBlocks& joined, std::string_view bytes) override {
    owner_.OnJoinedBlocks(joined, bytes);
  }
  void OnMoments(collect::Moments moments) override { owner_.OnMoments(moments); }
  void OnRefused(tree::TickMerger::Fate fate, const tree::Frame& frame,
                 tree::TickMerger::Source source) override;
  void OnEnded(const tree::FrameInfo& info, const Schema::Ptr& schema,
               std::span<const Reduced> values, tree::TickMerger::Source source) override;
  void OnLateEnd(const tree::FrameInfo& info, Nanos newest);
  void TellLateEnds(const tree::NodeSet& nodes);
  void CheckLost(const tree::NodeSet& nodes);
  Nanos MergeWindow() const;
  void ScheduleExpiry();

  Loop& loop_;
  StepClock& clock_;
  StepRecord& record_;
  const Nanos period_;
  Owner& owner_;
  const Nanos first_;  // earlier ticks cannot be the step's

  CoverageCount coverage_;
  Presence presence_;
  tree::TickMerger merger_;
  tree::Children children_;
  tree::EndedNodes ended_;
  tree::NodeSet lost_;  // that were lost at some time
  // By node, the first row that has its last values, if rows behind its end were made before.
  std::unordered_map<uint32_t, Nanos> late_ends_;
  tree::TickMerger::Row whole_;  // the newest row, and what has ended
  std::vector<Reduced> late_;    // a part that comes late to a row
  Nanos inherited_ = 0;          // another head has stored the rows up to this tick
  uint32_t unsafe_rows_ = 0;
  bool said_left_out_ = false;
  uint64_t missing_samples_ = 0;  // that came too late, or with others' that were there
  uint64_t early_samples_ = 0;    // of ticks far ahead of the time
  uint64_t unknown_samples_ = 0;  // of nodes that there are not, or together with such
  bool alone_ = true;
  bool stopped_ = false;
  Loop::TimerId expiry_timer_ = 0;
  Loop::TimerId gather_timer_ = 0;  // until then no row is made
};

}  // namespace sonde::head
