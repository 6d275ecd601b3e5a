#include "daemon/tree/blocks/block_joiner.h"

#include <iterator>
#include <utility>

#include "core/log.h"
#include "series/block/joined.h"

namespace sonde::tree {
namespace {

JoinedEntry EntryOf(const BlockMessage& block) {
  JoinedEntry entry;
  entry.node = block.node;
  entry.group = block.group;
  entry.sequence = block.sequence;
  entry.first = block.first;
  entry.samples = block.samples;
  entry.reasons = block.reasons;
  entry.stored = block.stored;
  return entry;
}

}  // namespace

std::vector<BlockMessage> TakeApart(const JoinedBlocks& joined) {
  std::vector<BlockMessage> blocks;
  const auto all = DecodeJoined(joined);
  if (!all.ok()) return blocks;
  BlockEncoder encoder;
  for (size_t i = 0; i < joined.entries.size(); ++i) {
    const JoinedEntry& entry = joined.entries[i];
    auto bytes = BlockOfEntry(joined, *all, i, encoder);
    if (!bytes.ok()) continue;
    blocks.push_back({entry.node, entry.group, entry.sequence, entry.first, entry.samples,
                      entry.reasons, entry.stored, true, "", *std::move(bytes)});
  }
  return blocks;
}

bool BlockJoiner::Add(BlockMessage& block) {
  if (!block.hurry || !block.schema.empty() || block.first > block.sequence) return false;
  const auto info = ReadBlockInfo(block.bytes);
  if (!info.ok() || info->rows > kMostRows) return false;
  bytes_ += block.bytes.size();
  waiting_[info->schema_id].push_back({std::move(block), info->rows});
  return true;
}

BlockJoiner::Ready BlockJoiner::Take(size_t least) {
  Ready ready;
  if (waiting_.empty()) return ready;
  constexpr size_t kTogether = kMostJoinedRows / kMostRows;
  BlockEncoder encoder;
  for (auto& [schema, all] : waiting_) {
    std::vector<BlockMessage> some;
    size_t rows = 0;
    for (auto& [block, more] : all) {
      if (rows + more > kMostJoinedRows && some.size() >= kTogether) {
        Join(std::exchange(some, {}), least, encoder, ready);
        rows = 0;
      }
      rows += more;
      some.push_back(std::move(block));
    }
    Join(std::move(some), least, encoder, ready);
  }
  waiting_.clear();
  bytes_ = 0;
  return ready;
}

// One that is damaged costs the others nothing: then all go as they came, and the head says no to
// that one.
void BlockJoiner::Join(std::vector<BlockMessage> blocks, size_t least, BlockEncoder& encoder,
                       Ready& ready) {
  if (blocks.size() >= least) {
    std::vector<JoinedEntry> entries;
    std::vector<std::string_view> bytes;
    for (const BlockMessage& block : blocks) {
      entries.push_back(EntryOf(block));
      bytes.push_back(block.bytes);
    }
    auto joined = JoinBlocks(std::move(entries), bytes, encoder);
    if (joined.ok()) return ready.joined.push_back(*std::move(joined));
    log::Debug("blocks of {} nodes go one by one: {}", blocks.size(), joined.status().message());
  }
  std::move(blocks.begin(), blocks.end(), std::back_inserter(ready.single));
}

}  // namespace sonde::tree
