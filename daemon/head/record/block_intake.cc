#include "daemon/head/record/block_intake.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <span>
#include <utility>

#include "core/log.h"
#include "core/text/hostlist.h"
#include "daemon/tree/blocks/block_shelf.h"
#include "series/block/block.h"

namespace sonde::head {

using tree::BlockAck;

namespace {

constexpr size_t kMaxSchemas = size_t{1} << 20;
const Status kTooManyWait(Code::kLimit,
                          "more came at a time than may wait until it is known what is in them");

std::string Reasons(uint32_t reasons, uint64_t limit) {
  std::vector<std::string> all;
  if ((reasons & tree::kThinnedForShare) != 0) {
    all.push_back(fmt::format("to stay within profile_limit ({} MiB)", limit >> 20));
  }
  if ((reasons & tree::kThinnedForSlow) != 0) {
    all.emplace_back("since the archive was slow to take them");
  }
  if ((reasons & tree::kThinnedForEnd) != 0) {
    all.emplace_back("since the end of the step left no time for more");
  }
  return fmt::format("{}", fmt::join(all, "; "));
}

}  // namespace

tree::BlockBudget BlockIntake::Budget(uint32_t nodes) const {
  const uint64_t n = std::max<uint32_t>(nodes, 1);
  return {.share = limit_ / 4 * 3 / n,
          .rate = std::max<uint64_t>(kRate / n, 1),
          .end_rate = std::max<uint64_t>(kEndRate / n, 1)};
}

// nullptr: the archive has it.
Result<Schema::Ptr> BlockIntake::SchemaOf(const tree::BlockMessage& block, const BlockInfo& info) {
  const auto known = columns_.find(info.schema_id);
  if (known != columns_.end()) {
    if (known->second == info.columns) return Schema::Ptr();
    return Status(Code::kCorrupt, "its schema has another number of columns");
  }
  if (block.schema.empty()) return Status(Code::kNotFound, "its schema is not known");
  Result<Schema::Ptr> schema = SchemaCache().Decode(block.schema);
  if (!schema.ok()) return schema.status();
  if ((*schema)->id() != info.schema_id || (*schema)->size() != info.columns) {
    return Status(Code::kCorrupt, "it came with another schema than its own");
  }
  if (columns_.size() == kMaxSchemas) return Status(Code::kLimit, "the step has too many schemas");
  return schema;
}

void BlockIntake::Remember(const BlockKey& key, const Status& why) {
  if (why_refused_.ok()) why_refused_ = why;
  if (refused_.size() < kMaxRefused) {
    refused_.insert(key);
  } else {
    refused_too_many_ = true;
  }
}

void BlockIntake::Forget(const BlockKey& last, uint64_t first) {
  if (refused_.empty()) return;
  BlockKey from = last;
  from.sequence = first;
  refused_.erase(refused_.lower_bound(from), refused_.upper_bound(last));
}

bool BlockIntake::MayAsk(Waiting& waiting) {
  const Nanos now = clock_.Monotonic();
  if (waiting.asked != 0 && now - waiting.asked <= kAskAgain) return false;
  waiting.asked = now;
  return true;
}

bool BlockIntake::MayWait(size_t bytes) {
  if (waiting_bytes_ + bytes > std::clamp(limit_, kLeastWaiting, kMostWaiting)) return false;
  waiting_bytes_ += bytes;
  return true;
}

// The first block's node is asked, and all blocks wait: its block comes twice then.
void BlockIntake::AskOrWait(const JoinedBlocks& joined, std::string_view bytes) {
  Waiting& waiting = waiting_[joined.info.schema_id];
  std::span<const JoinedEntry> entries = joined.entries;
  const bool asks = MayAsk(waiting);
  if (asks) AckAll(entries.first(1), BlockAck::kUnknownSchema);
  if (MayWait(bytes.size())) {
    waiting.joined.emplace_back(bytes);
  } else {
    RefuseAll(entries.subspan(asks ? 1 : 0), kTooManyWait);
  }
}

void BlockIntake::AckAll(std::span<const JoinedEntry> entries, uint32_t result) {
  for (const JoinedEntry& entry : entries) {
    ack_({entry.node, entry.group, entry.sequence, result, true});
  }
}

void BlockIntake::RefuseAll(std::span<const JoinedEntry> entries, const Status& why) {
  for (const JoinedEntry& entry : entries) {
    Remember({entry.node, entry.group, entry.sequence}, why);
  }
  AckAll(entries, BlockAck::kRefused);
}

// The node that was asked may be lost, or its answer.
Nanos BlockIntake::AskAgain() {
  Nanos next = kNever;
  for (auto& [schema, waiting] : waiting_) {
    const size_t alone = waiting.blocks.size();
    const size_t all = alone + waiting.joined.size();
    if (all == 0) continue;
    if (MayAsk(waiting)) {
      const size_t turn = waiting.turn++ % all;
      if (turn < alone) {
        const tree::BlockMessage& block = waiting.blocks[turn];
        ack_({block.node, block.group, block.sequence, BlockAck::kUnknownSchema, block.hurry});
      } else if (const auto joined = ReadJoined(waiting.joined[turn - alone]); joined.ok()) {
        AckAll(std::span(joined->entries).first(1), BlockAck::kUnknownSchema);
      }
    }
    next = std::min(next, waiting.asked + kAskAgain + 1);
  }
  return next;
}

void BlockIntake::TakeJoined(const JoinedBlocks& joined, std::string_view bytes,
                             ArchiveWriter& archive) {
  const uint64_t id = joined.info.schema_id;
  const auto known = columns_.find(id);
  if (known == columns_.end()) return AskOrWait(joined, bytes);
  if (known->second != joined.info.columns) {
    log::Warning("joined blocks were dropped: their schema has another number of columns");
    return;
  }
  ArchiveWriter::Block order;
  order.schema_id = id;
  order.bytes = std::make_shared<const std::string>(bytes);
  order.limit = 2 * limit_;
  order.hurry = true;
  order.joined = true;
  const Status queued = archive.PutBlock(
      std::move(order), [this, entries = joined.entries, id](const Status& status) {
        if (status.ok()) {
          for (const JoinedEntry& entry : entries) {
            Forget({entry.node, entry.group, entry.sequence}, entry.first);
          }
          return AckAll(entries, BlockAck::kStored);
        }
        if (status.code() != Code::kNotFound) return RefuseAll(entries, status);
        // The block that came with the schema could not be written.
        columns_.erase(id);
        AckAll(entries, BlockAck::kUnknownSchema);
      });
  if (!queued.ok()) return RefuseAll(joined.entries, queued);
  for (const JoinedEntry& entry : joined.entries) {
    Count(entry.node, entry.stored, entry.samples, entry.reasons, entry.times.size());
  }
}

// Of many that come with the same schema at the same time only one is asked for it.
void BlockIntake::AskOrWait(tree::BlockMessage block, uint64_t schema) {
  Waiting& waiting = waiting_[schema];
  if (MayAsk(waiting)) {
    return ack_({block.node, block.group, block.sequence, BlockAck::kUnknownSchema, block.hurry});
  }
  if (MayWait(block.bytes.size())) return waiting.blocks.push_back(std::move(block));
  Remember({block.node, block.group, block.sequence}, kTooManyWait);
  ack_({block.node, block.group, block.sequence, BlockAck::kRefused, block.hurry});
}

void BlockIntake::Take(tree::BlockMessage block, size_t nodes, ArchiveWriter& archive) {
  BlockAck ack{block.node, block.group, block.sequence, BlockAck::kStored, block.hurry};
  const Result<BlockInfo> info = ReadBlockInfo(block.bytes);
  Result<Schema::Ptr> schema = info.ok() ? SchemaOf(block, *info) : info.status();
  if (schema.status().code() == Code::kNotFound && block.node < nodes) {
    return AskOrWait(std::move(block), info->schema_id);
  }
  if (!schema.ok() || block.node >= nodes || block.first > block.sequence) {
    log::Warning("a block of node {} is malformed and was dropped: {}", block.node,
                 schema.status().message());
    return;
  }
  const uint64_t id = info->schema_id;
  const auto refuse = [this](BlockAck no, const Status& why) {
    Remember({no.node, no.group, no.sequence}, why);
    no.result = BlockAck::kRefused;
    ack_(no);
  };
  ArchiveWriter::Block order;
  order.key = {block.node, block.group, block.sequence};
  order.first = block.first;
  order.schema_id = id;
  order.schema = *schema;
  order.bytes = std::make_shared<const std::string>(std::move(block.bytes));
  order.limit = 2 * limit_;
  order.hurry = block.hurry;
  const Status queued = archive.PutBlock(
      std::move(order), [this, ack, id, first = block.first, brought = *schema != nullptr,
                         refuse](const Status& status) {
        if (status.ok()) {
          Forget({ack.node, ack.group, ack.sequence}, first);
          return ack_(ack);
        }
        if (status.code() != Code::kNotFound) {
          // The schema that the block brought is not stored either.
          if (brought) columns_.erase(id);
          return refuse(ack, status);
        }
        // The block that came with the schema could not be written.
        columns_.erase(id);
        BlockAck again = ack;
        again.result = BlockAck::kUnknownSchema;
        ack_(again);
      });
  if (!queued.ok()) return refuse(ack, queued);
  columns_[id] = static_cast<uint32_t>(info->columns);
  Count(block.node, block.stored, block.samples, block.reasons, info->rows);
  TakeWaiting(id, nodes, archive);
}

void BlockIntake::TakeWaiting(uint64_t schema, size_t nodes, ArchiveWriter& archive) {
  auto waited = waiting_.extract(schema);
  if (waited.empty()) return;
  for (tree::BlockMessage& one : waited.mapped().blocks) {
    waiting_bytes_ -= one.bytes.size();
    Take(std::move(one), nodes, archive);
  }
  for (const std::string& bytes : waited.mapped().joined) {
    waiting_bytes_ -= bytes.size();
    if (const auto joined = ReadJoined(bytes); joined.ok()) TakeJoined(*joined, bytes, archive);
  }
}

void BlockIntake::Count(uint32_t index, uint64_t stored, uint64_t samples, uint32_t reasons,
                        size_t rows) {
  if (nodes_.size() <= index) nodes_.resize(index + size_t{1});
  NodeBlocks& node = nodes_[index];
  node.stored = stored;
  if (reasons == 0) return;
  node.reasons |= reasons;
  node.samples = std::max(node.samples, (samples + rows - 1) / rows);
}

std::vector<std::string> BlockIntake::Notes(const std::vector<NodeInfo>& nodes) const {
  std::vector<std::string> notes;
  std::vector<std::string> hosts;
  uint64_t samples = 0;
  uint32_t reasons = 0;
  for (size_t i = 0; i < nodes_.size() && i < nodes.size(); ++i) {
    if (nodes_[i].reasons == 0) continue;
    hosts.push_back(nodes[i].host);
    samples = std::max(samples, nodes_[i].samples);
    reasons |= nodes_[i].reasons;
  }
  if (!hosts.empty()) {
    notes.push_back(
        fmt::format("{}: per-node series are thinned, at most to 1 row for {} samples, with means, "
                    "minima and maxima: {}",
                    NameHosts(hosts), samples, Reasons(reasons, limit_)));
  }
  if (!refused_.empty() || refused_too_many_) {
    notes.push_back(fmt::format("per-node series are incomplete: {}", why_refused_.message()));
  }
  if (waiting_bytes_ > 0) {
    notes.push_back(
        fmt::format("per-node series are incomplete: {} KiB of them came without their names, "
                    "which no node has sent when asked",
                    (waiting_bytes_ + 1023) >> 10));
  }
  return notes;
}

}  // namespace sonde::head
