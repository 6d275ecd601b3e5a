// The children of the head or of an inner node: what comes up from them.
//
// A child sends its data over one link at a time, its fabric link to here or, at the head, its
// control connection; it becomes a contributor to the ticks with its first schema on a link and
// ends with its final frame, when it takes its data elsewhere (kLeave), or with the link. In the
// latter cases ticks wait a little for what it sends over its next link. Links belong to whoever
// accepted them.
//
// Thread safety: the loop's thread only.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/status.h"
#include "daemon/tree/frame.h"
#include "daemon/tree/link.h"
#include "daemon/tree/message.h"
#include "daemon/tree/moments_delivery.h"
#include "daemon/tree/query_fanout.h"
#include "daemon/tree/tick_merger.h"
#include "series/schema.h"

namespace sonde::tree {

class Children {
 public:
  // A block on its way up; true: taken.
  using OnBlock = std::function<void(BlockMessage block)>;

  // Moments of the child and of those below it, each once.
  using OnMoments = std::function<void(collect::Moments moments)>;

  // `hand_over`: how long ticks wait for a child that is on its way from one link to another.
  Children(TickMerger& merger, QueryFanout& queries, Nanos hand_over, OnBlock on_block,
           OnMoments on_moments)
      : merger_(merger),
        queries_(queries),
        hand_over_(hand_over),
        on_block_(std::move(on_block)),
        on_moments_(std::move(on_moments)) {}

  void Add(Link& link, uint32_t index);
  // The link is gone, the child goes on over another.
  void Remove(Link& link);
  // The child is gone for good. True if its counters stay in the totals as it last sent them; those
  // of a child that has passed on others' cannot.
  bool Lose(uint32_t index);

  // The messages that belong here (kSchema to kMoments, kReply); a failure means that the link must
  // be closed.
  Status OnMessage(Link& link, Type type, std::string_view payload);

  // Those that contribute now: the ones to ask.
  std::vector<Link*> Active() const;
  // Tells every child that this node leaves.
  void SendLeave();
  // An acknowledgement on its way down to the node a block came from.
  void SendBlockAck(const BlockAck& ack);

 private:
  struct Child {
    uint32_t index = 0;
    TickMerger::Id contributor = 0;  // 0: sends nothing here now
    FrameDecoder decoder;
  };

  void StartHandOver(Child& child);
  Status OnSchema(Child& child, std::string_view payload);
  Status OnFrame(Link& link, Child& child, std::string_view payload);
  Status OnBlockMessage(Link& link, std::string_view payload);
  Status OnMomentsMessage(Link& link, uint32_t index, std::string_view payload);

  TickMerger& merger_;
  QueryFanout& queries_;
  const Nanos hand_over_;
  OnBlock on_block_;
  OnMoments on_moments_;
  SchemaCache schemas_;
  std::unordered_map<Link*, Child> children_;
  std::unordered_map<uint32_t, TickMerger::Id> leaving_;  // child -> what it contributed last
  std::unordered_map<uint32_t, PartsSeen> seen_;          // child -> its parts of moments
  std::unordered_map<uint32_t, Link*> routes_;            // node -> the child it sits behind
};

}  // namespace sonde::tree
