// What children send of their ticks: streams of frames, by their schemas, become contributors to
// the merged ticks.
//
// A child sends its data over one link at a time. Each stream of its frames becomes a contributor
// with its first schema on a link, and ends when the child takes its data elsewhere (OnHandOver),
// or with the link. Ticks then wait a little for what the child sends over its next link. What a
// child last sent of itself stands in for it where it is missing, or lost.
//
// A Sender is a child over one link; it belongs to the caller, and stays where it is until Remove.
//
// Thread safety: the loop's thread only.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <span>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/status.h"
#include "core/time.h"
#include "daemon/link/link.h"
#include "daemon/tree/children/acknowledgements.h"
#include "daemon/tree/frame.h"
#include "daemon/tree/last_known.h"
#include "daemon/tree/tick_merger.h"
#include "series/block/schema.h"

namespace sonde::tree {

class FrameIntake {
 public:
  class Owner {
   public:
    // Last values of nodes that have ended, by `schema`. To be Forwarded like a row.
    virtual void OnEnded(const FrameInfo& header, const Schema::Ptr& schema,
                         std::span<const Reduced> values, TickMerger::Source source) = 0;
    // A part of a tick that was not merged: its nodes were there already, or it is too late. Of
    // what a child says that it had counted before, too: nobody else needs that.
    virtual void OnRefused(TickMerger::Fate fate, const Frame& frame,
                           TickMerger::Source source) = 0;

   protected:
    ~Owner() = default;
  };

  class Sender {
   public:
    Sender(Link& l, uint32_t index, Acknowledgements::Account& account)
        : link(l), index_(index), account_(account) {}
    // It contributes to ticks. Last values may come of one that does not any more.
    bool contributes() const { return place_ != SIZE_MAX; }

    Link& link;

   private:
    friend class FrameIntake;
    struct StreamState {
      Schema::Ptr schema;
      FrameDecoder decoder;            // has its memory from the first frame on
      TickMerger::Id contributor = 0;  // 0: sends nothing here now
    };
    const StreamState& own() const { return streams_[static_cast<size_t>(Stream::kOwn)]; }
    // Something is known that the child has sent of itself, and it has not ended.
    bool has_own() const { return own().contributor != 0 && own_tick_ != 0 && !account_.ended(); }
    // That, as it was last.
    KnownValues Known() const;

    const uint32_t index_;
    Acknowledgements::Account& account_;
    size_t place_ = SIZE_MAX;  // in contributing_
    std::array<StreamState, kStreams> streams_;
    LastKnown before_;      // what it had counted before the schema of its own frames
    Nanos own_tick_ = 0;    // its newest sample, over this link or before
    Nanos own_first_ = 0;   // its oldest one over this link
    uint32_t refused_ = 0;  // frames of last values with nodes that there are not
    Nanos stood_in_ = 0;    // the sample that was handed on for rows that it is missing from
  };

  struct Pace {
    Nanos period;     // of the ticks
    Nanos hand_over;  // how long they wait for a child that is on its way from one link to another
  };
  // `clock`: that of the ticks.
  FrameIntake(TickMerger& merger, Acknowledgements& acknowledgements, const Pace& pace,
              Owner& owner, const Clock& clock)
      : merger_(merger),
        acknowledgements_(acknowledgements),
        period_(pace.period),
        hand_over_(pace.hand_over),
        owner_(owner),
        clock_(clock) {}

  // At the head: nodes have numbers below this. Frames of others, or with values of others, are
  // left out, for what is kept of nodes is as long as the highest number. The sender may be honest,
  // and have merged what one of its children says; so its link stays.
  void LimitNodes(uint32_t limit) { node_limit_ = limit; }
  uint32_t node_limit() const { return node_limit_; }

  // A failure means that the link must be closed.
  Status OnSchema(Sender& sender, std::string_view payload);
  Status OnFrames(Sender& sender, std::string_view payload);
  Status OnStreamEnd(Sender& sender, std::string_view payload);
  // The child goes on over another link.
  void OnHandOver(Sender& sender);
  // The link is gone.
  void Remove(Sender& sender);

  // See Children.
  void HandOnLost(Nanos row, const NodeSet& nodes);
  void HandOnLost(Nanos now);
  Nanos next_lost() const;
  void StandInForMissing(Nanos row, const NodeSet& nodes);
  void StandInForSilent(Nanos tick);
  void StandInForEach(const NodeSet& nodes);
  void ForEachOwn(const std::function<void(uint32_t index, Nanos tick, const Schema& schema,
                                           std::span<const Reduced> values)>& f) const;

  // Those that contribute now: at the head of a large step all others have connections, too.
  const std::vector<Sender*>& contributing() const { return contributing_; }

 private:
  using StreamState = Sender::StreamState;
  // What a child that has left its link, or whose link is gone, last sent of itself.
  struct LastOwn {
    KnownValues known;
    Nanos tick;
    Nanos until;  // so long it may come back
  };
  using LastOwns = std::unordered_map<uint32_t, LastOwn>;
  // Of so many; of more, some are handed on before a row goes without their nodes.
  static constexpr size_t kMaxLastOwn = 256;
  // A tick may lie so far ahead of the time, as the clock of this machine, or of a node, may be
  // wrong; and further ones do not begin to wait while so many do.
  static constexpr Nanos kMaxAhead = 60 * kSecond;
  static constexpr size_t kMaxWaiting = 512;
  // Last values of some nodes that there are and others that there are not come in parts when they
  // are refused. A child that goes on with it has no parts of that, and further ones are left out.
  static constexpr uint32_t kMaxRefused = 8;

  void UpdateContributing(Sender& sender);
  bool HasNewestOwn(const Sender& sender) const;
  bool IsNewest(uint64_t key, TickMerger::Id contributor) const;
  bool ForgetNewest(uint64_t key, TickMerger::Id contributor);
  void EndStream(Sender& sender, Stream stream);
  void StopStreams(Sender& sender);
  Status OnFrame(Sender& sender, std::string_view bytes);
  bool IsTooEarly(Nanos tick);
  // Whether there may be all nodes that it names.
  bool Knows(const Frame& frame) const;
  void OnUnknown(Sender& sender, const Frame& frame, TickMerger::Source source);
  void OnLastValues(Sender& sender, const Frame& frame, const Schema::Ptr& schema,
                    TickMerger::Source source);
  void StandInFor(Sender& sender);
  void StandInForGap(Sender& sender, Nanos tick);
  void KeepLastOwn(const Sender& sender);
  void KeepBefore(Sender& sender);
  LastOwns::iterator HandOn(LastOwns::iterator at);
  void HandOnLostIf(const std::function<bool(const LastOwn& last)>& is);

  TickMerger& merger_;
  Acknowledgements& acknowledgements_;
  const Nanos period_;
  const Nanos hand_over_;
  Owner& owner_;
  const Clock& clock_;
  SchemaCache schemas_;
  uint32_t node_limit_ = NodeSet::kMaxNodes;
  Nanos soon_ = 0;                     // no tick until then is too early
  std::vector<Sender*> contributing_;  // in any order
  // Child and stream -> its newest contributor.
  std::unordered_map<uint64_t, TickMerger::Id> newest_;
  // The same, when it is between two links.
  std::unordered_map<uint64_t, TickMerger::Id> leaving_;
  LastOwns last_own_;
};

}  // namespace sonde::tree
