// What a node has for the archive: the blocks it sealed, kept until they are stored and longer, and
// thinned where there is no room for all of them.
//
// Three limits hold. What the node has in the archive stays within its share of the profile: when
// it would exceed the share, all blocks are thinned, also stored ones, which then go up again and
// replace the finer blocks there; so a long step has one resolution from begin to end. What waits
// to be sent stays within half the memory: when the archive, or the way to it, is slow, only that
// is thinned. And all blocks here stay within the memory: then those that are stored are forgotten,
// oldest first, and keep the resolution they have. Time is never left out: neighbours are put
// together until a block is one row, and only a group whose series change all the time can lose its
// oldest blocks for want of memory (dropped_samples).
//
// Blocks that are on their way are never changed, so an acknowledgement means what was sent.
//
// Thread safety: none; the daemon's loop.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/time.h"
#include "series/block/block.h"
#include "series/block/schema.h"
#include "series/block/thin.h"
#include "series/store/store.h"

namespace sonde::tree {

// Why blocks were thinned: bits.
enum ThinReason : uint32_t {
  kThinnedForShare = 1,  // of the profile's limit
  kThinnedForSlow = 2,   // it waited too long for the archive
  kThinnedForEnd = 4,    // the end of the step left no time for more
};

class BlockShelf {
 public:
  struct Limits {
    size_t share = 48u << 20;  // bytes of this node's blocks in the archive
    size_t memory = 8u << 20;  // bytes of blocks here
  };

  enum class State : uint8_t { kWaiting, kSent, kStored };
  // One or more blocks of a group, put into one.
  struct Item {
    uint64_t first = 0;  // sequences it stands for
    uint64_t last = 0;   // and the one it has
    Schema::Ptr base;    // of the samples
    std::shared_ptr<const std::string> bytes;
    std::vector<uint32_t> weights;  // of its rows; empty: they are samples
    uint32_t factor = 1;            // samples a row is made of
    uint32_t reasons = 0;           // ThinReason
    uint64_t samples = 0;
    State state = State::kWaiting;
    size_t archived = 0;  // bytes of finer blocks that the archive has in its place
    Nanos due = 0;        // when it is sent again
    Nanos patience = 0;   // how long after that
    Nanos sent_at = 0;
    bool schema_wanted = false;  // the archive has not got it
    // Of the bytes, made anew: it is seldom asked for.
    Schema::Ptr schema() const { return weights.empty() ? base : ThinnedSchema(*base); }
    // The archive has nothing yet of this time.
    bool fresh() const { return state != State::kStored && archived == 0; }
  };
  struct Next {
    const std::string* group = nullptr;
    Item* item = nullptr;  // nullptr: nothing to send now; valid until the next call that changes
  };

  void SetLimits(const Limits& limits);
  const Limits& limits() const { return limits_; }

  void Add(const std::string& group, const SealedBlock& block);
  // What to send: what is due again, what waits, the oldest first, then what replaces finer blocks;
  // these go first where there is no room for more. `last`: there will be no time to replace.
  Next NextToSend(Nanos now, bool last = false);
  // The item of that group and sequence, if it was sent.
  Item* Sent(const std::string& group, uint64_t sequence);
  // Everything that is on its way is due again.
  void Resend();
  // Another archive begins: we no longer replace what the former one has stored.
  void NewArchive();
  // Thins the blocks of which the archive has nothing yet to `bytes`, as far as that goes.
  void ThinFresh(size_t bytes, ThinReason reason);

  // What the node has in the archive, once `item` is stored.
  size_t StoredWith(const Item& item) const;
  size_t stored_bytes() const;
  size_t fresh_bytes() const;    // not stored in any form
  size_t pending_bytes() const;  // these, and those that replace finer ones
  size_t sent_bytes() const;     // of these, on their way
  size_t kept_bytes() const;     // all that is here
  Nanos oldest_sent() const;     // when the one that is longest on its way first went; 0: none
  Nanos next_due() const;        // INT64_MAX: nothing is on its way
  uint64_t dropped_samples() const { return dropped_samples_; }

 private:
  enum class Scope : uint8_t { kFresh, kAll };
  struct Group {
    std::deque<Item> items;  // by sequence
    uint32_t factor = 1;     // of what comes
  };

  void Fit();
  bool ThinOnce(Scope scope, ThinReason reason, BlockEncoder& encoder);
  bool ThinGroup(Group& group, Scope scope, ThinReason reason, BlockEncoder& encoder);
  bool Regroup(Group& group, Scope scope, uint32_t factor, ThinReason reason,
               BlockEncoder& encoder);
  bool Replace(Group& group, size_t at, size_t count, uint32_t factor, ThinReason reason,
               BlockEncoder& encoder);
  ThinnedShape ShapeOf(const Schema& base);
  void Settle();
  bool Forget();
  template <typename F>
  size_t Sum(F of) const;

  Limits limits_;
  std::map<std::string, Group> groups_;
  std::deque<std::pair<uint64_t, ThinnedShape>> shapes_;  // by the base's id
  size_t settled_bytes_ = 0;                              // in the archive, and forgotten here
  uint64_t dropped_samples_ = 0;
};

}  // namespace sonde::tree
