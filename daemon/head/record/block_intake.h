// The head's end of the nodes' blocks: what each may send, what goes into the archive, what is
// acknowledged, and what the profile's reader must know of it.
//
// Blocks come without their schema. When the archive has not got it, the sender of the first such
// block is asked for it; other blocks with that schema wait meanwhile. So a schema that all nodes
// share comes once. Each block says how much its node has in the archive; the archive refuses what
// would make the profile larger than twice its limit, whatever nodes say.
//
// Thread safety: the loop's thread only.
#pragma once

#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/job.h"
#include "core/status.h"
#include "core/time.h"
#include "daemon/head/record/archive_writer.h"
#include "daemon/message/message.h"

namespace sonde::head {

class BlockIntake {
 public:
  // What the archive takes of all nodes together, bytes a second: while the step runs, which must
  // not trouble the host of srun, and at its end, when srun waits.
  static constexpr uint64_t kRate = 4u << 20;
  static constexpr uint64_t kEndRate = 32u << 20;

  using Ack = std::function<void(const tree::BlockAck& ack)>;
  // When a schema that was asked for has not come, another node is asked.
  static constexpr Nanos kAskAgain = 200 * kMillisecond;

  // `limit`: bytes of the profile.
  BlockIntake(uint64_t limit, Ack ack, const Clock& clock = Clock::System())
      : limit_(limit), ack_(std::move(ack)), clock_(clock) {}

  // Each of that many nodes. A quarter of the profile is left for the step's reduced series.
  tree::BlockBudget Budget(uint32_t nodes) const;

  // `nodes`: how many are known; a block of another is dropped.
  void Take(tree::BlockMessage block, size_t nodes, ArchiveWriter& archive);

  // What the reader must know: which nodes' series were thinned, and why; what could not be stored.
  std::vector<std::string> Notes(const std::vector<NodeInfo>& nodes) const;

 private:
  // Blocks that wait for their schema.
  struct Waiting {
    Nanos asked = 0;
    std::vector<tree::BlockMessage> blocks;
  };
  static constexpr size_t kMaxWaiting = 8u << 20;
  static constexpr size_t kMaxRefused = 100'000;

  struct NodeBlocks {
    uint64_t stored = 0;   // bytes, as it says
    uint64_t samples = 0;  // the most that a row of it is made of
    uint32_t reasons = 0;
  };
  Result<Schema::Ptr> SchemaOf(const tree::BlockMessage& block, const BlockInfo& info);
  void AskOrWait(tree::BlockMessage block, uint64_t schema);
  void Refuse(const tree::BlockMessage& block);
  // A refused block may come again, as it was or within one that stands for it.
  void Remember(const BlockKey& key, const Status& why);
  void Forget(const BlockKey& last, uint64_t first);
  void Count(const tree::BlockMessage& block, const BlockInfo& info);

  const uint64_t limit_;
  const Ack ack_;
  const Clock& clock_;
  std::unordered_map<uint64_t, uint32_t> columns_;  // of the schemas that the archive has
  std::unordered_map<uint64_t, Waiting> waiting_;   // by schema
  size_t waiting_bytes_ = 0;
  std::vector<NodeBlocks> nodes_;
  std::set<BlockKey> refused_;     // and have not come again
  bool refused_too_many_ = false;  // to remember each
  Status why_refused_;             // the first time
};

}  // namespace sonde::head
