// The profile of a step while it runs: live/<cluster>.<job>.<step>.<start>/, a small LevelDB that
// its head writes. See docs/archive.md.
//
// Thread safety: one thread, the head's archive thread.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "core/job.h"
#include "core/status.h"
#include "profiles/live/endpoint.h"
#include "profiles/model/block_key.h"
#include "profiles/model/parts.h"
#include "profiles/model/profile.h"
#include "series/block/schema.h"

namespace sonde {

class LiveArchive {
 public:
  // Makes the directories as needed. Fails clearly if the archive is read-only, full or not ours.
  static Result<std::unique_ptr<LiveArchive>> Create(const std::string& archive,
                                                     const JobDescription& job) {
    return Open(archive, job, PartId::Make(false));
  }
  // The part of an acting head, which goes on after the step's head was killed. `job` is the head's
  // own description, as the acting head last received it: cluster, job, step and start make this a
  // part of that profile, and the nodes' indices mean the same. The acting head uses it as the head
  // does: for its own nodes, notes, moments, cost and coverage since it took over; PutProfile with
  // how the step ended; Finish. Blocks that the head had acknowledged need not come again; if they
  // do, under their keys and with the same bytes, they are stored once. The archive may be another
  // directory on another host: the parts are joined when they are ingested into one archive.
  // `node`: the acting head's, as Slurm names it; "": this machine's name.
  static Result<std::unique_ptr<LiveArchive>> Continue(const std::string& archive,
                                                       const JobDescription& job,
                                                       std::string_view node = {}) {
    return Open(archive, job, PartId::Make(true, node));
  }
  ~LiveArchive();

  // Each returns when the data is with the operating system (it survives a kill of this process);
  // Sync makes it survive the machine.
  // Writes nothing if it is known to be stored as it is.
  Status PutDescription(const JobDescription& job);
  Status PutBlock(const BlockKey& key, const Schema& schema, std::string_view block);
  // Each block replaces the stored blocks of its node and group with the sequences from `first` to
  // its own, in one piece; `replaced` becomes the bytes of these blocks. `schema`: nullptr if it
  // was stored before; kNotFound if it was not. Several writes are done at once, and each gets its
  // own status.
  struct BlockWrite {
    BlockKey key;
    uint64_t first = 0;
    uint64_t schema_id = 0;
    const Schema* schema = nullptr;
    std::string_view block;
    uint64_t replaced = 0;
    Status status;
    // `block` is joined blocks (series/block/joined.h) of the schema, and `key` and `first` mean
    // nothing. They replace the blocks that theirs stand for.
    bool joined = false;
  };
  void ReplaceBlocks(std::span<BlockWrite> writes);
  // `job` has the nodes that they name. It is not stored with them, figures of merit neither: it
  // has all nodes.
  Status PutMoments(const JobDescription& job, const StepMoments& moments);
  Status PutProfile(const Profile& profile);
  Status Sync();
  // Where the running step is served (profiles/live/endpoint.h). Removed by Finish.
  Status PutEndpoint(const Endpoint& endpoint);
  // Shows that this writer is alive; called at least every few minutes. On a file system that does
  // not show the locks of other hosts, another host may take a step that was silent for ten minutes
  // for abandoned, such as that of a suspended job, and take its directory away. All that was
  // acknowledged is in that directory. The write that finds it gone fails, and from then on this
  // writes another part of the profile.
  void Touch();
  // The data that another writer needs to go on with the step; ReadHeritage gives it back. kLimit
  // if that would refuse them (kMaxState): what was put before stays.
  Status PutState(std::string_view state);
  // Seals the profile; the directory can be ingested from now on. After a failure PutProfile and
  // Finish can be tried again: the file system may report only here that it could not write.
  Status Finish();
  const std::string& path() const;
  // Of blocks and, as db/ will have them, schemas.
  uint64_t content_bytes() const;

 private:
  explicit LiveArchive(const std::string& archive);
  static Result<std::unique_ptr<LiveArchive>> Open(const std::string& archive,
                                                   const JobDescription& job, const PartId& writer);
  struct Rep;
  std::unique_ptr<Rep> rep_;
};

}  // namespace sonde
