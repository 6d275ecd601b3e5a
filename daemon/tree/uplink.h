// A node's way up: frames, moments and blocks over one link at a time.
//
// At first that is the control connection to the head; once the fabric is up it is the link to the
// parent; and the control connection again when that is lost. Blocks are kept until the archive
// has acknowledged them and are sent again over a new link; the same block stored twice is stored
// once. Frames are not: a tick lost with a link is counted as missing.
//
// Thread safety: the loop's thread only. Links belong to the caller.
#pragma once

#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "daemon/tree/frame.h"
#include "daemon/tree/link.h"
#include "daemon/tree/message.h"
#include "daemon/tree/moments_delivery.h"
#include "series/store.h"

namespace sonde::tree {

class Uplink {
 public:
  // Takes this link from now on and tells the former one; nullptr: none for now.
  void Use(Link* link, bool tell_former);
  Link* link() const { return link_; }
  // Before the owner destroys a link that was once used.
  void Forget(const Link* link);

  // The series of the frames that follow.
  void SetSchema(Schema::Ptr schema);
  void SendFrame(const Frame& frame);
  // They go up before the next frame.
  void AddMoments(collect::Moments moments) { moments_.Add(std::move(moments)); }
  void OnMomentsAck(std::string_view payload);
  bool moments_delivered() const { return moments_.delivered(); }
  // `block` is kept until OnBlockAck, within `limit` bytes of kept blocks: then the oldest goes.
  void SendBlock(uint32_t node, std::string group, const SealedBlock& block);
  // A child's block, passed on as it is; the child keeps it.
  void PassOn(const BlockMessage& block);
  void OnBlockAck(const BlockAck& ack);
  // Of the blocks that are kept.
  size_t kept_bytes() const { return kept_bytes_; }
  void SetKeepLimit(size_t bytes) { keep_limit_ = bytes; }

 private:
  struct Kept {
    uint32_t node;
    std::string group;
    SealedBlock block;
  };
  void SendSchema();
  void SendKept(const Kept& kept);
  const std::string& Packed(const Schema::Ptr& schema);

  Link* link_ = nullptr;
  Schema::Ptr schema_;
  FrameEncoder encoder_;
  MomentsSender moments_;
  std::string buffer_;
  std::deque<Kept> kept_;
  std::deque<std::pair<Schema::Ptr, std::string>> packed_;
  size_t kept_bytes_ = 0;
  size_t keep_limit_ = 8u << 20;
};

}  // namespace sonde::tree
