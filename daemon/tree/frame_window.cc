#include "daemon/tree/frame_window.h"

#include <array>

namespace sonde::tree {

void FrameWindow::Add(const FrameInfo& info, const Schema::Ptr& schema, const FrameValues& values) {
  Kept kept{info.number, info.stream, schema, {}};
  if (!spare_.empty()) {
    kept.bytes = std::move(spare_.back());
    spare_.pop_back();
  }
  encoder_.Reset(*schema);
  encoder_.Encode(info, values, kept.bytes);
  bytes_ += kept.bytes.size();
  frames_.push_back(std::move(kept));
  while (frames_.size() > kMaxFrames || (bytes_ > kMaxBytes && frames_.size() > 1)) {
    ++lost_;
    PopFront();
  }
}

void FrameWindow::PopFront() {
  constexpr size_t kSpare = 4;
  std::string& bytes = frames_.front().bytes;
  bytes_ -= bytes.size();
  if (spare_.size() < kSpare) {
    bytes.clear();
    spare_.push_back(std::move(bytes));
  }
  frames_.pop_front();
}

void FrameWindow::Drop(uint64_t number) {
  while (!frames_.empty() && frames_.front().number <= number) PopFront();
}

void FrameWindow::Remove(uint64_t number) {
  std::erase_if(frames_, [&](const Kept& kept) {
    if (kept.number != number) return false;
    bytes_ -= kept.bytes.size();
    return true;
  });
}

size_t FrameWindow::CountAfter(uint64_t number) const {
  size_t n = 0;
  for (auto at = frames_.rbegin(); at != frames_.rend() && at->number > number; ++at) ++n;
  return n;
}

void FrameWindow::Thin(uint64_t number) {
  std::array<bool, kStreams> second{};
  std::erase_if(frames_, [&](const Kept& kept) {
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
  for (const Kept& kept : frames_) {
    if (kept.number < number) continue;
    decoder.Reset(*kept.schema);
    const Result<const Frame*> frame = decoder.Decode(kept.bytes);
    if (frame.ok() && !f(**frame, kept.schema)) return;
  }
}

}  // namespace sonde::tree
