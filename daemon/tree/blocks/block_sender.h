// A node's blocks on their way up to the archive, its own and its children's.
//
// Own blocks go up at the rate that the head allows, no more than kWindow bytes of them on their
// way at once, and are kept until the archive has acknowledged them (BlockShelf); so what is lost
// with a link or an inner node is sent again, and what cannot be sent in time is thinned, never
// waited for. A child's blocks are passed on as they are; the child keeps them. Blocks wait here so
// that frames need not wait: the link gets no more at a time than kLinkWindow. A schema goes up
// when the archive asks for it, and most nodes have the same.
//
// At the end of the step a node has until a deadline. It thins what is left to what can be stored
// until then, and starts at a moment of its own, so that the nodes of a large step do not all send
// at once.
//
// Nothing here looks at the clock: Run gets the time, monotonic, and says when it wants to be
// called again.
//
// Thread safety: the loop's thread only. Links belong to the caller.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <limits>
#include <string>

#include "core/time.h"
#include "daemon/link/link.h"
#include "daemon/message/message.h"
#include "daemon/tree/blocks/block_joiner.h"
#include "daemon/tree/blocks/block_shelf.h"
#include "series/block/joined.h"
#include "series/store/store.h"

namespace sonde::tree {

class BlockSender {
 public:
  static constexpr Nanos kNever = std::numeric_limits<Nanos>::max();
  // Own bytes that may be on their way to the archive; one block in any case.
  static constexpr size_t kWindow = 64u << 10;
  // The most that one turn adds to the link.
  static constexpr size_t kLinkWindow = 64u << 10;
  // The most that a turn with frames behind it adds.
  static constexpr size_t kBeforeFrames = 16u << 10;
  // With so much waiting in the link nothing is added: frames behind it come late, and with a
  // little more waiting frames are held back (Uplink::kBacklog).
  static constexpr size_t kLinkBusy = 8u << 10;
  static constexpr Nanos kTurn = 10 * kMillisecond;
  // Children's blocks wait for this node's next frames, no longer than that, and go up with them:
  // the receiver then wakes up once for all of a tick. Blocks of nodes that leave wait a moment for
  // each other.
  static constexpr Nanos kGather = 1500 * kMillisecond;
  static constexpr Nanos kGatherInHurry = 10 * kMillisecond;
  // The same of those that are to be joined: the more of them, the less each takes.
  static constexpr Nanos kGatherToJoin = 50 * kMillisecond;
  // A message has so many bytes, and one block more.
  static constexpr size_t kMessage = 32u << 10;
  // When the way up has been slow for so long, what waits is thinned; and again after so long, to
  // half each time, until it is twice what the archive has taken meanwhile, or kMayWait.
  static constexpr Nanos kSlowAfter = 2 * kSecond;
  static constexpr Nanos kThinEvery = 5 * kSecond;
  static constexpr size_t kMayWait = 16u << 10;
  // Children's blocks that wait here; more are left to the children, who send them again.
  static constexpr size_t kMaxRelayed = 4u << 20;
  // When unacknowledged blocks are sent again over the same link: at first, and at most. They were
  // not lost there but with an inner node further up, or are late; so there is no hurry, and at the
  // end no time.
  static constexpr Nanos kPatience = 5 * kSecond;
  static constexpr Nanos kMostPatience = 60 * kSecond;

  // How the way up does: a parent that is slow, or an archive.
  struct Pressure {
    bool link_full = false;    // it took less than there was
    Nanos unacknowledged = 0;  // how long the oldest block has been on its way
    size_t waiting = 0;        // bytes here that the archive has not got
    bool slow() const { return link_full || unacknowledged > 2 * kSecond; }
  };

  // Takes this link from now on; nullptr: none for now.
  void Use(Link* link);
  // The link leads to who takes joined blocks: the head, or a child of the head.
  enum class Joins : uint8_t { kNo, kForHead, kForParent };
  void SetJoins(Joins joins) { joins_ = joins; }
  // Whether frames are held back for want of room in the link: then no block takes it.
  void YieldToFrames(bool yields) { yields_ = yields; }
  // Blocks sent so far belong to an archive that is no more (its head died).
  void NewArchive() { shelf_.NewArchive(); }
  void SetBudget(const BlockBudget& budget);
  // Of the blocks here, bytes.
  void SetMemory(size_t bytes);

  // The node whose blocks these are, once it has an index.
  void SetNode(uint32_t node) { node_ = node; }

  void Add(const std::string& group, const SealedBlock& block) { shelf_.Add(group, block); }
  void PassOn(BlockMessage block);
  // Of a child that has joined them.
  void PassOn(const JoinedBlocks& joined, std::string_view bytes);
  // The archive stands still for a while, as the job does: nothing is thinned for it.
  void SetSuspended(bool suspended) { suspended_ = suspended; }
  // Of an own block.
  void OnAck(const BlockAck& ack);

  // No block comes after this; what there is must be stored at `deadline`.
  void Finish(Nanos now, Nanos deadline);
  // Run can get nothing more into the archive.
  bool delivered() const;
  // There are own blocks of which no word has come, neither that the archive has them nor that it
  // does not take them.
  bool unheard() const { return !refused_ && shelf_.fresh_bytes() > 0; }

  // Sends what may go now. When to call again; sooner when anything else was called.
  Nanos Run(Nanos now) { return Run(now, false); }
  // The same when frames are about to follow over the same link.
  Nanos RunBeforeFrames(Nanos now) { return Run(now, true); }

  Pressure pressure(Nanos now) const;
  size_t kept_bytes() const { return shelf_.kept_bytes(); }
  uint64_t dropped_samples() const { return shelf_.dropped_samples(); }
  const BlockShelf& shelf() const { return shelf_; }

 private:
  Nanos Run(Nanos now, bool frames_follow);
  Nanos RunAll(Nanos now);
  void ChooseWhenToPassOn(Nanos now);
  Nanos MindPressure(Nanos now);
  void Pass(const BlockMessage& block);
  void PassJoined();
  void SendJoined(const std::string& joined);
  void PassOnApart(const JoinedBlocks& joined);
  void SendOut();
  Nanos RunRelayed(Nanos now);
  Nanos RunOwn(Nanos now);
  void SendOwn(const BlockShelf::Next& next, Nanos now);
  bool LinkIsFull();
  void Refill(Nanos now);

  Link* link_ = nullptr;
  BlockShelf shelf_;
  BlockShelf::Limits limits_;
  BlockBudget budget_;
  uint32_t node_ = 0;
  std::deque<BlockMessage> relayed_;
  size_t relayed_bytes_ = 0;
  bool relayed_hurry_ = false;  // one of them is
  Joins joins_ = Joins::kNo;
  std::deque<std::string> relayed_joined_;
  BlockJoiner joiner_;      // of a turn
  Nanos gather_until_ = 0;  // 0: nothing is relayed
  bool frames_follow_ = false;
  std::string out_;  // the next message
  size_t turn_bytes_ = 0;
  bool yields_ = false;
  bool link_full_ = false;  // in the last turn
  double tokens_ = 0;       // bytes that may go; a block may borrow
  Nanos refilled_ = 0;
  Nanos hold_until_ = 0;  // the archive takes nothing for now
  Nanos patience_ = kPatience;
  bool suspended_ = false;
  Nanos slow_since_ = 0;  // 0: it is not
  Nanos thin_at_ = 0;
  size_t taken_ = 0;  // bytes that were acknowledged since the last thinning
  bool refused_ = false;
  bool finishing_ = false;
  Nanos start_at_ = 0;  // of the end's sending
};

}  // namespace sonde::tree
