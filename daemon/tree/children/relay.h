// What passes through a node on its way up: its own frames, its children's merged, the last values
// of those that ended, and the acknowledgements that come back down.
//
// An inner node sends two frames a tick, its own and its children's, so that whoever is above still
// knows what it counted itself when it dies. A node without children sends the one. Frames of ticks
// shorter than kBatch are gathered and go up together.
//
// Thread safety: the loop's thread only.
#pragma once

#include <span>
#include <utility>

#include "core/time.h"
#include "daemon/loop.h"
#include "daemon/tree/children/children.h"
#include "daemon/tree/ended_parts.h"
#include "daemon/tree/query_fanout.h"
#include "daemon/tree/tick_merger.h"
#include "daemon/tree/uplink.h"

namespace sonde::tree {

class Relay final : private Children::Owner {
 public:
  // Last values of nodes below that come within it go up as one, after the ticks that have samples
  // of these nodes: word of last values comes at once, and so counts for those ticks, too.
  static constexpr Nanos kEndedDelay = 20 * kMillisecond;
  static constexpr Nanos kBatch = 500 * kMillisecond;

  // The node. It is not called by the constructor, nor once this is gone.
  class Owner {
   public:
    // A child's block, on its way up.
    virtual void OnBlock(BlockMessage block) = 0;
    // Blocks that a child has joined, as this node asks those for that are right below it.
    virtual void OnJoinedBlocks(const JoinedBlocks& /*joined*/, std::string_view /*bytes*/) {}
    // Frames of a tick are about to go up: what may go with them should.
    virtual void BeforeFrames() = 0;
    // A child's tick lies far ahead of the time: its clock may be wrong, or this node's.
    virtual void OnAhead() = 0;

   protected:
    ~Owner() = default;
  };
  // `clock`: that of the ticks.
  Relay(Loop& loop, QueryFanout& queries, Nanos period, const Clock& clock, Owner& owner);
  ~Relay();

  Children& children() { return children_; }
  Uplink& uplink() { return uplink_; }
  const Uplink& uplink() const { return uplink_; }
  void SetNode(uint32_t index) { index_ = index; }
  // Of the children's frames.
  const SeriesUnion& series() const { return merger_.all(); }

  // As Uplink::Use.
  void Use(Link* link, bool tell_former) {
    uplink_.Use(link, tell_former);
    ContinueLater();
  }
  // The series of the node's own frames; the receiver waits for those from now on.
  void Announce(const Schema::Ptr& schema) { uplink_.Announce(Stream::kOwn, schema); }
  void SendOwn(Nanos tick, const Schema::Ptr& schema, const FrameValues& values);
  // The node's last values. Its own frames end with them.
  void SendOwnEnd(Nanos when, const Schema::Ptr& schema, std::span<const Reduced> values);
  // Whatever still waits for other parts goes as it is.
  void SendRest();
  // Frames that are gathered go now, and with them what may go before frames.
  void FlushTick();

  // After whatever children have sent, and when one is gone.
  void OnChildrenChanged();
  // The head has our frames up to `number`; those up to `safe` no other head would need.
  void OnAck(uint64_t number, uint64_t safe);
  // The head does not take that frame. Returns the links to close: its parts then come over others.
  std::vector<Link*> OnRefused(uint64_t number);
  // No child has anything under way through here.
  bool children_done() const { return children_.done() && ended_.empty(); }

 private:
  void OnRow(const TickMerger::Row& row, bool late);
  void OnBlock(BlockMessage block) override { owner_.OnBlock(std::move(block)); }
  void OnJoinedBlocks(const JoinedBlocks& joined, std::string_view bytes) override {
    owner_.OnJoinedBlocks(joined, bytes);
  }
  void OnMoments(collect::Moments moments) override { uplink_.AddMoments(std::move(moments)); }
  void OnRefused(TickMerger::Fate fate, const Frame& frame, TickMerger::Source source) override;
  void OnEnded(const FrameInfo& info, const Schema::Ptr& schema, std::span<const Reduced> values,
               TickMerger::Source source) override;
  void SendEndedAfterTicks();
  void AddEnded();
  void SendEnded();
  void Flush();
  void FlushSoon();
  void ContinueLater();
  Nanos MergeWindow() const;
  void ScheduleExpiry();
  void ScheduleLost();

  Loop& loop_;
  const Nanos period_;
  const Clock& clock_;
  Owner& owner_;
  uint32_t index_ = sonde::Owner::kNobody;
  Uplink uplink_;
  TickMerger merger_;  // of the children's frames
  EndedParts ended_;
  bool ended_due_ = false;  // and waiting for ticks
  FrameInfo own_info_;      // kept for their buffers
  FrameInfo row_info_;
  Children children_;
  Loop::TimerId expiry_timer_ = 0;
  Loop::TimerId flush_timer_ = 0;  // at the latest
  Loop::TimerId soon_timer_ = 0;
  Loop::TimerId ended_timer_ = 0;
  Loop::TimerId lost_timer_ = 0;
  Loop::TimerId continue_timer_ = 0;
};

}  // namespace sonde::tree
