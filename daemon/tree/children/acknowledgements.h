// What the head or an inner node tells its children of their frames: that they have arrived, and at
// the head that they are safe.
//
// Acknowledgement is from end to end: a child is told that a frame has arrived (kAck) when the head
// has what it became part of. Frames go up under a number of this daemon's (Forwarded), the head
// acknowledges those (Acknowledged), and what that means for each child goes down with the pulse
// about once a second, which is how a child knows that its parent is there. At the head a frame has
// arrived when it is here, whatever its tick still waits for; and the head's own children hear in
// addition up to where it is safe: in the archive, where another head would find it. A child that
// has ended waits for its word, so it is told at once, whatever has become of its streams.
//
// Links belong to whoever accepted them; an Account lives from Add to Remove, for one link.
//
// Thread safety: the loop's thread only.
#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "core/status.h"
#include "daemon/link/link.h"
#include "daemon/tree/ring.h"
#include "daemon/tree/tick_merger.h"

namespace sonde::tree {

// kUntilSafe: at the head. Its children keep frames and moments that have arrived until they are
// safe as well, in case another head goes on.
enum class Keep { kUntilArrived, kUntilSafe };

class Acknowledgements {
 public:
  // What is known of a child's frames that came over one link.
  class Account {
   public:
    Account(Link& link, uint32_t sender) : link_(link), sender_(sender) {}
    // TickMerger::Source::sender of its frames.
    uint32_t sender() const { return sender_; }
    // Its last values have come: it waits for word of whatever it sends from now on.
    void SetEnded() { ended_ = true; }
    bool ended() const { return ended_; }

   private:
    friend class Acknowledgements;
    struct Pending {
      uint64_t number = 0;   // the child's
      uint64_t sent_as = 0;  // ours, once `sent`
      bool sent = false;
      bool last_values = false;
    };

    Link& link_;
    const uint32_t sender_;
    bool ended_ = false;
    size_t place_ = SIZE_MAX;  // in senders_
    Ring<Pending> pending_;    // at the head: frames that are in no row yet
    uint64_t acked_ = 0;
    uint64_t in_rows_ = 0;  // at the head: frames up to it are in rows
    uint64_t marked_ = 0;   // in_rows_ when BeginSafe was called
    uint64_t safe_ = 0;
    uint64_t told_ = 0;     // up to it the child was told
    uint64_t awaited_ = 0;  // up to it the child waits for word
  };

  explicit Acknowledgements(Keep keep) : keep_(keep) {}

  // The Account stays where it is.
  Account& Add(Link& link);
  void Remove(Account& account);

  // A frame has come, and is about to be Forwarded. kLimit if too many are under way.
  Status OnFrame(Account& account, uint64_t number, bool last_values);
  // Frames that are under way come again over the child's next link.
  void OnHandOver(Account& account) { account.pending_.Clear(); }
  // The child waits until it hears that the head has its frames.
  bool Awaits(const Account& account) const { return !at_head() && !account.pending_.empty(); }

  // These frames went up under `number`; at the head, whose rows they are in, 0.
  void Forwarded(std::span<const TickMerger::Source> sources, uint64_t number);
  // The head has all numbers up to this one.
  void Acknowledged(uint64_t number);
  // The head does not take this frame of last values as it is: its child has to take it apart.
  void Refuse(TickMerger::Source source);
  // What went up under `number` was refused: these links brought it.
  std::vector<Link*> BroughtIn(uint64_t number) const;

  // Tells the child how far it is if it waits for that, or much has come since.
  void Settle(Account& account);
  // Tells it in any case.
  void Pulse(Account& account);

  // At the head: what has arrived up to BeginSafe is safe with EndSafe.
  void BeginSafe();
  void EndSafe();

 private:
  // A child keeps fewer frames.
  static constexpr size_t kMaxPending = 4096;
  // So many frames are acknowledged at once and not with the next pulse: at short ticks a child
  // would have to keep too many.
  static constexpr uint64_t kMaxUntold = 64;

  static void Arrived(Account& account, uint64_t number, bool last_values);
  void TakeOffArrived(Account& account) const;
  void Tell(Account& account) const;
  bool at_head() const { return keep_ == Keep::kUntilSafe; }

  const Keep keep_;
  uint64_t acknowledged_ = 0;
  std::unordered_map<uint32_t, Account> accounts_;  // by sender
  uint32_t next_sender_ = 1;
  // Accounts for which a frame has ever come, in any order: at the head of a large step all other
  // nodes have connections, too.
  std::vector<Account*> senders_;
};

}  // namespace sonde::tree
