#include "daemon/tree/moments_delivery.h"

#include <algorithm>
#include <utility>

#include "daemon/link/send.h"
#include "daemon/message/message.h"

namespace sonde::tree {

void MomentsSender::Flush(Link* link) {
  if (link == nullptr) return;
  for (Part& part : parts_) {
    if (part.link != nullptr) continue;
    if (!Send(*link, Type::kMoments, part.bytes)) return;
    part.link = link;
  }
  if (waiting_.empty()) return;
  MomentsMessage message{sequence_ + 1, std::exchange(waiting_, {})};
  std::string bytes = Encode(message);
  if (!Send(*link, Type::kMoments, bytes)) {
    waiting_ = std::move(message.moments);
    return;
  }
  parts_.push_back({++sequence_, std::move(bytes), link});
  if (parts_.size() > kMaxParts) Forget(parts_.begin());
}

void MomentsSender::OnAck(const MomentsAck& ack) {
  for (const uint64_t sequence : ack.sequences) {
    if (ack.fate == MomentsAck::Fate::kArrived) {
      Arrived(sequence);
    } else {
      const auto part = std::find_if(parts_.begin(), parts_.end(),
                                     [&](const Part& p) { return p.sequence == sequence; });
      if (part != parts_.end()) Forget(part);
    }
  }
}

void MomentsSender::Arrived(uint64_t sequence) {
  for (Part& part : parts_) {
    if (part.sequence != sequence || part.arrived) continue;
    part.arrived = true;
    ++arrived_;
    arrived_bytes_ += part.bytes.size();
  }
  while (arrived_bytes_ > kMaxArrivedBytes) {
    Forget(std::find_if(parts_.begin(), parts_.end(), [](const Part& p) { return p.arrived; }));
  }
}

void MomentsSender::Forget(const std::deque<Part>::iterator& part) {
  if (part->arrived) {
    --arrived_;
    arrived_bytes_ -= part->bytes.size();
  }
  parts_.erase(part);
}

void MomentsSender::OnLost(const Link* link) {
  for (Part& part : parts_) {
    if (part.link == link && !part.arrived) part.link = nullptr;
  }
}

void MomentsSender::OnNewHead() {
  for (Part& part : parts_) {
    if (std::exchange(part.arrived, false)) part.link = nullptr;
  }
  arrived_ = arrived_bytes_ = 0;
}

bool PartsSeen::Add(uint64_t sequence) {
  if (sequence < below_ || !above_.insert(sequence).second) return false;
  if (above_.size() > kMaxAbove) below_ = *above_.begin();  // what is missing does not come
  while (above_.erase(below_) != 0) ++below_;
  return true;
}

}  // namespace sonde::tree
