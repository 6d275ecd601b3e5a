#include "daemon/tree/uplink.h"

#include <algorithm>

namespace sonde::tree {

void Uplink::Use(Link* link, bool tell_former) {
  if (link == link_) return;
  if (link_ != nullptr && tell_former) Send(*link_, Type::kLeave, "");
  link_ = link;
  SendSchema();
  moments_.Flush(link_);
  for (const Kept& kept : kept_) SendKept(kept);
}

void Uplink::Forget(const Link* link) {
  moments_.OnLost(link);
  if (link_ != link) moments_.Flush(link_);
}

void Uplink::OnMomentsAck(std::string_view payload) {
  MomentsAck ack;
  if (Decode(payload, ack).ok()) moments_.OnAck(ack);
}

void Uplink::SetSchema(Schema::Ptr schema) {
  schema_ = std::move(schema);
  SendSchema();
}

void Uplink::SendSchema() {
  if (link_ == nullptr || schema_ == nullptr) return;
  encoder_.Reset(schema_->size());
  Send(*link_, Type::kSchema, PackSchema(*schema_));
}

void Uplink::SendFrame(const Frame& frame) {
  moments_.Flush(link_);
  if (link_ == nullptr || schema_ == nullptr) return;  // the head counts it as missing
  buffer_.clear();
  encoder_.Encode(frame, buffer_);
  // A peer that missed a frame and its encoder begin anew.
  if (!Send(*link_, Type::kFrame, buffer_)) SendSchema();
}

void Uplink::SendBlock(uint32_t node, std::string group, const SealedBlock& block) {
  kept_.push_back({node, std::move(group), block});
  kept_bytes_ += block.bytes->size();
  while (kept_bytes_ > keep_limit_ && kept_.size() > 1) {
    kept_bytes_ -= kept_.front().block.bytes->size();
    kept_.pop_front();
  }
  SendKept(kept_.back());
}

void Uplink::SendKept(const Kept& kept) {
  if (link_ == nullptr) return;
  PassOn(
      {kept.node, kept.group, kept.block.sequence, Packed(kept.block.schema), *kept.block.bytes});
}

// A group's blocks have the same schema one after the other.
const std::string& Uplink::Packed(const Schema::Ptr& schema) {
  constexpr size_t kMost = 4;
  for (const auto& [known, packed] : packed_) {
    if (known == schema) return packed;
  }
  if (packed_.size() == kMost) packed_.pop_front();
  return packed_.emplace_back(schema, PackSchema(*schema)).second;
}

void Uplink::PassOn(const BlockMessage& block) {
  if (link_ != nullptr) Send(*link_, Type::kBlock, Encode(block));
}

void Uplink::OnBlockAck(const BlockAck& ack) {
  const auto at = std::find_if(kept_.begin(), kept_.end(), [&](const Kept& k) {
    return k.node == ack.node && k.group == ack.group && k.block.sequence == ack.sequence;
  });
  if (at == kept_.end()) return;
  kept_bytes_ -= at->block.bytes->size();
  kept_.erase(at);
}

}  // namespace sonde::tree
