// The children of the head or of an inner node: what comes up from them, and what they are told.
//
// A child sends its data over one link at a time, its fabric link to here or, at the head, its
// control connection; each stream of its frames becomes a contributor to the ticks with its first
// schema on a link and ends when it takes its data elsewhere (kLeave), or with the link. Ticks then
// wait a little for what it sends over its next link. Links belong to whoever accepted them.
//
// Acknowledgement is from end to end: a child is told that a frame has arrived (kAck) when the head
// has what it became part of. Frames go up under a number of this daemon's (Forwarded), the head
// acknowledges those (Acknowledged), and what that means for each child goes down with the pulse
// about once a second, which is how a child knows that its parent is there. At the head a frame has
// arrived when it is here, whatever its tick still waits for; and the head's own children hear in
// addition up to where it is safe: in the archive, where another head would find it. A child that
// has ended waits for its word, so it is told at once, whatever has become of its streams.
//
// Thread safety: the loop's thread only.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/ring.h"
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
  struct Handlers {
    // A block on its way up.
    std::function<void(BlockMessage block)> block;
    // Moments of the child and of those below it, each once.
    std::function<void(collect::Moments moments)> moments;
    // Last values of nodes that have ended, by `schema`. To be Forwarded like a row.
    std::function<void(const FrameInfo& header, const Schema::Ptr& schema,
                       std::span<const Reduced> values, TickMerger::Source source)>
        ended;
    // A part of a tick that was not merged: its nodes were there already, or it is too late.
    std::function<void(TickMerger::Fate fate, const Frame& frame, TickMerger::Source source)>
        refused;
  };

  enum class Keep { kUntilArrived, kUntilSafe };
  // `hand_over`: how long ticks wait for a child that is on its way from one link to another.
  Children(TickMerger& merger, QueryFanout& queries, Nanos hand_over, Keep keep, Handlers handlers)
      : merger_(merger),
        queries_(queries),
        hand_over_(hand_over),
        keep_(keep),
        handlers_(std::move(handlers)) {}

  // What the clock of the ticks is ahead of this machine's.
  void SetClockOffset(Nanos offset) { clock_offset_ = offset; }

  void Add(Link& link, uint32_t index);
  // The link is gone, the child goes on over another, or is lost.
  void Remove(Link& link);
  // What a child whose link broke last sent of itself is handed on as its last values, which count
  // until it is heard of again: before a row that goes without it, or when it does not come back in
  // time (`now` by the ticks' clock), the latest time of which is next_lost(); 0: there is none.
  void HandOnLost(Nanos row, const NodeSet& nodes);
  void HandOnLost(Nanos now);
  Nanos next_lost() const;

  // Before a row goes up that is not late: what each child that contributes and is missing from it
  // last sent of itself is handed on in the same way. So what it had counted stays in the totals.
  void StandInForMissing(Nanos row, const NodeSet& nodes);

  // The messages that belong here (kSchema to kMoments, kReply); a failure means that the link must
  // be closed.
  Status OnMessage(Link& link, Type type, std::string_view payload);

  // What each that contributes last sent of itself.
  void ForEachOwn(const std::function<void(uint32_t index, Nanos tick, const Schema& schema,
                                           std::span<const Reduced> values)>& f) const;
  // Those that contribute now: the ones to ask.
  std::vector<Link*> Active() const;
  // Nobody contributes.
  bool idle() const { return merger_.idle(); }
  // Nobody contributes, and nobody waits for word that its last frames have arrived.
  bool done() const;
  // Tells every child that this node leaves.
  void SendLeave();
  // An acknowledgement on its way down to the node a block came from. It goes with the next pulse
  // and all others for the same child; or, if the node has to do something or is about to leave,
  // when FlushBlockAcks is called, here after each message of blocks.
  void SendBlockAck(const BlockAck& ack);
  void FlushBlockAcks();

  // These frames went up under `number`; at the head, whose rows they are in, 0.
  void Forwarded(std::span<const TickMerger::Source> sources, uint64_t number);
  // The head has all numbers up to this one.
  void Acknowledged(uint64_t number);
  // The head does not take this frame of last values as it is: its child has to take it apart.
  void Refuse(TickMerger::Source source);
  // What went up under `number` was refused: these links brought it. When they are closed their
  // children send it again, each by itself.
  std::vector<Link*> BroughtIn(uint64_t number) const;
  // Tells each child that contributes how far it is. About once a second.
  void Pulse();

  // At the head: children keep frames and moments that have arrived until they are safe as well, in
  // case another head goes on. What has arrived up to BeginSafe is, with EndSafe.
  void BeginSafe();
  void EndSafe();
  // Those that contribute and of which nothing was heard since `since` (monotonic).
  std::vector<Link*> SilentSince(Nanos since) const;

 private:
  struct StreamState {
    Schema::Ptr schema;
    FrameDecoder decoder;            // has its memory from the first frame on
    TickMerger::Id contributor = 0;  // 0: sends nothing here now
  };
  struct Pending {
    uint64_t number = 0;   // the child's
    uint64_t sent_as = 0;  // ours, once `sent`
    bool sent = false;
    bool last_values = false;
  };
  struct Child {
    Link* link = nullptr;
    uint32_t index = 0;
    bool active = false;  // is in `active_`
    bool sender = false;  // is in `senders_`
    Nanos heard = 0;      // monotonic
    std::array<StreamState, kStreams> streams;
    Nanos own_tick = 0;   // its newest sample
    Nanos own_first = 0;  // its oldest one over this link
    Nanos stood_in = 0;   // the sample that was handed on for rows that it is missing from
    bool ended = false;   // its last values have come
    uint32_t sender_id = 0;
    Ring<Pending> pending;  // at the head: those that are in no row yet
    uint64_t acked = 0;
    uint64_t in_rows = 0;  // at the head: of these
    uint64_t marked = 0;   // that when BeginSafe was called
    uint64_t safe = 0;
    uint64_t told = 0;     // of these
    uint64_t awaited = 0;  // and of these the child waits for word
    std::string block_acks;
    bool block_acks_hurry = false;
  };
  // What a child whose link is gone last sent of itself.
  struct LastOwn {
    Schema::Ptr schema;
    Nanos tick;
    Nanos until;  // so long it may come back
    std::vector<Reduced> values;
  };
  // Of so many.
  static constexpr size_t kMaxLastOwn = 256;
  // A child keeps fewer frames.
  static constexpr size_t kMaxPending = 4096;
  // So many frames are acknowledged at once and not with the next pulse: at short ticks a child
  // would have to keep too many.
  static constexpr uint64_t kMaxUntold = 64;

  static bool Contributes(const Child& child);
  void UpdateActive(Child& child);
  bool ForgetNewest(uint64_t key, TickMerger::Id contributor);
  void StartHandOver(Child& child);
  void EndStream(Child& child, Stream stream);
  void KeepLastOwn(const Child& child);
  void HandOnLostIf(const std::function<bool(uint32_t index, const LastOwn& last)>& is);
  Status OnSchema(Child& child, std::string_view payload);
  Status OnFrames(Link& link, Child& child, std::string_view payload);
  Status OnFrame(Child& child, std::string_view bytes);
  Status OnBlockMessage(Link& link, std::string_view payload);
  Status OnMomentsMessage(Link& link, uint32_t index, std::string_view payload);
  void MarkMoments();
  void TellSafeMoments();
  static void SendBlockAcks(Child& child);
  static void Arrived(Child& child, uint64_t number, bool last_values);
  void TakeOffArrived(Child& child) const;
  void Settle(Link& link, Child& child, bool tell);
  void Tell(Link& link, Child& child) const;
  bool at_head() const { return keep_ == Keep::kUntilSafe; }

  TickMerger& merger_;
  QueryFanout& queries_;
  const Nanos hand_over_;
  const Keep keep_;
  Handlers handlers_;
  SchemaCache schemas_;
  uint64_t acknowledged_ = 0;
  Nanos clock_offset_ = 0;
  std::unordered_map<Link*, Child> children_;
  // Those that contribute: at the head of a large step all others have connections, too.
  std::vector<Child*> active_;
  // Those that have ever sent a frame over this link.
  std::vector<Child*> senders_;
  std::vector<Child*> with_block_acks_;
  // TickMerger::Source::sender -> the link that its frames came over.
  std::unordered_map<uint32_t, Link*> by_sender_;
  uint32_t next_sender_ = 1;
  // Child and stream -> its newest contributor.
  std::unordered_map<uint64_t, TickMerger::Id> newest_;
  // The same, when it is between two links.
  std::unordered_map<uint64_t, TickMerger::Id> leaving_;
  std::unordered_map<uint32_t, LastOwn> last_own_;
  // Child -> its parts of moments: those that came, those that are not known to be safe, and of
  // these the ones that will be with EndSafe.
  std::unordered_map<uint32_t, PartsSeen> seen_;
  std::unordered_map<uint32_t, std::vector<uint64_t>> unsafe_moments_;
  std::unordered_map<uint32_t, std::vector<uint64_t>> marked_moments_;
  std::unordered_map<uint32_t, Link*> routes_;  // node -> the child it sits behind
};

}  // namespace sonde::tree
