// The children of the head or of an inner node: what comes up from them, and what they are told.
//
// A child sends its data over one link at a time, its fabric link to here or, at the head, its
// control connection. Links belong to whoever accepted them. What comes over a link goes to those
// that know what it is: frames to FrameIntake, which makes ticks of them; blocks to the owner,
// while BlockRoutes brings their acknowledgements back; moments to the owner, by MomentsIntake;
// replies to the questions. Acknowledgements tells the children what has become of their frames.
//
// Thread safety: the loop's thread only.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/status.h"
#include "daemon/link/link.h"
#include "daemon/message/message.h"
#include "daemon/tree/children/acknowledgements.h"
#include "daemon/tree/children/block_routes.h"
#include "daemon/tree/children/frame_intake.h"
#include "daemon/tree/children/moments_intake.h"
#include "daemon/tree/frame.h"
#include "daemon/tree/query_fanout.h"
#include "daemon/tree/tick_merger.h"
#include "series/block/joined.h"
#include "series/block/schema.h"

namespace sonde::tree {

class Children {
 public:
  // Who passes on what comes up. It is not called by the constructor, nor once this is gone.
  class Owner : public FrameIntake::Owner {
   public:
    // A block on its way up.
    virtual void OnBlock(BlockMessage block) = 0;
    // Joined blocks; `bytes` are theirs. A head asks for them, and its children. They may come of a
    // child that was not asked: it was asked by another before, or lies.
    virtual void OnJoinedBlocks(const JoinedBlocks& /*joined*/, std::string_view /*bytes*/) {}
    // Moments of the child and of those below it, each once.
    virtual void OnMoments(collect::Moments moments) = 0;

   protected:
    ~Owner() = default;
  };

  // `clock`: that of the ticks.
  Children(TickMerger& merger, QueryFanout& queries, const FrameIntake::Pace& pace, Keep keep,
           Owner& owner, const Clock& clock = Clock::System())
      : merger_(merger),
        queries_(queries),
        owner_(owner),
        acknowledgements_(keep),
        frames_(merger, acknowledgements_, pace, owner, clock),
        moments_(keep) {}

  // At the head: no node has this number or a higher one. What is said of such nodes is left out.
  void LimitNodes(uint32_t limit) { frames_.LimitNodes(limit); }
  // Blocks, and annotations, that were left out for that.
  uint64_t unknown_blocks() const { return unknown_blocks_; }
  // Messages of joined blocks that were left out: their version is a later one.
  uint64_t unread_joined() const { return unread_joined_; }
  uint64_t unknown_moments() const { return unknown_moments_; }

  void Add(Link& link, uint32_t index);
  // The link is gone, the child goes on over another, or is lost.
  void Remove(Link& link);
  // When a child's link broke, or the child has left it and is not on another one yet, the values
  // it last sent of itself are handed on as its last values, which count until it is heard of
  // again: before a row that goes without it, or when it is not back in time (`now` by the ticks'
  // clock), at next_lost() at the latest; 0: there is none.
  void HandOnLost(Nanos row, const NodeSet& nodes) { frames_.HandOnLost(row, nodes); }
  void HandOnLost(Nanos now) { frames_.HandOnLost(now); }
  Nanos next_lost() const { return frames_.next_lost(); }

  // Before a row goes up that is not late: for each contributing child that is missing from it, the
  // values it last sent of itself are handed on likewise. So its counts stay in the totals. Of
  // ticks that a child has left out, these are handed on when that shows.
  void StandInForMissing(Nanos row, const NodeSet& nodes) { frames_.StandInForMissing(row, nodes); }
  // The same for each that has sent nothing of this tick, nor since: where no child has taken the
  // tick there is no row of it here.
  void StandInForSilent(Nanos tick) { frames_.StandInForSilent(tick); }
  // The same for each of these, as for one that hangs, and whose link is still there.
  void StandInForEach(const NodeSet& nodes) { frames_.StandInForEach(nodes); }

  // The messages that belong here (kSchema to kMoments, kReply); a failure means that the link must
  // be closed.
  Status OnMessage(Link& link, Type type, std::string_view payload);

  // The values that each contributing child last sent of itself.
  void ForEachOwn(const std::function<void(uint32_t index, Nanos tick, const Schema& schema,
                                           std::span<const Reduced> values)>& f) const {
    frames_.ForEachOwn(f);
  }
  // Those that contribute now: the ones to ask.
  std::vector<Link*> Active() const;
  // Nobody contributes.
  bool idle() const { return merger_.idle(); }
  // Nobody contributes, and nobody waits for word that its last frames have arrived.
  bool done() const;
  // Tells every child that this node leaves.
  void SendLeave();
  // An acknowledgement on its way down to the node a block came from; see BlockRoutes. Flushed here
  // after each message of blocks.
  void SendBlockAck(const BlockAck& ack) { block_routes_.Add(ack); }
  void FlushBlockAcks() { block_routes_.Flush(); }

  // See Acknowledgements.
  void Forwarded(std::span<const TickMerger::Source> sources, uint64_t number) {
    acknowledgements_.Forwarded(sources, number);
  }
  void Acknowledged(uint64_t number) { acknowledgements_.Acknowledged(number); }
  void Refuse(TickMerger::Source source) { acknowledgements_.Refuse(source); }
  // When these links are closed, their children send the frames that went up under `number` again,
  // each by itself.
  std::vector<Link*> BroughtIn(uint64_t number) const {
    return acknowledgements_.BroughtIn(number);
  }
  // Tells each child that contributes how far it is. About once a second.
  void Pulse();

  // At the head: frames and moments that have arrived up to BeginSafe are safe with EndSafe.
  void BeginSafe();
  void EndSafe();
  // Those that contribute and of which nothing was heard since `since` (monotonic).
  std::vector<Link*> SilentSince(Nanos since) const;

 private:
  struct Child {
    Child(Link& link, uint32_t i, Acknowledgements::Account& a)
        : index(i), account(a), sender(link, i, a), blocks(sender) {}
    const uint32_t index;
    Nanos heard = 0;  // monotonic
    Acknowledgements::Account& account;
    FrameIntake::Sender sender;
    BlockRoutes::Child blocks;
  };

  Status OnBlockMessage(Child& child, std::string_view payload);
  void TakeBlock(Child& child, BlockMessage block);
  Status OnJoinedBlocks(Child& child, std::string_view payload);

  TickMerger& merger_;
  QueryFanout& queries_;
  Owner& owner_;
  Acknowledgements acknowledgements_;
  FrameIntake frames_;
  BlockRoutes block_routes_;
  MomentsIntake moments_;
  std::unordered_map<Link*, Child> children_;
  uint64_t unknown_blocks_ = 0;
  uint64_t unread_joined_ = 0;
  uint64_t unknown_moments_ = 0;
};

}  // namespace sonde::tree
