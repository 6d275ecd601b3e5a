#include "daemon/tree/frame_window.h"

#include <algorithm>
#include <utility>

namespace sonde::tree {

void FrameWindow::Add(const FrameInfo& info, const Schema::Ptr& schema, const FrameValues& values,
                      uint64_t sent) {
  Kept& kept = frames_.Push();
  kept.number = info.number;
  kept.tick = info.tick;
  kept.nodes = info.nodes;
  kept.stream = info.stream;
  kept.schema = schema;
  kept.schema_bytes = SchemaBytes(info.stream, schema);
  if (!buffers_.empty()) {
    kept.bytes = std::move(buffers_.back());
    buffers_.pop_back();
  }
  kept.bytes.clear();
  encoder_.Reset(*schema, info.nodes);
  encoder_.Encode(info, values, kept.bytes);
  kept.size = kept.bytes.size() + NodesBytes(info.stream, info.nodes);
  bytes_ += kept.size;
  schema_bytes_ += kept.schema_bytes;
  newest_ = std::max(newest_, info.tick);
  MakeRoom(sent);
}

// Of a schema that stays one is kept, whatever waits here.
size_t FrameWindow::SchemaBytes(Stream stream, const Schema::Ptr& schema) {
  const uint64_t before = std::exchange(newest_schema_[static_cast<size_t>(stream)], schema->id());
  return before == 0 || before == schema->id() ? 0 : schema->text_bytes();
}

// Those of a stream are usually the same from frame to frame.
size_t FrameWindow::NodesBytes(Stream stream, const NodeSet& nodes) {
  NodeSet& newest = newest_nodes_[static_cast<size_t>(stream)];
  if (nodes.ranges() <= 1 || nodes.SharesWith(newest)) return 0;
  newest = nodes;
  return nodes.bytes();
}

// `oldest`: the one that would go.
bool FrameWindow::IsTooMuch(const Kept& oldest) const {
  if (frames_.size() > kMaxFrames || bytes_ > kMaxBytes || schema_bytes_ > kMaxSchemaBytes) {
    return true;
  }
  const bool needed = frames_.size() <= kLeastFrames || oldest.tick > newest_ - kNeeded;
  return bytes_ > kBytes && !needed;
}

void FrameWindow::Lose(size_t samples) {
  ++lost_;
  lost_samples_ += samples;
}

void FrameWindow::MakeRoom(uint64_t sent) {
  while (frames_.size() > 1) {
    size_t oldest = 0;
    while (oldest < frames_.size() && frames_[oldest].stream == Stream::kEnded) ++oldest;
    if (oldest == frames_.size()) oldest = 0;
    if (!IsTooMuch(frames_[oldest])) return;
    const uint64_t number = frames_[oldest].number;
    if (number > sent) {
      Lose(frames_[oldest].nodes.size());
    } else {
      if (gone_.size() == kMaxFrames) gone_.PopFront();  // long ago: the head has it
      gone_.Push() = {number, frames_[oldest].nodes.size()};
    }
    if (oldest == 0) {
      PopFront();
    } else {
      Remove(number);
    }
  }
}

void FrameWindow::Free(Kept& kept) {
  bytes_ -= kept.size;
  schema_bytes_ -= kept.schema_bytes;
  kept.schema.reset();
  kept.nodes.Clear();
  buffers_.push_back(std::move(kept.bytes));
}

void FrameWindow::PopFront() {
  Free(frames_.front());
  frames_.PopFront();
}

void FrameWindow::Drop(uint64_t number) {
  while (!frames_.empty() && frames_.front().number <= number) PopFront();
  gone_.EraseIf([&](const Gone& gone) { return gone.number <= number; });
}

void FrameWindow::LoseGone(uint64_t number) {
  gone_.EraseIf([&](const Gone& gone) {
    if (gone.number < number) return false;
    Lose(gone.samples);
    return true;
  });
}

void FrameWindow::Remove(uint64_t number) {
  frames_.EraseIf([&](Kept& kept) {
    if (kept.number != number) return false;
    Free(kept);
    return true;
  });
}

size_t FrameWindow::FirstAfter(uint64_t number) const {
  return frames_.CountWhile([&](const Kept& kept) { return kept.number <= number; });
}

size_t FrameWindow::CountAfter(uint64_t number) const {
  return frames_.size() - FirstAfter(number);
}

size_t FrameWindow::BytesAfter(uint64_t number) const {
  size_t bytes = 0;
  for (size_t i = FirstAfter(number); i < frames_.size(); ++i) bytes += frames_[i].size;
  return bytes;
}

void FrameWindow::Thin(uint64_t number) {
  std::array<bool, kStreams> second{};
  frames_.EraseIf([&](Kept& kept) {
    if (kept.number <= number || kept.stream == Stream::kEnded) return false;
    bool& goes = second[static_cast<size_t>(kept.stream)];
    goes = !goes;
    if (goes) return false;
    Lose(kept.nodes.size());
    Free(kept);
    return true;
  });
}

void FrameWindow::Replay(
    uint64_t number, const std::function<bool(const Frame& frame, const Schema::Ptr& schema)>& f) {
  FrameDecoder decoder;
  const size_t first = frames_.CountWhile([&](const Kept& kept) { return kept.number < number; });
  for (size_t i = first; i < frames_.size(); ++i) {
    const Kept& kept = frames_[i];
    decoder.Reset(*kept.schema, kept.nodes);
    const Result<const Frame*> frame = decoder.Decode(kept.bytes);
    if (frame.ok() && !f(**frame, kept.schema)) return;
  }
}

}  // namespace sonde::tree
