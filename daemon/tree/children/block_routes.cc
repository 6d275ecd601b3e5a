#include "daemon/tree/children/block_routes.h"

#include "daemon/link/send.h"

namespace sonde::tree {

void BlockRoutes::Remove(Child& child) {
  std::erase(waiting_, &child);
  std::erase_if(routes_, [&](const auto& route) { return route.second == &child; });
}

void BlockRoutes::Add(const BlockAck& ack) {
  const auto route = routes_.find(ack.node);
  if (route == routes_.end()) return;
  Child& child = *route->second;
  if (child.acks_.empty()) waiting_.push_back(&child);
  AppendTo(child.acks_, ack);
  // Children that contribute nothing have no pulse.
  const bool hurry = ack.hurry || ack.result != BlockAck::kStored || !child.sender_.contributes();
  child.hurry_ = child.hurry_ || hurry;
}

void BlockRoutes::Send(Child& child) {
  tree::Send(child.sender_.link, Type::kBlockAck, child.acks_);
  child.acks_.clear();
  child.hurry_ = false;
}

void BlockRoutes::Flush() {
  std::erase_if(waiting_, [](Child* child) {
    if (child->sender_.contributes() && !child->hurry_) return false;
    Send(*child);
    return true;
  });
}

void BlockRoutes::SendBeforePulse() {
  for (Child* child : waiting_) {
    if (child->sender_.contributes()) child->sender_.link.ExpectMore();
    Send(*child);
  }
  waiting_.clear();
}

}  // namespace sonde::tree
