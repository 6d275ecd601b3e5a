// The head's end of the nodes' blocks: what each may send, what goes into the archive, what is
// acknowledged, and what the profile's reader must know of it.
//
// Blocks come without their schema. When the archive has not got it, the sender of the first such
// block is asked for it; other blocks with that schema wait meanwhile, and if it does not come, one
// of their senders is asked. So a schema that all nodes share comes once. Each block says how much
// its node has in the archive; the archive refuses what would make the profile larger than twice
// its limit, whatever nodes say.
//
// Thread safety: the loop's thread only.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <set>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/job.h"
#include "core/status.h"
#include "core/time.h"
#include "daemon/head/record/archive_writer.h"
#include "daemon/message/message.h"
#include "series/block/joined.h"

namespace sonde::head {

class BlockIntake {
 public:
  // What the archive takes of all nodes together, bytes a second: while the step runs, which must
  // not trouble the host of srun, and at its end, when srun waits.
  static constexpr uint64_t kRate = 4u << 20;
  static constexpr uint64_t kEndRate = 32u << 20;

  // From so many nodes on the nodes below the head join the blocks of those that leave: a block of
  // one row is more than a node's share then. Of steps with fewer nodes all releases read all that
  // is stored.
  static constexpr uint32_t kJoinFrom = 4096;

  using Ack = std::function<void(const tree::BlockAck& ack)>;
  // When a schema that was asked for has not come, another node is asked.
  static constexpr Nanos kAskAgain = 200 * kMillisecond;

  // `limit`: bytes of the profile.
  // `join_from`: of so many nodes blocks may come joined.
  BlockIntake(uint64_t limit, Ack ack, const Clock& clock = Clock::System(),
              uint32_t join_from = kJoinFrom)
      : limit_(limit), ack_(std::move(ack)), clock_(clock), join_from_(join_from) {}

  // Each of that many nodes. A quarter of the profile is left for the step's reduced series.
  tree::BlockBudget Budget(uint32_t nodes) const;

  bool Joins(uint32_t nodes) const { return nodes >= join_from_; }

  // `nodes`: how many are known; a block of another is dropped.
  void Take(tree::BlockMessage block, size_t nodes, ArchiveWriter& archive);

  // All nodes in it are known; `bytes` are those that it was read from. They are stored as they
  // are, also blocks among them that were stored before: a reader takes each time once.
  void TakeJoined(const JoinedBlocks& joined, std::string_view bytes, ArchiveWriter& archive);

  // Asks others for schemas that have not come. kNever: none is awaited; else when to call it
  // again, monotonic.
  static constexpr Nanos kNever = std::numeric_limits<Nanos>::max();
  Nanos AskAgain();

  // What the reader must know: which nodes' series were thinned, and why; what could not be stored.
  std::vector<std::string> Notes(const std::vector<NodeInfo>& nodes) const;

 private:
  // Blocks that wait for their schema.
  struct Waiting {
    Nanos asked = 0;
    size_t turn = 0;  // of who waits, to be asked
    std::vector<tree::BlockMessage> blocks;
    std::vector<std::string> joined;
  };
  // Bytes that wait for schemas: when a short step ends, all that its nodes have.
  static constexpr uint64_t kLeastWaiting = 8u << 20;
  static constexpr uint64_t kMostWaiting = 64u << 20;
  static constexpr size_t kMaxRefused = 100'000;

  struct NodeBlocks {
    uint64_t stored = 0;   // bytes, as it says
    uint64_t samples = 0;  // the most that a row of it is made of
    uint32_t reasons = 0;
  };
  Result<Schema::Ptr> SchemaOf(const tree::BlockMessage& block, const BlockInfo& info);
  void AskOrWait(tree::BlockMessage block, uint64_t schema);
  void AskOrWait(const JoinedBlocks& joined, std::string_view bytes);
  bool MayAsk(Waiting& waiting);
  // False if no more may wait.
  bool MayWait(size_t bytes);
  void AckAll(std::span<const JoinedEntry> entries, uint32_t result);
  void RefuseAll(std::span<const JoinedEntry> entries, const Status& why);
  void TakeWaiting(uint64_t schema, size_t nodes, ArchiveWriter& archive);
  // A refused block may come again, as it was or within one that stands for it.
  void Remember(const BlockKey& key, const Status& why);
  void Forget(const BlockKey& last, uint64_t first);
  void Count(uint32_t node, uint64_t stored, uint64_t samples, uint32_t reasons, size_t rows);

  const uint64_t limit_;
  const Ack ack_;
  const Clock& clock_;
  const uint32_t join_from_;
  std::unordered_map<uint64_t, uint32_t> columns_;  // of the schemas that the archive has
  std::unordered_map<uint64_t, Waiting> waiting_;   // by schema
  size_t waiting_bytes_ = 0;
  std::vector<NodeBlocks> nodes_;
  std::set<BlockKey> refused_;     // and have not come again
  bool refused_too_many_ = false;  // to remember each
  Status why_refused_;             // the first time
};

}  // namespace sonde::head
