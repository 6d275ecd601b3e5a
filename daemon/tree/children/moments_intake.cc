#include "daemon/tree/children/moments_intake.h"

#include "daemon/link/send.h"
#include "daemon/message/message.h"

namespace sonde::tree {

void MomentsIntake::Answer(Link& link, uint32_t index, uint64_t sequence) {
  const bool keep = keep_ == Keep::kUntilSafe;
  Send(
      link, Type::kMomentsAck,
      Encode(MomentsAck{keep ? MomentsAck::Fate::kArrived : MomentsAck::Fate::kTaken, {sequence}}));
  if (keep) unsafe_[index].push_back(sequence);
}

void MomentsIntake::BeginSafe() {
  for (auto& [index, sequences] : unsafe_) {
    std::vector<uint64_t>& marked = marked_[index];
    marked.insert(marked.end(), sequences.begin(), sequences.end());
    // No sender keeps so many.
    if (marked.size() > kMaxAckedMoments)
      marked.erase(marked.begin(), marked.end() - kMaxAckedMoments);
  }
  unsafe_.clear();
}

void MomentsIntake::TellSafe(Link& link, uint32_t index) {
  const auto marked = marked_.find(index);
  if (marked == marked_.end()) return;
  const MomentsAck ack{MomentsAck::Fate::kSafe, marked->second};
  if (Send(link, Type::kMomentsAck, Encode(ack))) marked_.erase(marked);
}

}  // namespace sonde::tree
