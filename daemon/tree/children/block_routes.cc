#include "daemon/tree/children/block_routes.h"

#include <utility>

#include "daemon/link/send.h"

namespace sonde::tree {

void BlockRoutes::OnBlock(uint32_t node, Child& child) {
  Child*& route = routes_[node];
  if (std::exchange(route, &child) != &child) child.nodes_.push_back(node);
}

// Most children of the head of a large step have brought none.
void BlockRoutes::Remove(Child& child) {
  if (!child.acks_.empty()) std::erase(waiting_, &child);
  for (const uint32_t node : child.nodes_) {
    const auto route = routes_.find(node);
    if (route != routes_.end() && route->second == &child) routes_.erase(route);
  }
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
