// Getting moments to the head once each: a daemon's sender, and what a receiver has had.
//
// A part is kept until whoever it was sent to has merged it, and is sent again, under its number,
// when its link is lost before that. A receiver that gets it over both links takes it once. What
// the head has merged is kept until it is stored, and sent again if another head goes on before.
// Only a parent that dies between merging a part and acknowledging it leaves it unknown; it is then
// sent again to the next one.
//
// Thread safety: the loop's thread only. Links belong to the caller.
#pragma once

#include <cstdint>
#include <deque>
#include <set>
#include <string>

#include "daemon/link/link.h"
#include "daemon/tree/moments_message.h"

namespace sonde::tree {

class MomentsSender {
 public:
  // To be sent with the next part.
  void Add(collect::Moments moments) { Merge(std::move(moments), waiting_); }
  // Sends what waits; nullptr: it goes on waiting.
  void Flush(Link* link);
  void OnAck(const MomentsAck& ack);
  // What is under way on it is to be sent again.
  void OnLost(const Link* link);
  // What the head had and had not stored is to be sent again.
  void OnNewHead();
  // Whether everything has arrived.
  bool delivered() const { return waiting_.empty() && arrived_ == parts_.size(); }

  // So many parts are kept, and so many bytes of those that have arrived; of more the oldest is
  // taken to be safe.
  static constexpr size_t kMaxParts = 1024;
  static constexpr size_t kMaxArrivedBytes = 256u << 10;

 private:
  struct Part {
    uint64_t sequence;
    std::string bytes;     // the message
    const Link* link;      // nullptr: to be sent again
    bool arrived = false;  // and is not known to be safe
  };
  void Arrived(uint64_t sequence);
  void Forget(const std::deque<Part>::iterator& part);

  collect::Moments waiting_;
  std::deque<Part> parts_;
  size_t arrived_ = 0;        // of parts_
  size_t arrived_bytes_ = 0;  // of these
  uint64_t sequence_ = 0;
};

// The parts of one sender that were merged here.
class PartsSeen {
 public:
  // False if it was there before.
  bool Add(uint64_t sequence);

 private:
  static constexpr size_t kMaxAbove = 1024;

  uint64_t below_ = 1;        // all before this one
  std::set<uint64_t> above_;  // and these
};

}  // namespace sonde::tree
