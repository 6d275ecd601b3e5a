// Joins blocks of many nodes that have the same series (series/block/joined.h), at the nodes of
// the two levels below the head and at the end of a step: the head then has a hundredth of the
// messages and records, and less than half of the bytes.
//
// Blocks wait here until they are taken, no longer than a turn of BlockSender.
//
// Thread safety: none; the daemon's loop.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "daemon/message/message.h"
#include "series/block/block.h"
#include "series/block/joined.h"

namespace sonde::tree {

// The blocks as they were before; those that cannot be read are left out.
std::vector<BlockMessage> TakeApart(const JoinedBlocks& joined);

class BlockJoiner {
 public:
  // Blocks with more rows gain nothing by being joined.
  static constexpr size_t kMostRows = 4;
  // As many blocks go together at least, and rows at most. Further down fewer than kLeastBelow are
  // left to the parent, which has more to join them with.
  static constexpr size_t kLeastBlocks = 2;
  static constexpr size_t kLeastBelow = 12;
  static constexpr size_t kMostJoinedRows = 64;

  struct Ready {
    std::vector<std::string> joined;   // payloads of kJoinedBlocks
    std::vector<BlockMessage> single;  // those that nothing was joined with
  };

  // Takes the block if it may be joined: its node leaves, it has few rows and brings no schema.
  // False: it stays the caller's.
  bool Add(BlockMessage& block);
  // All that was added; `least`: as many blocks go together.
  Ready Take(size_t least = kLeastBlocks);

  bool empty() const { return waiting_.empty(); }
  // What these will take, about; never less than a quarter of what they take now.
  size_t bytes() const { return bytes_ / 2; }

 private:
  void Join(std::vector<BlockMessage> blocks, size_t least, BlockEncoder& encoder, Ready& ready);

  struct Waiting {
    BlockMessage block;
    size_t rows;
  };
  std::map<uint64_t, std::vector<Waiting>> waiting_;  // by schema
  size_t bytes_ = 0;
};

}  // namespace sonde::tree
