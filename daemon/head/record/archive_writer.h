// The head's writer of the step's profile: a thread of its own, so that a slow disk delays neither
// ticks nor answers.
//
// Orders are carried out in turn. When the archive cannot be written (full, read-only, not ours)
// the step goes on: blocks of nodes are refused, and the nodes keep them and send them again
// later; blocks that nobody else has wait here, up to kMaxKept. Once there is space they are
// written, and a profile that could not be made is made. An attempt is made every kPause and at
// the end.
//
// Thread safety: orders from the loop's thread; callbacks come back on it.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <limits>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "core/job.h"
#include "core/status.h"
#include "daemon/loop.h"
#include "profiles/archive/archive.h"
#include "profiles/live/endpoint.h"
#include "profiles/live/live_archive.h"
#include "profiles/upkeep/retention.h"

namespace sonde::head {

class ArchiveWriter {
 public:
  // Blocks that wait for the disk: beyond this they are refused (their nodes keep them).
  static constexpr size_t kMaxWaiting = 32u << 20;

  // Bytes of blocks that nobody else has and that cannot be written; beyond it the oldest go.
  static constexpr size_t kMaxKept = 16u << 20;
  static constexpr Nanos kPause = kSecond;

  // What exceeds the limits is deleted when the step has been ingested.
  ArchiveWriter(Loop& loop, std::string archive, const Retention& limits = {},
                Nanos pause = kPause);
  // Finishes what was ordered.
  ~ArchiveWriter();

  // First: a new profile, or the part of one that an acting head goes on with.
  void Create(const JobDescription& job);
  // `node`: the acting head's, as Slurm names it.
  void Continue(const JobDescription& job, std::string node);
  void PutDescription(const JobDescription& job);
  // Of the step as it was last described.
  void PutMoments(StepMoments moments);
  void PutEndpoint(Endpoint endpoint);
  using Stored = std::function<void(const Status& status)>;
  // A block of a node, or of the whole step, which replaces those of its group from `first` on.
  // `schema`: nullptr if the archive was given it before; `stored` hears kNotFound if it has not
  // got it. An error at once: refused, `stored` is not called. Blocks that come within kGather are
  // written together, since each write wakes two threads up. A block in a hurry is written at once,
  // or after kGatherInHurry if something is being written. `OnStored` is called when the `stored`
  // of all these blocks have been called.
  struct Block {
    BlockKey key;
    uint64_t first = 0;
    uint64_t schema_id = 0;
    Schema::Ptr schema;
    std::shared_ptr<const std::string> bytes;
    uint64_t limit = 0;   // of all blocks that were accepted
    bool keep = false;    // nobody else has it: it is not refused for a disk that is full
    bool hurry = false;   // its node, and so its tasks' end, waits for word of it
    bool joined = false;  // `bytes` are joined blocks, and `key` means nothing
  };
  static constexpr Nanos kGather = 50 * kMillisecond;
  static constexpr Nanos kGatherInHurry = 2 * kMillisecond;
  static constexpr size_t kMaxGathered = 1u << 20;
  Status PutBlock(Block block, Stored stored);
  void OnStored(std::function<void()> f) { on_stored_ = std::move(f); }
  // `stored` is called when all that was ordered before it is stored as well.
  void PutState(std::string state, Stored stored);
  // Writes the profile and seals it. `done` hears whether the profile is safe; lost blocks are no
  // failure of it.
  void Finish(const Profile& profile, Stored done);
  // `then` is called once all earlier orders are done and their callbacks were called.
  void WhenIdle(std::function<void()> then);
  // Moves the sealed profile to where finished ones are kept.
  void Ingest();

  // Why the last attempt to write went wrong; ok if it did not.
  Status failure() const;
  // Bytes of the blocks that nobody else had and that were lost.
  uint64_t lost_bytes() const;
  // Bytes of blocks accepted so far.
  uint64_t accepted_bytes() const;
  // What the profile takes in the archive, once it is sealed; NaN before, and if it is not stored.
  double profile_bytes() const;

 private:
  using Order = std::function<void()>;
  struct Gathered {
    Block block;
    Stored stored;
    Status status;
  };
  using Batch = std::vector<Gathered>;
  void Enqueue(Order order);
  void GatherFor(bool hurry);
  void EnqueueGathered();
  void Write(Batch& batch);
  void WriteNow(Batch& batch);
  // Keeps the failed blocks that stay here for later.
  void KeepForLater(Batch& batch);
  // Has the profile made, if it is not there yet and an attempt is due.
  Status Open(bool at_once = false);
  bool PauseIsOver() const;
  bool Idle() const;
  void Work();
  Status Reserve(const Block& block);
  void Note(const Status& status);

  Loop& loop_;
  const std::string archive_;
  const Retention limits_;
  const Nanos pause_;

  mutable std::mutex mutex_;
  std::condition_variable ready_;
  std::deque<Order> orders_;
  bool works_ = false;  // on an order that orders_ no longer holds
  size_t waiting_bytes_ = 0;
  uint64_t accepted_bytes_ = 0;
  double profile_bytes_ = std::numeric_limits<double>::quiet_NaN();
  uint64_t lost_bytes_ = 0;
  Status failure_;
  Nanos next_attempt_ = 0;  // after a failure
  bool stop_ = false;

  std::function<void()> on_stored_;
  Batch gathered_;  // the loop's alone
  size_t gathered_bytes_ = 0;
  Loop::TimerId gather_timer_ = 0;
  bool gather_in_hurry_ = false;

  // The thread's alone.
  std::unique_ptr<LiveArchive> live_;
  std::function<Result<std::unique_ptr<LiveArchive>>()> make_;  // what live_ will be
  JobDescription job_;                                          // as it was last described
  std::function<Status()> put_endpoint_;  // for the profile that live_ will be
  Batch kept_;                            // until they can be written
  size_t kept_bytes_ = 0;
  std::string live_path_;
  std::thread thread_;
};

}  // namespace sonde::head
