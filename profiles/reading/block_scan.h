// Walks over the stored blocks of a profile in the order of their keys, and passes those of other
// times without reading them.
//
// The blocks of a stream (a node's group, as one writer stored it) follow one another in time by
// their sequence (keys::kPartShift), so the first one that reaches into a time is found by halving.
// Those of a group of the past (series/store/past.h) do not, and are looked at one by one.
//
// Thread safety: none.
#pragma once

#include <leveldb/db.h>

#include <memory>
#include <string>
#include <string_view>

#include "core/status.h"
#include "core/time.h"
#include "profiles/model/block_key.h"

namespace sonde {

class BlockScan {
 public:
  // From the first block whose key is `from` or behind. Blocks are passed that begin after `last`,
  // or that end before `first`; one whose header cannot be read is given where it is met.
  BlockScan(leveldb::DB& db, std::string profile, const std::string& from, Nanos first, Nanos last);

  // The next block; false behind the last one, and at a key that names none.
  bool Next();
  const BlockKey& key() const { return key_; }
  std::string_view bytes() const;  // until Next
  // What LevelDB could not read, it passed.
  leveldb::Status status() const { return blocks_->status(); }

 private:
  enum class Place { kBefore, kWithin, kAfter, kApart };
  bool Read();
  Place PlaceOf() const;
  bool SeekTo(uint64_t sequence);
  void PassBefore();
  void PassStream();

  const std::string profile_;
  const std::string prefix_;
  const Nanos first_;
  const Nanos last_;
  const std::unique_ptr<leveldb::Iterator> blocks_;
  bool begun_ = false;
  BlockKey key_;
};

}  // namespace sonde
