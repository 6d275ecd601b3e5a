// A node's blocks on their way up, its own and its children's.
//
// Blocks are kept until the archive has acknowledged them and are sent again over a new link; the
// same block stored twice is stored once.
//
// Thread safety: the loop's thread only. Links belong to the caller.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <utility>

#include "daemon/tree/link.h"
#include "daemon/tree/message.h"
#include "series/store.h"

namespace sonde::tree {

class BlockSender {
 public:
  // Takes this link from now on; nullptr: none for now.
  void Use(Link* link);

  // `block` is kept until OnAck, within the limit of kept bytes: then the oldest goes.
  void Add(uint32_t node, std::string group, const SealedBlock& block);
  // A child's block, passed on as it is; the child keeps it.
  void PassOn(const BlockMessage& block);
  void OnAck(const BlockAck& ack);

  // Of the blocks that are kept.
  size_t kept_bytes() const { return kept_bytes_; }
  void SetKeepLimit(size_t bytes) { keep_limit_ = bytes; }

 private:
  struct Kept {
    uint32_t node;
    std::string group;
    SealedBlock block;
  };
  void SendKept(const Kept& kept);
  const std::string& Packed(const Schema::Ptr& schema);

  Link* link_ = nullptr;
  std::deque<Kept> kept_;
  std::deque<std::pair<Schema::Ptr, std::string>> packed_;
  size_t kept_bytes_ = 0;
  size_t keep_limit_ = 8u << 20;
};

}  // namespace sonde::tree
