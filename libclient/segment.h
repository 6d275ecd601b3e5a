// The memory this process shares with its daemon: made, sealed, mapped, and separated in a fork.
//
// Thread safety: none; the caller holds the library's mutex. The mapping, once made, stays where it
// is until the process ends, so pointers into it never dangle.
#pragma once

#include <cstddef>
#include <cstdint>

#include "libclient/layout.h"

namespace sonde::client {

class Segment {
 public:
  // Zero-initialised: usable before any constructor has run.
  constexpr Segment() = default;

  // Makes an empty segment. False, with errno set, if a system call fails.
  bool Create();

  // Gives everything back; only while nothing points into it.
  void Destroy();

  // In the child of a fork: from now on this process writes into memory of its own, not into its
  // parent's. Async-signal-safe.
  void Detach();

  // In such a child: makes a segment of its own with the first `records` bytes of records, `gauges`
  // unset gauges and no sums, at the same address.
  bool Renew(size_t records, size_t gauges);

  // Makes sure that memory exists behind these bytes.
  bool ReserveRecords(size_t end) { return Reserve(kRecordsOffset, records_, end, kRecordsSize); }
  bool ReserveCells(size_t end) {
    return Reserve(kCellsOffset, cells_, end, kMaxMetrics * kCellSize);
  }
  bool ReserveMoments(size_t end) {
    return Reserve(kMomentsOffset, moments_, end, kMoments * sizeof(Moment));
  }
  size_t moments() const { return moments_ / sizeof(Moment); }  // that have memory
  bool ReservePast(size_t end) {
    return Reserve(kPastOffset, past_, end, kPastValues * sizeof(PastValue));
  }
  size_t past() const { return past_ / sizeof(PastValue); }  // that have memory
  bool ReserveOwners() { return Reserve(kOwnersOffset, owners_, kOwnersSize, kOwnersSize); }
  bool ReserveShard(size_t shard, size_t from, size_t to);
  bool ReserveDistribution(size_t index);

  int fd() const { return fd_; }
  // Whether fd() still is what Create() opened: applications close descriptors they did not open.
  bool OwnsFd() const;

  Header* header() const { return reinterpret_cast<Header*>(base_); }
  char* records() const { return base_ + kRecordsOffset; }
  Cell* cell(size_t slot) const { return reinterpret_cast<Cell*>(base_ + kCellsOffset) + slot; }
  Moment* moment(size_t index) const {
    return reinterpret_cast<Moment*>(base_ + kMomentsOffset) + index;
  }
  PastValue* past_value(size_t index) const {
    return reinterpret_cast<PastValue*>(base_ + kPastOffset) + index;
  }
  uint16_t* owners() const { return reinterpret_cast<uint16_t*>(base_ + kOwnersOffset); }
  Count* shard(size_t index) const {
    return reinterpret_cast<Count*>(base_ + kShardsOffset + index * kShardSize);
  }
  Distribution* distribution(size_t index) const {
    return reinterpret_cast<Distribution*>(base_ + kDistributionsOffset +
                                           index * kDistributionSize);
  }

 private:
  static constexpr size_t kStep = 16384;

  bool Open();
  bool Reserve(size_t offset, size_t& have, size_t end, size_t limit);
  bool Allocate(size_t offset, size_t size);

  char* base_ = nullptr;
  int fd_ = -1;
  uint64_t inode_ = 0;
  size_t records_ = 0;  // bytes reserved
  size_t cells_ = 0;
  size_t moments_ = 0;
  size_t past_ = 0;
  size_t owners_ = 0;
};

}  // namespace sonde::client
