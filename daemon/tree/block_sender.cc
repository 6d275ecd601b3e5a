#include "daemon/tree/block_sender.h"

#include <algorithm>

namespace sonde::tree {

void BlockSender::Use(Link* link) {
  if (link == link_) return;
  link_ = link;
  for (const Kept& kept : kept_) SendKept(kept);
}

void BlockSender::Add(uint32_t node, std::string group, const SealedBlock& block) {
  kept_.push_back({node, std::move(group), block});
  kept_bytes_ += block.bytes->size();
  while (kept_bytes_ > keep_limit_ && kept_.size() > 1) {
    kept_bytes_ -= kept_.front().block.bytes->size();
    kept_.pop_front();
  }
  SendKept(kept_.back());
}

void BlockSender::SendKept(const Kept& kept) {
  if (link_ == nullptr) return;
  PassOn(
      {kept.node, kept.group, kept.block.sequence, Packed(kept.block.schema), *kept.block.bytes});
}

// A group's blocks have the same schema one after the other.
const std::string& BlockSender::Packed(const Schema::Ptr& schema) {
  constexpr size_t kMost = 4;
  for (const auto& [known, packed] : packed_) {
    if (known == schema) return packed;
  }
  if (packed_.size() == kMost) packed_.pop_front();
  return packed_.emplace_back(schema, PackSchema(*schema)).second;
}

void BlockSender::PassOn(const BlockMessage& block) {
  if (link_ != nullptr) Send(*link_, Type::kBlock, Encode(block));
}

void BlockSender::OnAck(const BlockAck& ack) {
  const auto at = std::find_if(kept_.begin(), kept_.end(), [&](const Kept& k) {
    return k.node == ack.node && k.group == ack.group && k.block.sequence == ack.sequence;
  });
  if (at == kept_.end()) return;
  kept_bytes_ -= at->block.bytes->size();
  kept_.erase(at);
}

}  // namespace sonde::tree
