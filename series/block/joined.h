// Joined blocks: a few rows of each of many nodes that have the same series, in one block.
//
// At the end of a step of tens of thousands of nodes each node has one row left of a group, and a
// block of one row is mostly description: which kind and scale each column has. As rows of one
// block they share that, and what is alike on many nodes costs next to nothing: measured on 344
// series, 0.3 to 0.65 kB a node where blocks of their own take 0.8 to 1.4.
//
// The format, version 1, is specified in docs/format.md; written to disk and to links, never to
// change. Readers trust nothing of it.
//
// Thread safety: functions without state; a BlockEncoder is used by one thread at a time.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/status.h"
#include "core/time.h"
#include "series/block/block.h"

namespace sonde {

// One of the blocks that were joined, as it was before.
struct JoinedEntry {
  uint32_t node = 0;
  std::string group;
  uint64_t sequence = 0;
  uint64_t first = 0;    // sequence of the first block that it stands for
  uint64_t samples = 0;  // that its rows are made of
  uint32_t reasons = 0;  // why these are more than the rows
  uint64_t stored = 0;   // bytes of the node in the archive, once it has this
  std::vector<Nanos> times;
};

struct JoinedBlocks {
  std::vector<JoinedEntry> entries;
  BlockInfo info;          // of the block; its times mean nothing
  std::string_view block;  // in the bytes that were read
};

// Together the blocks have at most kMaxBlockRows rows; they are of one schema. An entry's times are
// those of its block, whatever they were.
Result<std::string> JoinBlocks(std::vector<JoinedEntry> entries,
                               std::span<const std::string_view> blocks, BlockEncoder& encoder);

// Checks all but what is compressed. kUnsupported for a newer version.
Result<JoinedBlocks> ReadJoined(std::string_view bytes);

// The block as rows of all entries, one after the other.
Result<Block> DecodeJoined(const JoinedBlocks& joined);
// The rows of one entry among these.
Block RowsOfEntry(const JoinedBlocks& joined, const Block& all, size_t entry);
// The same as a block of its own.
Result<std::string> BlockOfEntry(const JoinedBlocks& joined, const Block& all, size_t entry,
                                 BlockEncoder& encoder);

}  // namespace sonde
