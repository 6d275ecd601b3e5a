#include "daemon/tree/uplink.h"

#include <algorithm>
#include <utility>

#include "core/bytes.h"
#include "daemon/link/send.h"

namespace sonde::tree {

void Uplink::Use(Link* link, bool tell_former) {
  if (link == link_) return;
  if (link_ != nullptr && tell_former) Send(*link_, Type::kLeave, "");
  link_ = link;
  backlogs_ = 0;
  StartOver();
  Flush();
  for (size_t s = 0; s < kStreams; ++s) {
    if (streams_[s].schema != nullptr) Tell(static_cast<Stream>(s), streams_[s].schema);
  }
  TellKnown();
}

void Uplink::TellKnown() {
  if (link_ == nullptr || known_.empty() || Of(Stream::kOwn).schema == nullptr) return;
  FrameInfo info;
  info.tick = own_tick_ + 1;
  info.stream = Stream::kEnded;
  info.lost = true;
  info.nodes = own_node_;
  const KnownValues known = known_.Get();
  AddFrame(info, known.schema, known.values);
  Flush();
}

void Uplink::Forget(const Link* link) {
  moments_.OnLost(link);
  if (link_ != link) moments_.Flush(link_);
}

// The link knows nothing.
void Uplink::StartOver() {
  for (StreamState& stream : streams_) stream.told = nullptr;
  encoded_ = acked_;
  window_.LoseGone(acked_ + 1);
  out_.clear();
}

// --- Frames ---

void Uplink::OnAck(uint64_t number, uint64_t safe) {
  acked_ = std::max(acked_, std::min(number, number_));
  window_.Drop(std::min(safe, acked_));
}

void Uplink::Announce(Stream stream, const Schema::Ptr& schema) {
  Of(stream).schema = schema;
  if (!slow()) Tell(stream, schema);
}

void Uplink::End(Stream stream) {
  Of(stream).schema = nullptr;
  EndStreams();
}

// Ends streams once the link has all of their frames.
void Uplink::EndStreams() {
  if (link_ == nullptr || encoded_ != number_) return;
  for (size_t s = 0; s < kStreams; ++s) {
    if (streams_[s].schema != nullptr || streams_[s].told == nullptr) continue;
    SendOut();
    streams_[s].told = nullptr;
    const char which = static_cast<char>(s);
    Send(*link_, Type::kStreamEnd, std::string_view(&which, 1));
  }
}

void Uplink::Tell(Stream stream, const Schema::Ptr& schema) {
  StreamState& state = Of(stream);
  if (link_ == nullptr || state.told == schema) return;
  SendOut();
  state.told = schema;
  const Schema::Ptr coded = std::exchange(state.coded, schema);
  if (stream == Stream::kOwn && coded != nullptr) known_.Add(*coded, state.encoder.LastKnown());
  state.encoder.Reset(*schema);
  // A node's last values have the series of its own frames.
  if (std::exchange(packed_, schema) != schema) packed_bytes_ = PackSchema(*schema);
  one_.assign(1, static_cast<char>(stream));
  one_ += packed_bytes_;
  Send(*link_, Type::kSchema, one_);
}

uint64_t Uplink::AddFrame(FrameInfo& info, const Schema::Ptr& schema, const FrameValues& values) {
  info.number = ++number_;
  Of(info.stream).schema = schema;
  if (info.stream == Stream::kOwn) {
    own_tick_ = info.tick;
    own_node_ = info.nodes;
  }
  window_.Add(info, schema, values, encoded_);
  if (!slow() && encoded_ + 1 == number_) Append(info, schema, values);
  if (link_ != nullptr && holds_too_much()) window_.Thin(encoded_);
  return number_;
}

bool Uplink::holds_too_much() const {
  if (encoded_ == number_) return false;
  return window_.CountAfter(encoded_) > kMaxHeldBack ||
         window_.BytesAfter(encoded_) > kMaxHeldBackBytes;
}

void Uplink::Append(const FrameInfo& info, const Schema::Ptr& schema, const FrameValues& values) {
  Tell(info.stream, schema);
  one_.clear();
  Of(info.stream).encoder.Encode(info, values, one_);
  ByteWriter(out_).Text(one_);
  encoded_ = info.number;
}

// A link that refuses a message for its size (it is slow long before) starts over.
void Uplink::SendOut() {
  if (out_.empty() || link_ == nullptr) return;
  const bool sent = Send(*link_, Type::kFrame, out_);
  out_.clear();
  if (!sent) StartOver();
}

void Uplink::CatchUp() {
  if (encoded_ == number_) return;
  window_.Replay(encoded_ + 1, [this](const Frame& frame, const Schema::Ptr& schema) {
    if (slow() || link_->queued() >= kBacklog) return false;
    Append(frame, schema, {frame.values, frame.spreads});
    if (out_.size() >= kBacklog) SendOut();
    return true;
  });
}

void Uplink::Continue() {
  if (!holds_back()) return;
  if (link_->queued() < kBacklog) backlogs_ = 0;
  CatchUp();
  SendOut();
  EndStreams();
}

void Uplink::LeaveOutHeldBack() {
  if (!slow() || link_ == nullptr) return;
  for (size_t left = window_.CountAfter(encoded_), before = left + 1; left < before;) {
    before = left;
    window_.Thin(encoded_);
    left = window_.CountAfter(encoded_);
  }
}

void Uplink::Flush() {
  const bool backlog = link_ != nullptr && link_->queued() >= kBacklog;
  backlogs_ = backlog ? backlogs_ + 1 : 0;
  moments_.Flush(link_);
  CatchUp();
  SendOut();
  EndStreams();
}

void Uplink::OnMomentsAck(std::string_view payload) {
  MomentsAck ack;
  if (Decode(payload, ack).ok()) moments_.OnAck(ack);
}

}  // namespace sonde::tree
