#include "daemon/tree/frame_window.h"

#include <array>

namespace sonde::tree {

void FrameWindow::Add(const FrameInfo& info, const Schema::Ptr& schema, const FrameValues& values,
                      uint64_t sent) {
  Kept& kept = frames_.Push();
  kept.number = info.number;
  kept.stream = info.stream;
  kept.schema = schema;
  kept.bytes.clear();
  encoder_.Reset(*schema);
  encoder_.Encode(info, values, kept.bytes);
  bytes_ += kept.bytes.size();
  while (frames_.size() > kMaxFrames || (bytes_ > kMaxBytes && frames_.size() > 1)) {
    if (frames_.front().number > sent) ++lost_;
    PopFront();
  }
}

void FrameWindow::PopFront() {
  bytes_ -= frames_.front().bytes.size();
  frames_.front().schema.reset();
  frames_.PopFront();
}

void FrameWindow::Drop(uint64_t number) {
  while (!frames_.empty() && frames_.front().number <= number) PopFront();
}

void FrameWindow::Remove(uint64_t number) {
  frames_.EraseIf([&](const Kept& kept) {
    if (kept.number != number) return false;
    bytes_ -= kept.bytes.size();
    return true;
  });
}

size_t FrameWindow::CountAfter(uint64_t number) const {
  return frames_.size() - frames_.CountWhile([&](const Kept& k) { return k.number <= number; });
}

void FrameWindow::Thin(uint64_t number) {
  std::array<bool, kStreams> second{};
  frames_.EraseIf([&](const Kept& kept) {
    if (kept.number <= number || kept.stream == Stream::kEnded) return false;
    bool& goes = second[static_cast<size_t>(kept.stream)];
    goes = !goes;
    if (goes) return false;
    bytes_ -= kept.bytes.size();
    ++lost_;
    return true;
  });
}

void FrameWindow::Replay(
    uint64_t number, const std::function<bool(const Frame& frame, const Schema::Ptr& schema)>& f) {
  FrameDecoder decoder;
  const size_t first = frames_.CountWhile([&](const Kept& kept) { return kept.number < number; });
  for (size_t i = first; i < frames_.size(); ++i) {
    const Kept& kept = frames_[i];
    decoder.Reset(*kept.schema);
    const Result<const Frame*> frame = decoder.Decode(kept.bytes);
    if (frame.ok() && !f(**frame, kept.schema)) return;
  }
}

}  // namespace sonde::tree
