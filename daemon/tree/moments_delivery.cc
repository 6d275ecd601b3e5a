#include "daemon/tree/moments_delivery.h"

#include <utility>

#include "daemon/tree/message.h"

namespace sonde::tree {

void MomentsSender::Flush(Link* link) {
  if (link == nullptr) return;
  for (Part& part : parts_) {
    if (part.link != nullptr) continue;
    if (!Send(*link, Type::kMoments, Encode(part.message))) return;
    part.link = link;
  }
  if (waiting_.empty()) return;
  Part part{{sequence_ + 1, std::exchange(waiting_, {})}, link};
  if (!Send(*link, Type::kMoments, Encode(part.message))) {
    waiting_ = std::move(part.message.moments);
    return;
  }
  ++sequence_;
  parts_.push_back(std::move(part));
  if (parts_.size() > kMaxParts) parts_.pop_front();
}

void MomentsSender::OnAck(const MomentsAck& ack) {
  std::erase_if(parts_, [&](const Part& p) { return p.message.sequence == ack.sequence; });
}

void MomentsSender::OnLost(const Link* link) {
  for (Part& part : parts_) {
    if (part.link == link) part.link = nullptr;
  }
}

bool PartsSeen::Add(uint64_t sequence) {
  if (sequence < below_ || !above_.insert(sequence).second) return false;
  if (above_.size() > kMaxAbove) below_ = *above_.begin();  // what is missing does not come
  while (above_.erase(below_) != 0) ++below_;
  return true;
}

}  // namespace sonde::tree
