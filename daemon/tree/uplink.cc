#include "daemon/tree/uplink.h"

namespace sonde::tree {

void Uplink::Use(Link* link, bool tell_former) {
  if (link == link_) return;
  if (link_ != nullptr && tell_former) Send(*link_, Type::kLeave, "");
  link_ = link;
  SendSchema();
  moments_.Flush(link_);
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

}  // namespace sonde::tree
